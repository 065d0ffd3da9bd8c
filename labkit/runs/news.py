"""Wakes who waits for a change of the runs: here, and on PostgreSQL in every other process.

Rules: a change that comes between a look and the wait is not missed, since the wait names what was
seen; who is woken looks into the database, and whoever hears nothing looks there too, now and then.
A change has topics, which are numbers: one for each run, shared by a few others, and `TO_DO` where
a run waits to be claimed. Nobody is woken for the sake of a topic that is not his.

    seen = news.seen(TO_DO)
    ...                                           # look into the database
    await news.after(TO_DO, seen, timeout=5.0)    # returns at once if something has changed since
"""

import asyncio
import itertools
import threading
import zlib
from contextlib import suppress
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from labkit.recovery.run_states import QUEUED

from .record import AgentRun

CHANNEL: Final = "labkit_runs"
LOOK: Final = 0.5  # seconds between two looks at whether it is closed
PAUSE: Final = 1.0  # seconds before a lost connection is made anew
END: Final = 5.0  # seconds to wait for its end: connecting to a host that is gone takes longer
TO_DO: Final = 0  # the topic of whoever looks for a run to claim
TOPICS: Final = 4096


def about(run_id: str) -> int:
    """The topic of a run: short, the same in every process, and plain whatever the id holds."""
    return 1 + zlib.crc32(ascii(run_id).encode()) % (TOPICS - 1)


def topics(run: AgentRun) -> tuple[int, ...]:
    """What a change that has made `run` what it is now is about."""
    return (about(run.run_id), TO_DO) if run.status == QUEUED else (about(run.run_id),)


class News:
    """The newest change of each topic that this process has heard of."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._numbers = itertools.count(1)  # each change has its own, whichever thread tells it
        self._newest = [0] * TOPICS
        self._waiting: dict[asyncio.Event, tuple[int, asyncio.AbstractEventLoop]] = {}
        self._closed = threading.Event()
        self._shared = engine.dialect.name == "postgresql"
        self._thread = threading.Thread(target=self._listen, name="runs: news", daemon=True)
        if self._shared:
            self._thread.start()

    def send(self, connection: sa.Connection, run: AgentRun) -> None:
        """Tell the other processes, when the transaction of `connection` commits."""
        if self._shared:
            told = " ".join(map(str, topics(run)))
            connection.exec_driver_sql(f"NOTIFY {CHANNEL}, '{told}'")

    def wake(self, *changed: int) -> None:
        """Wake who waits in this process for one of these topics, or for any; from any thread."""
        for topic in changed or range(TOPICS):
            self._newest[topic] = next(self._numbers)
        for event, (topic, loop) in tuple(self._waiting.items()):
            if changed and topic not in changed:
                continue
            with suppress(RuntimeError):  # it is closed: nobody waits there any more
                loop.call_soon_threadsafe(event.set)

    def seen(self, topic: int) -> int:
        """The number of the newest change of a topic; remember it, then look."""
        return self._newest[topic]

    async def after(self, topic: int, seen: int, *, timeout: float) -> None:
        """Wait for a change of the topic after `seen`, for at most `timeout` seconds."""
        event = asyncio.Event()
        self._waiting[event] = topic, asyncio.get_running_loop()
        try:
            if self._newest[topic] == seen:
                async with asyncio.timeout(timeout):
                    await event.wait()
        except TimeoutError:
            pass
        finally:
            del self._waiting[event]

    def close(self) -> None:
        """Stop listening."""
        self._closed.set()
        if self._shared:
            self._thread.join(END)

    def _listen(self) -> None:
        while not self._closed.is_set():
            with suppress(SQLAlchemyError, OSError):
                self._heard()
            self._closed.wait(PAUSE)

    def _heard(self) -> None:
        """Listen until it is closed or the connection breaks, which raises."""
        import psycopg

        with self._engine.connect() as connection:
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            alone.exec_driver_sql(f"LISTEN {CHANNEL}")
            driver: Any = alone.connection.driver_connection
            self.wake()  # whatever came while nobody listened
            try:
                while not self._closed.is_set():
                    for note in driver.notifies(timeout=LOOK, stop_after=1):
                        self.wake(*_told(note.payload))
            except psycopg.Error as error:
                alone.invalidate()
                raise OSError(str(error)) from error


def _told(payload: str) -> list[int]:
    """The topics that another process has told; none, which stands for all, if it is no such."""
    words = payload.split()
    plain = all(word.isascii() and word.isdigit() and len(word) < 5 for word in words)
    found = [int(word) for word in words] if plain else []
    return found if all(topic < TOPICS for topic in found) else []
