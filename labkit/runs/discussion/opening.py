"""Opens what discussions need, in the database of the runs.

async with open_discussion(url, store, ledger="effects.db", worker=name, lease=30.0,
                           models=Models()) as discussion:
    manager = RunManager(store, {"discussion": discussion.job}, worker=name, policy=policy)
    await discussion.report(run, events)
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from random import Random
from typing import Any, Final

import aiosqlite
import sqlalchemy as sa
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.store.base import BaseStore

from labkit.recovery.cancel import stop
from labkit.recovery.run_states import CANCELLED, COMPLETED, UnknownRun
from labkit.recovery.stream.record import Owner
from labkit.services.ledger import Ledger, LedgerService
from labkit.stores import open_key_store
from labkit.stores.opening import GONE

from ..job import Job
from ..jobs import Once
from ..record import AgentRun, RunEvent
from ..store import RunStore
from .checkpoints import answering, at
from .discussing import Services, discuss
from .memory import Memories
from .models import Models
from .report import report
from .toolbox import toolbox

BUSY: Final = 10_000  # milliseconds that a writer waits for its turn
POOL: Final = 4  # connections
AGAIN: Final = 20  # times that tables are made, where another process makes them too
SETUP: Final = 7_120_114  # the lock of whoever makes the tables


class Discussion:
    """What a service and a worker need of it: the job, the models, the memories and the report."""

    def __init__(self, services: Services, memories: Memories) -> None:
        self.job: Job = partial(discuss, services)
        self.models = services.models
        self.memories = memories
        self._saver = services.saver

    async def report(self, run: AgentRun, events: Sequence[RunEvent]) -> str:
        """Markdown. Raises `StoreDown`."""
        kept = await at(self._saver, run.checkpoint) if run.checkpoint else None
        values = kept.checkpoint["channel_values"] if kept else {}
        return report(run, values, events)


@asynccontextmanager
async def open_discussion(
    url: str, store: RunStore, *, ledger: str, worker: str, lease: float, models: Models
) -> AsyncIterator[Discussion]:
    """Open it for as long as the block lasts. Raises `StoreError` and `StoreDown`."""
    async with AsyncExitStack() as stack:
        keys = open_key_store(url)
        stack.callback(keys.close)
        service = LedgerService(Ledger(ledger), worker)
        saver, kept = await _opened(stack, url)
        memories = Memories(kept, partial(completed, store))
        tools, schemas = toolbox(service)
        services = Services(
            saver=saver,
            memories=memories,
            models=models,
            tools=tools,
            schemas=schemas,
            once=Once(keys, service, worker=worker, lease=lease),
            clock=store.now,
            random=Random(),
        )
        yield Discussion(services, memories)


async def completed(store: RunStore, run_id: str, owner: Owner) -> str | None:
    """The thread of its last step; "" where it is cancelled or not there, None where it goes on."""
    try:
        run = await store.get(run_id, owner)
    except UnknownRun:
        return ""
    if run.status == COMPLETED:
        return str(run.checkpoint["thread"])
    return "" if run.status == CANCELLED else None


async def _opened(stack: AsyncExitStack, url: str) -> tuple[BaseCheckpointSaver[Any], BaseStore]:
    """LangGraph's saver and store on that database, with their tables."""
    parsed = sa.make_url(url)
    async with answering(within=None):  # others may make the tables at this moment
        if parsed.get_backend_name() == "sqlite":
            return await _on_sqlite(stack, str(parsed.database))
        return await _on_postgres(stack, parsed)


async def _on_sqlite(
    stack: AsyncExitStack, file: str
) -> tuple[BaseCheckpointSaver[Any], BaseStore]:
    from langgraph.store.sqlite.aio import AsyncSqliteStore

    from .whole_writes import WholeWrites

    first = await stack.enter_async_context(aiosqlite.connect(file))
    second = await stack.enter_async_context(aiosqlite.connect(file, isolation_level=None))
    for connection in (first, second):
        await connection.execute(f"PRAGMA busy_timeout = {BUSY}")
    saver = WholeWrites(first)
    store = await stack.enter_async_context(AsyncSqliteStore(second))
    stack.push_async_callback(_ended, store)
    await saver.setup()
    await _with_tables(store)
    return saver, store


async def _with_tables(store: Any) -> None:
    """Make them: where another process makes the same ones at this moment, that fails."""
    for _ in range(AGAIN):
        try:
            await store.setup()
            return
        except sqlite3.Error as error:
            if error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
        await asyncio.sleep(0.1)
    await store.setup()


async def _ended(store: Any) -> None:
    """End its task, which nothing else does."""
    if store._task is not None:
        await stop(store._task)


async def _on_postgres(
    stack: AsyncExitStack, url: sa.URL
) -> tuple[BaseCheckpointSaver[Any], BaseStore]:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres.aio import AsyncPostgresStore
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    plain = url.set(drivername="postgresql").render_as_string(hide_password=False)
    how = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    pool: Any = AsyncConnectionPool(
        plain,
        kwargs={**how, **{name: value for name, value in GONE.items() if name not in url.query}},
        min_size=1,
        max_size=POOL,
        timeout=BUSY / 1000,
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    await stack.enter_async_context(pool)
    saver, store = AsyncPostgresSaver(pool), AsyncPostgresStore(pool)
    stack.push_async_callback(_ended, store)
    async with _alone(pool):
        await saver.setup()
        await store.setup()
    return saver, store


@asynccontextmanager
async def _alone(pool: Any) -> AsyncIterator[None]:
    """No other process makes tables: two at once would fail, or wait for each other."""
    ask = f"SELECT pg_try_advisory_lock({SETUP}) AS mine"  # who waits in the database is waited for
    async with pool.connection() as connection:
        async with asyncio.timeout(BUSY / 1000):
            while not (await (await connection.execute(ask)).fetchone())["mine"]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        try:
            yield
        finally:
            await connection.execute(f"SELECT pg_advisory_unlock({SETUP})")
