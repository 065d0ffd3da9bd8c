"""The checkpoints of one run in the hands of one worker: a zombie's are never gone on from.

Rules: each claim writes into a thread of its own, named after the run and the fence; a take-over
begins with a copy of that checkpoint which the run's row names, and the row is written under the
fence. So what a worker without the lease still writes is never read: no later checkpoint is, and
what was done of a step only where the row says that the step waits for a person. The newest
checkpoint is the one that this worker has put last, whatever the clocks of others say.

    kept = Checkpoints(saver, run.run_id, fence, run.checkpoint, renewal)
    await kept.take_over()
    app = graph.compile(checkpointer=kept)
    await app.ainvoke(None, kept.config)
    kept.named                     # {"thread": "run-7/2", "id": "1f0c..."}: for the run's row
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from labkit.recovery.renewal import Renewal
from labkit.recovery.run_states import LeaseLost
from labkit.stores.errors import StoreDown, told

SILENT: Final = 15.0  # seconds that it may take to answer
AGAIN: Final = 0.5  # seconds before one that is gone is asked again
DOWN: Final = (sqlite3.OperationalError, psycopg.OperationalError, OSError)
Kept = TypeVar("Kept")


@asynccontextmanager
async def answering(within: float | None = SILENT) -> AsyncIterator[None]:
    """A database that is gone, locked, full or silent, by its one name."""
    try:
        async with asyncio.timeout(within):
            yield
    except DOWN as error:  # a time that ran out is one of them
        raise StoreDown(told(error) or f"no answer within {within} s") from None


class Checkpoints(BaseCheckpointSaver[Any]):
    """A saver for the graph, on `saver`. Its calls raise `StoreDown`, and `LeaseLost`."""

    def __init__(
        self,
        saver: BaseCheckpointSaver[Any],
        run_id: str,
        fence: int,
        named: dict[str, Any] | None,
        renewal: Renewal,
    ) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        self._renewal = renewal
        self._from = named
        self._thread = thread_of(run_id, fence)
        self._newest = ""

    @property
    def config(self) -> RunnableConfig:
        """What the graph is called with."""
        return {"configurable": {"thread_id": self._thread}}

    @property
    def named(self) -> dict[str, Any]:
        """The newest checkpoint, as the run's row names it."""
        return {"thread": self._thread, "id": self._newest}

    async def take_over(self) -> None:
        """Begin where the run's row says; the thread of an earlier claim is only read."""
        if self._from is None:
            return
        before = await at(self._saver, self._from)  # breakpoint: take over
        if before is None:
            raise LookupError(f"the checkpoint {self._from} is not there any more")
        async with answering():
            versions = before.checkpoint["channel_versions"]
            copied = await self._saver.aput(
                _config(self._thread), before.checkpoint, before.metadata, versions
            )
            by_task: dict[str, list[tuple[str, Any]]] = {}
            done = before.pending_writes if "asks" in self._from else None
            for task, channel, value in done or []:  # breakpoint: what a waiting step has done
                by_task.setdefault(task, []).append((channel, value))
            for task, writes in by_task.items():
                await self._saver.aput_writes(copied, writes, task)
        self._newest = before.checkpoint["id"]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The one that is named, or this worker's newest."""
        if not self._newest:
            return None
        return await at(self._saver, {"thread": self._thread, "id": self._newest})

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep it, unless the lease is lost; who was held up for long asks before."""
        put = partial(self._saver.aput, config, checkpoint, metadata, new_versions)
        kept = await self._until_kept(put)
        self._newest = checkpoint["id"]
        return kept

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """What one of several steps has done while the others still run."""
        await self._until_kept(partial(self._saver.aput_writes, config, writes, task_id, task_path))

    async def _until_kept(self, put: Callable[[], Awaitable[Kept]]) -> Kept:
        """Ask a store that is gone again: the step that is to be kept has had its price."""
        while True:
            if lost := await self._renewal.lost_by_now():  # breakpoint: late checkpoint
                raise LeaseLost(lost)
            try:
                async with answering():
                    return await put()
            except StoreDown:
                await asyncio.sleep(AGAIN)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """As the saver counts."""
        return self._saver.get_next_version(current, channel)

    def with_allowlist(self, extra_allowlist: Any) -> "Checkpoints":
        """Itself: its state is made of plain values."""
        return self


def thread_of(run_id: str, fence: int) -> str:
    """The thread of one claim."""
    return f"{run_id}/{fence}"


async def at(saver: BaseCheckpointSaver[Any], named: dict[str, Any]) -> CheckpointTuple | None:
    """The checkpoint of that name."""
    async with answering():
        return await saver.aget_tuple(_config(named["thread"], checkpoint_id=named["id"]))


def _config(thread: str, **more: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **more}}
