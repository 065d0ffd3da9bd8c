"""A saver on SQLite whose write is cancelled or fails: the database is free for the next one."""

from __future__ import annotations

import asyncio
import pathlib
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

import aiosqlite
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from labkit.runs.discussion.whole_writes import WholeWrites

CONFIG: Any = {"configurable": {"thread_id": "run-1/1", "checkpoint_ns": "", "checkpoint_id": "x"}}
WRITES = {
    "aput": (CONFIG, empty_checkpoint(), {}, {}),
    "aput_writes": (CONFIG, [("turns", 7)], "task-1"),
}
every_write = pytest.mark.parametrize("write", WRITES)


class Commit:
    """The commit of a connection: it waits for `go`, and then does what it should, or fails."""

    def __init__(self, connection: Any, error: Exception | None = None) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self._commit, self._error = connection.commit, error
        connection.commit = self

    async def __call__(self) -> None:
        self.begun.set()
        await self.go.wait()
        if self._error:
            raise self._error
        await self._commit()


@asynccontextmanager
async def opened(file: pathlib.Path) -> AsyncIterator[WholeWrites]:
    """A saver with its tables."""
    async with aiosqlite.connect(file) as connection:
        saver = WholeWrites(connection)
        await saver.setup()
        yield saver


def is_free(file: pathlib.Path) -> bool:
    """Whether another connection may write at once."""
    with closing(sqlite3.connect(file, timeout=0.0)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
        return True


@every_write
def test_a_cancel_leaves_after_the_write_that_is_under_way(
    write: str, tmp_path: pathlib.Path
) -> None:
    async def program() -> None:
        file = tmp_path / "runs.db"
        async with opened(file) as saver:
            commit = Commit(saver.conn)
            writing = asyncio.create_task(getattr(saver, write)(*WRITES[write]))
            await commit.begun.wait()
            assert not is_free(file)
            writing.cancel()
            for _ in range(3):
                await asyncio.sleep(0)
            commit.go.set()
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert is_free(file)

    asyncio.run(program())


@every_write
def test_a_write_that_fails_holds_up_no_other(write: str, tmp_path: pathlib.Path) -> None:
    async def program() -> None:
        file = tmp_path / "runs.db"
        async with opened(file) as saver:
            commit = Commit(saver.conn, sqlite3.OperationalError("disk full"))
            commit.go.set()
            with pytest.raises(sqlite3.OperationalError, match="disk full"):
                await getattr(saver, write)(*WRITES[write])
            assert is_free(file)

    asyncio.run(program())
