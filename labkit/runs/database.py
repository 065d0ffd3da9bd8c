"""How the run store asks its database: a write is one transaction, and a read stands alone.

Rules: what was written is committed before anybody is woken; whatever the database says leaves as
an error with a name, in one line. The store has threads of its own, and what is urgent has others:
no work of the program and no crowd of readers keeps a lease from being renewed.

    await self._changed(lambda connection: connection.execute(update).first())
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from json import JSONDecodeError
from typing import Any, Final, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import (
    DataError,
    DBAPIError,
    ProgrammingError,
    SQLAlchemyError,
    StatementError,
)

from labkit.recovery.run_states import RunError
from labkit.stores.errors import StoreDown, StoreError, told
from labkit.stores.tables import clock_of

from .news import News, topics
from .record import AgentRun, Held
from .tables import set_up

Answer = TypeVar("Answer")
Moved = TypeVar("Moved", bound=AgentRun | Held | None)
Call = Callable[..., Awaitable[Any]]
THREADS: Final = 4  # calls at a time, and as many urgent ones
CURE: Final = "nothing is half written: free it, make room or bring it back, look, then ask again"


# How the codes of a refusal of a value begin. What else fails, such as a table that is missing, is
# the database's trouble: it ends no run.
NEVER: Final = ("22", "54", "23502", "SQLITE_CONSTRAINT_NOTNULL", "SQLITE_TOOBIG")


class NotJSON(RunError, ValueError):
    """What should be kept is no JSON value: nothing was written; give what JSON has."""


class NotKept(RunError, ValueError):
    """The database can never keep such a value: nothing was written; give another, or less."""


class StoreClosed(RunError, StoreError):
    """The store was closed, and nothing was done: open it anew."""


class Database:
    """What is behind `engine`, with the tables of runs. Its calls raise `StoreDown`, `NotJSON` or
    `NotKept`.

    `now` is the store's time as an expression; `call` runs a blocking function: without one it is
    a thread of the store, which a cancel does not stop. `news` wakes who waits for changes.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        now: sa.ColumnElement[float] | None = None,
        call: Call | None = None,
    ) -> None:
        self._engine = engine
        self._now = clock_of(engine) if now is None else now
        self._pools = [ThreadPoolExecutor(THREADS, f"runs: {name}") for name in ("calls", "urgent")]
        self._call, self._call_now = (call or partial(_in_thread, pool) for pool in self._pools)
        self._closed = threading.Event()
        set_up(engine)
        self.news = News(engine)

    def through(self, call: Call) -> Self:
        """The same store as another process of a simulation reaches it, which hears no news."""
        other = copy(self)
        other._call = other._call_now = call
        other.news = News(self._engine)
        return other

    async def now(self) -> float:
        """The store's time, in seconds. Raises `StoreDown`."""
        return float(await self._asked(lambda it: it.execute(sa.select(self._now)).scalar_one()))

    async def _changed(self, work: Callable[[sa.Connection], Moved]) -> Moved:
        """Write, and wake who waits for changes where there is one, also after a cancel."""

        def write() -> Moved:
            answer = self._commit(work)
            if answer is not None:
                self.news.wake(*topics(answer.run if isinstance(answer, Held) else answer))
            return answer

        return await self._tried(write, self._call)

    async def _urgent(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        """Write what is no news, and waits behind no other call."""
        return await self._tried(lambda: self._commit(work), self._call_now)

    def _commit(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        with self._engine.begin() as connection:
            return work(connection)

    async def _asked(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        def ask() -> Answer:
            with self._engine.connect() as connection:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                return work(alone)

        return await self._tried(ask, self._call)

    async def _tried(self, work: Callable[[], Answer], call: Call) -> Answer:
        if self._closed.is_set():
            raise StoreClosed("this store of runs is closed: open it anew, with open_run_store")
        try:
            answer: Answer = await call(work)
            return answer
        except JSONDecodeError as error:  # somebody has written to it by hand
            raise StoreDown(f"a row of the run store cannot be read ({error}); {CURE}") from None
        except SQLAlchemyError as error:
            if isinstance(error, StatementError) and not isinstance(error, DBAPIError):
                raise NotJSON(f"nothing was written: {told(error)}") from None
            if _never(error):
                raise NotKept(f"nothing was written: {told(error)}") from None
            raise StoreDown(f"the run store failed ({told(error)}); {CURE}") from None

    def close(self) -> None:
        """End its threads, after the calls that are under way, and close all connections."""
        self._closed.set()
        self.news.close()
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)
        self._engine.dispose()


async def _in_thread(pool: ThreadPoolExecutor, work: Callable[[], Answer]) -> Answer:
    return await asyncio.get_running_loop().run_in_executor(pool, work)


def _never(error: SQLAlchemyError) -> bool:
    """Whether it would be the same next time: the database refuses what was given."""
    orig = getattr(error, "orig", None)
    code = getattr(orig, "sqlstate", None) or getattr(orig, "sqlite_errorname", None) or ""
    drivers = isinstance(error, DataError | ProgrammingError) and not code
    return drivers or code.startswith(NEVER)
