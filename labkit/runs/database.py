"""How the run store asks its database: a write is one transaction, and a read stands alone.

Rules: what was written is committed before anybody is woken; whatever the database says leaves as
an error with a name, in one line.

    await self._changed(lambda connection: connection.execute(update).first())
"""

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Any, Final, Self, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, StatementError

from labkit.recovery.run_states import RunError
from labkit.stores.errors import StoreDown, told
from labkit.stores.tables import clock_of

from .news import News
from .tables import set_up

Answer = TypeVar("Answer")
CURE: Final = "nothing is half written: free it, make room or bring it back, then ask again"


class NotJSON(RunError, ValueError):
    """What should be kept is no JSON value: nothing was written; give what JSON has."""


class Database:
    """What is behind `engine`, with the tables of runs. Its calls raise `StoreDown` or `NotJSON`.

    `now` is the store's time as an expression; `call` runs a blocking function: in a thread, which
    a cancel does not stop. `news` wakes who waits for changes.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        now: sa.ColumnElement[float] | None = None,
        call: Callable[..., Awaitable[Any]] = asyncio.to_thread,
    ) -> None:
        self._engine = engine
        self._now = clock_of(engine) if now is None else now
        self._call = call
        set_up(engine)
        self.news = News(engine)

    def through(self, call: Callable[..., Awaitable[Any]]) -> Self:
        """The same store as another process of a simulation reaches it, which hears no news."""
        other = copy(self)
        other._call = call
        other.news = News(self._engine)
        return other

    async def _changed(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        """Write, and wake who waits for changes where there is one, also after a cancel."""

        def write() -> Answer:
            answer = self._commit(work)
            if answer is not None:
                self.news.wake()
            return answer

        return await self._tried(write)

    async def _written(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        """Write what is no news."""
        return await self._tried(lambda: self._commit(work))

    def _commit(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        with self._engine.begin() as connection:
            return work(connection)

    async def _asked(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        def ask() -> Answer:
            with self._engine.connect() as connection:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                return work(alone)

        return await self._tried(ask)

    async def _tried(self, work: Callable[[], Answer]) -> Answer:
        try:
            answer: Answer = await self._call(work)
            return answer
        except SQLAlchemyError as error:
            if isinstance(error, StatementError) and not isinstance(error, DBAPIError):
                raise NotJSON(f"nothing was written: {told(error)}") from None
            raise StoreDown(f"the run store failed ({told(error)}); {CURE}") from None

    def close(self) -> None:
        """Close all connections."""
        self.news.close()
        self._engine.dispose()
