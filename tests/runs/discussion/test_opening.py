"""What is opened for discussions: on each database, by several at once, closed with the block."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from langgraph.store.sqlite.aio import AsyncSqliteStore

from labkit.runs.discussion import opening
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.opening import SETUP, open_discussion
from labkit.runs.discussion.whole_writes import WholeWrites
from labkit.runs.store import RunStore
from labkit.stores import opening as stores
from labkit.stores.errors import StoreDown, StoreError
from tests.runs.conftest import every_database, on_postgresql
from tests.runs.storing import OWNER, run, together

from .real import at_work

on_sqlite = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


async def opened(url: str, store: RunStore, folder: Path) -> None:
    """Open it and close it."""
    how: Any = {"ledger": str(folder / "effects.db"), "worker": "w", "lease": 30.0}
    async with open_discussion(url, store, models=Models(), **how):
        pass


@every_database
def test_a_discussion_is_held_asked_remembered_and_reported(url: str, tmp_path: Path) -> None:
    async def program() -> None:
        async with at_work(url, tmp_path) as real:
            done = await real.done("Which? [needs clarification] [needs approval]", "approve")
            assert (done.status, done.end_reason) == ("completed", "consensus")
            (memory,) = await real.discussion.memories.of(OWNER)
            assert (memory.text, memory.run_id) == ("The user's budget: approve", done.run_id)
            events = await real.store.events(done.run_id, OWNER)
            report = await real.discussion.report(done, events)
            assert "create_ticket: receipt 1" in report

    run(program())


@on_sqlite
def test_on_sqlite_no_cancel_leaves_a_write_half_done(url: str, tmp_path: Path) -> None:
    async def program() -> None:
        async with at_work(url, tmp_path) as real:
            assert isinstance(real.discussion._saver, WholeWrites)

    run(program())


@every_database
@pytest.mark.parametrize(
    "text", ["a\0b", "\ud800", "团队 🎉 ‏שלום", "'; DROP TABLE runs; --"], ids=ascii
)
def test_any_text_is_discussed_and_remembered(text: str, url: str, tmp_path: Path) -> None:
    async def program() -> None:
        async with at_work(url, tmp_path) as real:
            done = await real.done(f"{text}? [needs clarification]", text)
            assert (done.status, done.error_message) == ("completed", None)
            memories = await real.discussion.memories.of(OWNER)
            assert len(memories) == 1
            again = await real.done("And now?")
            assert again.status == "completed"

    run(program())


@every_database
def test_several_processes_may_open_a_new_database_at_the_same_moment(
    url: str, store: RunStore, tmp_path: Path
) -> None:
    together(4, lambda number: opened(url, store, tmp_path))


@on_postgresql
def test_whoever_makes_the_tables_is_waited_for(
    url: str, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as other:
        other.execute(f"SELECT pg_advisory_lock({SETUP})")
        monkeypatch.setattr(opening, "BUSY", 300)
        with pytest.raises(StoreDown):
            run(opened(url, store, tmp_path))
        other.execute(f"SELECT pg_advisory_unlock({SETUP})")
        monkeypatch.undo()
        run(opened(url, store, tmp_path))


@on_sqlite
def test_tables_that_another_process_has_just_made_are_looked_at_again(
    url: str, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup, errors = AsyncSqliteStore.setup, [sqlite3.OperationalError("duplicate column name: x")]
    errors[0].sqlite_errorname = "SQLITE_ERROR"

    async def fails_first(self: Any) -> None:
        if errors:
            raise errors.pop()
        await setup(self)

    monkeypatch.setattr(AsyncSqliteStore, "setup", fails_first)
    run(opened(url, store, tmp_path))


@on_sqlite
def test_a_file_that_is_locked_is_told_by_the_name_of_a_store_that_is_down(
    url: str, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "BUSY", 0.05)
    monkeypatch.setattr(opening, "BUSY", 50)
    stores.open_key_store(url).close()
    with closing(sqlite3.connect(tmp_path / "runs.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreDown, match="locked"):
            run(opened(url, store, tmp_path))


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    url = "postgresql+psycopg://ann:s3cr3t@127.0.0.1:1/labkit"
    with pytest.raises(StoreError) as caught:
        run(opened(url, None, tmp_path))  # type: ignore[arg-type]  # it is not reached
    assert "s3cr3t" not in str(caught.value)


@every_database
def test_after_the_block_no_thread_no_task_and_no_connection_is_left(
    url: str, tmp_path: Path
) -> None:
    engine = sa.create_engine(url)

    def connections() -> int:
        if engine.dialect.name == "sqlite":
            return 0
        with engine.connect() as connection:
            count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            return int(connection.exec_driver_sql(count).scalar_one())

    async def program() -> None:
        before = asyncio.all_tasks()
        async with at_work(url, tmp_path) as real:
            await real.done("Which? [needs approval]")
        assert asyncio.all_tasks() == before

    before, known = set(threading.enumerate()), connections()
    run(program())
    assert {thread for thread in threading.enumerate() if thread.name != "AnyIO"} <= before
    assert connections() == known
    engine.dispose()
