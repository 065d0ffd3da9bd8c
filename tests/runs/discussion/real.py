"""A worker of discussions in this process, on a real database.

async with at_work(url, tmp_path) as desk:
    run = await desk.done("Which?")
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from labkit.recovery.stream.record import Owner
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.opening import Discussion, open_discussion
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import open_run_store
from labkit.runs.record import AgentRun
from labkit.runs.store import RunStore
from tests.runs.storing import OWNER


class Real:
    """The store, the discussion, and who works on them."""

    def __init__(self, store: RunStore, discussion: Discussion) -> None:
        self.store = store
        self.discussion = discussion

    async def done(self, question: str, answer: str = "approve", owner: Owner = OWNER) -> AgentRun:
        """A run to its end, with this answer to all."""
        given = {"question": question, "rounds": 3}
        run = await self.store.submit("discussion", given, owner=owner, model="fake")
        while (run := await self.store.get(run.run_id, owner)).status not in (
            "completed",
            "failed",
        ):
            if run.status == "awaiting_input":
                ask = asked(run)[0]
                word = {"ask": ask["id"], "answer": answer, "digest": ask.get("digest")}
                await self.store.answer(run.run_id, owner, word, seq=run.seq)
            await asyncio.sleep(0.01)
        return run


@asynccontextmanager
async def at_work(url: str, folder: Path, models: Any = None) -> AsyncIterator[Real]:
    """One worker, as long as the block lasts."""
    store = open_run_store(url)
    how: Any = {"ledger": str(folder / "effects.db"), "worker": "w", "lease": 30.0}
    async with open_discussion(url, store, models=models or Models(), **how) as discussion:
        policy = RunPolicy()
        manager = RunManager(store, {"discussion": discussion.job}, worker="w", policy=policy)
        serving = asyncio.create_task(manager.serve())
        yield Real(store, discussion)
        await manager.shutdown()
        await serving
    store.close()
