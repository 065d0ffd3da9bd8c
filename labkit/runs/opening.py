"""Opens the store of agent runs by its URL, or the same one in virtual time.

open_run_store("sqlite:///runs.db")
open_run_store("postgresql+psycopg://user@host/database")
virtual_run_store(loop.time, call=inline)
"""

import sqlite3
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from labkit.stores.opening import begun_by, opened

from .store import RunStore

# A transaction that only becomes a writer later fails at once where another has written meanwhile;
# one that is a writer from its beginning waits for its turn.
BEGIN: Final = "BEGIN IMMEDIATE"
Store = TypeVar("Store", bound=RunStore)


def open_run_store(url: str) -> RunStore:
    """The store at `url`; tables that are missing are made, and `close()` is the caller's.

    Raises `StoreError`, also where they were made by another version.
    """
    return opened(url, RunStore, begin=BEGIN)


def virtual_run_store(
    clock: Callable[[], float],
    *,
    call: Callable[..., Awaitable[Any]],
    kind: type[Store] = RunStore,  # type: ignore[assignment]  # a default for a type variable
) -> Store:
    """The very same statements on a SQLite in memory, with the time of `clock`.

    `call(work)` runs a blocking function in the simulation, as slowly as it likes.
    """
    shared, compiled = _shared()
    pool = StaticPool(_in_memory)
    engine = sa.Engine(pool, shared.dialect, shared.url)
    engine.update_execution_options(compiled_cache=compiled)
    begun_by(engine, BEGIN)
    now = sa.bindparam("store_time", type_=sa.Double, callable_=clock)
    return kind(engine, now=now, call=call)


def _in_memory() -> Any:
    return sqlite3.connect(":memory:", check_same_thread=False)


@cache
def _shared() -> tuple[sa.Engine, dict[Any, Any]]:
    """What simulations share, since it takes most of their time: statements that are compiled."""
    engine = sa.create_engine("sqlite://")
    engine.connect().close()
    return engine, {}
