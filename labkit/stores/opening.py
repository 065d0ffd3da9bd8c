"""Opens a store by its URL.

    open_stream_store("memory:")
    open_stream_store("sqlite:///answers.db")
    open_stream_store("postgresql+psycopg://user@host/database")

What was opened is closed by whoever opened it: `store.close()`.
"""

from typing import Any, Final

import sqlalchemy
from sqlalchemy import Engine, event
from sqlalchemy.exc import SQLAlchemyError

from .memory import MemoryStreamStore
from .sql import SQLStreamStore

BUSY: Final = 10.0  # seconds that a writer to SQLite waits for its turn


class StoreError(Exception):
    """The store cannot be opened: the message says what to change in the URL or on the disk."""


def open_stream_store(url: str) -> MemoryStreamStore | SQLStreamStore:
    """The store of stream records at `url`; tables that are missing are made.

    Raises `StoreError`; a password in the URL is not in its message.
    """
    if url == "memory:":
        return MemoryStreamStore()
    shown = "this URL"
    try:
        parsed = sqlalchemy.make_url(url)
        shown = parsed.render_as_string(hide_password=True)
        return SQLStreamStore(_engine(parsed))
    except (SQLAlchemyError, ImportError, ValueError) as error:
        told = str(getattr(error, "orig", None) or error).partition("\n")[0]
        ways = "memory:, sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
        raise StoreError(f"{shown} cannot be opened ({told}); use {ways}") from None


def _engine(url: sqlalchemy.URL) -> Engine:
    backend = url.get_backend_name()
    if backend not in ("sqlite", "postgresql"):
        raise ValueError(f"no store on {backend}")
    if backend == "postgresql":
        return sqlalchemy.create_engine(url, pool_pre_ping=True)
    engine = sqlalchemy.create_engine(url, connect_args={"timeout": BUSY})
    event.listen(engine, "connect", _set_up)
    event.listen(engine, "begin", _begin)
    return engine


def _set_up(connection: Any, _: Any) -> None:
    """Readers beside a writer, and transactions that we begin ourselves."""
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")


def _begin(connection: sqlalchemy.Connection) -> None:
    connection.exec_driver_sql("BEGIN")
