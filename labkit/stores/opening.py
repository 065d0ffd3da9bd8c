"""Opens a store by its URL.

    open_stream_store("memory:")
    open_stream_store("sqlite:///answers.db")
    open_key_store("postgresql+psycopg://user@host/database")

What was opened is closed by whoever opened it: `store.close()`.
"""

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

import sqlalchemy
from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

from .errors import StoreDown, StoreError, told
from .memory import MemoryKeyStore, MemoryStreamStore
from .sql import SQLStreamStore
from .sql_keys import SQLKeyStore

__all__ = ["StoreDown", "StoreError", "open_key_store", "open_stream_store"]

BUSY: Final = 10.0  # seconds that a writer to SQLite waits for its turn
InMemory = TypeVar("InMemory")
InSQL = TypeVar("InSQL")


def open_stream_store(url: str) -> MemoryStreamStore | SQLStreamStore:
    """The store of stream records at `url`; tables that are missing are made.

    Raises `StoreError`; a password in the URL is not in its message.
    """
    return _opened(url, MemoryStreamStore, SQLStreamStore)


def open_key_store(url: str) -> MemoryKeyStore | SQLKeyStore:
    """The store of idempotency keys at `url`, as `open_stream_store` opens one.

    Each of its statements commits itself: a process that is stopped between two holds no lock.
    """
    return _opened(url, MemoryKeyStore, SQLKeyStore, isolation_level="AUTOCOMMIT")


def _opened(
    url: str,
    in_memory: Callable[[], InMemory],
    in_sql: Callable[[Engine], InSQL],
    **options: Any,
) -> InMemory | InSQL:
    if url == "memory:":
        return in_memory()
    shown = "this URL"
    try:
        parsed = sqlalchemy.make_url(url)
        shown = parsed.render_as_string(hide_password=True)
        return in_sql(_engine(parsed, options))
    except (SQLAlchemyError, ImportError, ValueError) as error:
        ways = "memory:, sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
        raise StoreError(f"{shown} cannot be opened ({told(error)}); use {ways}") from None


def _engine(url: sqlalchemy.URL, options: dict[str, Any]) -> Engine:
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ValueError(f"no store on {backend}")
    if backend == "postgresql":
        return sqlalchemy.create_engine(url, pool_pre_ping=True, **options)
    if url.database in (None, "", ":memory:"):  # where each thread would see another one
        raise ValueError("no file is named")
    engine = sqlalchemy.create_engine(url, connect_args={"timeout": BUSY}, **options)
    event.listen(engine, "connect", _set_up)
    if not options:
        event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _: Any) -> None:
    """Readers beside a writer, and transactions that we begin ourselves."""
    connection.isolation_level = None
    with suppress(sqlite3.OperationalError):  # locked: another process is switching to it
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
