"""Opens a store by its URL.

    open_stream_store("memory:")
    open_stream_store("sqlite:///answers.db")
    open_key_store("postgresql+psycopg://user@host/database")

What was opened is closed by whoever opened it: `store.close()`.
"""

import sqlite3
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache, partial
from time import monotonic
from typing import Any, Final, TypeVar

import sqlalchemy
from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

from .errors import StoreDown, StoreError, told
from .errors import shown as url_shown
from .memory import MemoryKeyStore, MemoryStreamStore
from .sql import SQLStreamStore
from .sql_keys import SQLKeyStore

__all__ = ["StoreDown", "StoreError", "open_key_store", "open_stream_store"]

BUSY: Final = 10.0  # seconds that a writer waits for its turn, and that a lock lasts in silence
SILENCE: Final = 15.0  # seconds without an answer after which a server is taken for gone
# So is a host that is gone, by the network's own means. Seconds; the last one is in milliseconds.
GONE: Final = {
    "connect_timeout": 5,
    "keepalives_idle": 4,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
Store = TypeVar("Store")
InMemory = TypeVar("InMemory")


def open_stream_store(url: str) -> MemoryStreamStore | SQLStreamStore:
    """The store of stream records at `url`; tables that are missing are made.

    Raises `StoreError`; a password in the URL is not in its message.
    """
    return opened(url, SQLStreamStore, begin="BEGIN", in_memory=MemoryStreamStore)


def open_key_store(url: str) -> MemoryKeyStore | SQLKeyStore:
    """The store of idempotency keys at `url`, as `open_stream_store` opens one.

    Each of its statements commits itself: a process that is stopped between two holds no lock.
    """
    return opened(url, SQLKeyStore, begin="", in_memory=MemoryKeyStore)


def opened(
    url: str,
    make: Callable[[Engine], Store],
    *,
    begin: str,
    in_memory: Callable[[], InMemory] | None = None,
) -> Store | InMemory:
    """What `make` makes of the database at `url`, on SQLite or PostgreSQL. Raises `StoreError`.

    `begin`: how a transaction begins on SQLite; "" for statements that commit themselves.
    `in_memory` makes what "memory:" stands for, where there is such a store.
    """
    if in_memory is not None and url == "memory:":
        return in_memory()
    shown = "this URL"
    try:
        parsed = sqlalchemy.make_url(url)
        shown = url_shown(parsed)
        return make(_engine(parsed, begin))
    except (SQLAlchemyError, ImportError, ValueError) as error:
        ways = "sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
        ways = f"memory:, {ways}" if in_memory else ways
        raise StoreError(f"{shown} cannot be opened ({told(error)}); use {ways}") from None


def _engine(url: sqlalchemy.URL, begin: str) -> Engine:
    backend = url.get_backend_name()
    options = {} if begin else {"isolation_level": "AUTOCOMMIT"}
    if backend not in ("sqlite", "postgresql"):
        raise ValueError(f"no store on {backend}")
    if backend == "postgresql":
        ends = {name: value for name, value in GONE.items() if name not in url.query}
        engine = sqlalchemy.create_engine(url, pool_pre_ping=True, connect_args=ends, **options)
        event.listen(engine, "do_connect", _bounded)
        event.listen(engine, "connect", _not_silent)
        return engine
    if url.database in (None, "", ":memory:"):  # where each thread would see another one
        raise ValueError("no file is named")
    engine = sqlalchemy.create_engine(url, connect_args={"timeout": BUSY}, **options)
    begun_by(engine, begin)
    return engine


def _bounded(_: Any, __: Any, how: Any, options: Any) -> Any:
    return _connection().connect(*how, **options)


@cache
def _connection() -> Any:
    """Connections on which no call waits for ever, whatever stands between them and a server."""
    import psycopg

    class Bounded(psycopg.Connection[Any]):
        def wait(self, gen: Any, *more: Any, **named: Any) -> Any:
            return super().wait(self._ended(gen), *more, **named)

        def _ended(self, work: Any) -> Generator[Any, Any, Any]:
            end, ready = monotonic() + SILENCE, None
            while True:
                try:
                    wanted = work.send(ready)
                except StopIteration as done:
                    return done.value
                ready = yield wanted
                if not ready and monotonic() > end:
                    self.close()
                    raise psycopg.OperationalError(f"no answer for {SILENCE:g} s")

    return Bounded


def _not_silent(connection: Any, _: Any) -> None:
    """Who is frozen, or gone without a word, in a transaction holds its locks for a while only."""
    connection.execute(f"SET idle_in_transaction_session_timeout = '{BUSY * 1000:.0f}ms'")
    connection.commit()


def begun_by(engine: Engine, begin: str) -> None:
    """Let each transaction on SQLite begin so, and readers read beside a writer."""
    event.listen(engine, "connect", _set_up)
    if begin:
        event.listen(engine, "begin", partial(_begin, begin))


def _set_up(connection: Any, _: Any) -> None:
    """Readers beside a writer, and transactions that we begin ourselves."""
    connection.isolation_level = None
    with suppress(sqlite3.OperationalError):  # locked: another process is switching to it
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(how: str, connection: sqlalchemy.Connection) -> None:
    if connection.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql(how)
