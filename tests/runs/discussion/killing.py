"""Discussions whose workers are killed, or stopped past their lease, at every step.

    told = await Killing(url, ledger).run()
    told.runs["done:critic kill"], told.entered["done:critic kill"]

Nothing is left to luck or to the time: a worker stops itself where it was told to; what has a lease
is made free by moving the end of the lease; a zombie wakes when all runs are completed.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from labkit.recovery.run_states import AWAITING, COMPLETED, IllegalMove
from labkit.recovery.stream.record import Owner
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.memory import Memory
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.opening import open_discussion
from labkit.runs.opening import open_run_store
from labkit.runs.record import AgentRun, RunEvent
from labkit.services.ledger import Ledger
from tests.runs.storing import later
from tests.runs.workers import ROOT

from .kill_worker import NODES

POINTS = [f"{when}:{node}" for node in NODES for when in ("done", "put", "row")]
SLEPT = ("tool", "critic", "remember")
SLEPT_AT = [(when, node) for node in SLEPT for when in ("done", "put")]
FRESH = "undisturbed"
LEASE = 60.0
AT_ONCE = 4
QUESTION = "Which? [needs clarification] [needs approval] [needs approval]"


@dataclass
class Told:
    """What came of the runs, by their names; `woken`: the same after the zombies have woken."""

    runs: dict[str, AgentRun] = field(default_factory=dict)
    events: dict[str, list[RunEvent]] = field(default_factory=dict)
    memories: dict[str, list[Memory]] = field(default_factory=dict)
    effects: Counter[str] = field(default_factory=Counter)


class Nursery:
    """The process whose children work, and what they say."""

    def __init__(self) -> None:
        self.pids: dict[str, int] = {}
        self.told: list[dict[str, Any]] = []
        self._news = asyncio.Event()

    async def __aenter__(self) -> Nursery:
        pipe = asyncio.subprocess.PIPE
        line = (sys.executable, "-m", "tests.runs.discussion.kill_worker")
        self._process = await asyncio.create_subprocess_exec(
            *line, stdin=pipe, stdout=pipe, cwd=ROOT
        )
        self._hearing = asyncio.create_task(self._hear())
        await self.says("ready", None)
        return self

    async def __aexit__(self, *error: object) -> None:
        for name in self.pids:
            self.send(name, signal.SIGKILL)
        self._process.kill()
        await self._process.wait()
        await self._hearing

    async def start(self, name: str, **order: Any) -> None:
        """A worker."""
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps({"name": name, **order}) + "\n").encode())
        self.pids[name] = (await self.says("started", name))["pid"]

    async def says(self, kind: str, name: str | None) -> dict[str, Any]:
        """Wait for such a line of a worker."""
        while True:
            self._news.clear()
            for told in self.told:
                if (told["kind"], told["name"]) == (kind, name):
                    return told
            assert not self._hearing.done(), f"it ended without {kind!r} of {name}"
            await self._news.wait()

    def send(self, name: str, what: signal.Signals) -> None:
        """A signal to a worker, if it is there."""
        with suppress(ProcessLookupError):
            os.kill(self.pids[name], what)

    async def _hear(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self.told.append(json.loads(line))
            self._news.set()
        self._news.set()


class Killing:
    """A run for each point and way, and one that is left alone."""

    def __init__(self, url: str, ledger: Path) -> None:
        self._url = url
        self._ledger = ledger
        self._store = open_run_store(url)
        self._names = {f"{point} kill": point for point in POINTS}
        self._names |= {f"{when}:{node} stop": f"{when}:{node}" for when, node in SLEPT_AT}
        self._runs: dict[str, AgentRun] = {}
        self._order = {"url": url, "ledger": str(ledger), "lease": LEASE, "pause": 0.0}

    async def run(self) -> tuple[Told, Told, list[dict[str, Any]]]:
        """What there was before the zombies woke, and after; and what the workers said."""
        store = self._store
        try:
            for name in (*self._names, FRESH):
                self._runs[name] = await store.submit(
                    "discussion",
                    {"question": QUESTION, "rounds": 3},
                    owner=Owner(name, "acme"),
                    model="fake",
                )
            async with Nursery() as nursery:
                person = asyncio.create_task(self._person())
                room = asyncio.Semaphore(AT_ONCE)
                await asyncio.gather(*(self._strike(nursery, room, name) for name in self._names))
                await later(store, 10 * LEASE)
                for name in ("finisher-1", "finisher-2"):
                    await nursery.start(name, **self._order)
                await person
                before = await self._look()
                for name, point in self._names.items():
                    if name == f"{point} stop":
                        nursery.send(name, signal.SIGCONT)
                        await nursery.says("ended", name)
                return before, await self._look(), nursery.told
        finally:
            store.close()

    async def _strike(self, nursery: Nursery, room: asyncio.Semaphore, name: str) -> None:
        async with room:
            point, run = self._names[name], self._runs[name]
            await nursery.start(name, run=run.run_id, halt=point, **self._order)
            await nursery.says("at", name)
            if point == "done:ask_human":  # the answer that is there is the one that counts
                with pytest.raises(IllegalMove):
                    await self._store.answer(run.run_id, run.owner, "another")
            if name.endswith("kill"):
                nursery.send(name, signal.SIGKILL)

    async def _person(self) -> None:
        """Answer everything, until every run is completed."""
        waiting = set(self._runs)
        while waiting:
            await asyncio.sleep(0.05)
            for name in sorted(waiting):
                before = self._runs[name]
                run = await self._store.get(before.run_id, before.owner)
                if run.status == COMPLETED:
                    waiting.remove(name)
                elif run.status == AWAITING:
                    ask = asked(run)[0]
                    word = {"ask": ask["id"], "answer": "approve", "digest": ask.get("digest")}
                    await self._store.answer(run.run_id, run.owner, word, seq=run.seq)
                else:
                    assert run.status != "failed", (name, run.error_code, run.error_message)

    async def _look(self) -> Told:
        told = Told()
        how: Any = {"ledger": str(self._ledger), "worker": "looks", "lease": LEASE}
        async with open_discussion(self._url, self._store, models=Models(), **how) as made:
            for name, run in self._runs.items():
                told.runs[name] = await self._store.get(run.run_id, run.owner)
                told.events[name] = await self._store.events(run.run_id, run.owner)
                told.memories[name] = await made.memories.of(run.owner)
        told.effects = Counter(key for key, _ in Ledger(self._ledger).effects())
        return told
