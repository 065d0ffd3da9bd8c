"""Wakes who waits for a change of the runs: here, and on PostgreSQL in every other process.

Rules: a change that comes between a look and the wait is not missed, since the wait names what was
seen; who is woken looks into the database, and whoever hears nothing looks there too, now and then.

    seen = news.count
    ...                                    # look into the database
    await news.after(seen, timeout=5.0)    # returns at once if something has changed since
"""

import asyncio
import threading
from contextlib import suppress
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

CHANNEL: Final = "labkit_runs"
LOOK: Final = 0.5  # seconds between two looks at whether it is closed
PAUSE: Final = 1.0  # seconds before a lost connection is made anew
END: Final = 5.0  # seconds to wait for its end: connecting to a host that is gone takes longer


class News:
    """Counts the changes that this process has heard of."""

    def __init__(self, engine: sa.Engine) -> None:
        self.count = 0
        self._engine = engine
        self._waiting: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = threading.Event()
        self._shared = engine.dialect.name == "postgresql"
        self._thread = threading.Thread(target=self._listen, name="runs: news", daemon=True)
        if self._shared:
            self._thread.start()

    def send(self, connection: sa.Connection) -> None:
        """Tell the other processes, when the transaction of `connection` commits."""
        if self._shared:
            connection.exec_driver_sql(f"NOTIFY {CHANNEL}")

    def wake(self) -> None:
        """Wake who waits in this process; from any thread."""
        self.count += 1
        for event, loop in tuple(self._waiting.items()):
            if loop is asyncio._get_running_loop():
                event.set()
                continue
            with suppress(RuntimeError):  # it is closed: nobody waits there any more
                loop.call_soon_threadsafe(event.set)

    async def after(self, seen: int, *, timeout: float) -> None:
        """Wait until `count` is above `seen`, for at most `timeout` seconds."""
        event = asyncio.Event()
        self._waiting[event] = asyncio.get_running_loop()
        try:
            if self.count == seen:
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
                    for _ in driver.notifies(timeout=LOOK, stop_after=1):
                        self.wake()
            except psycopg.Error as error:
                alone.invalidate()
                raise OSError(str(error)) from error
