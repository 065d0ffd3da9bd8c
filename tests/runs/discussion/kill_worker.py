"""Workers of discussions that stop where a test says, each a process forked from one nursery.

python -m tests.runs.discussion.kill_worker        # one order a line, as JSON, on stdin

An order: `name`, `url`, `ledger`, `lease`, `pause`; `run`, the one run that it claims, if any;
`halt`, where it says "at" and sends itself SIGSTOP. Halts: "done:NODE" when a step has done
everything and nothing of it is kept, "put:NODE" when its checkpoint is, "row:NODE" when the run's
row is, all before whatever comes next. It ends when its run has.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

# Loaded now, since each child would load them anew.
import langgraph.checkpoint.postgres.aio
import langgraph.checkpoint.sqlite.aio
import langgraph.store.postgres.aio
import langgraph.store.sqlite.aio  # noqa: F401

from labkit.runs import database
from labkit.runs.discussion.checkpoints import Checkpoints
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.nodes import Nodes
from labkit.runs.discussion.opening import open_discussion
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import BEGIN
from labkit.runs.record import Held
from labkit.runs.store import RunStore
from labkit.stores.opening import opened

NODES = ("recall", "coordinator", "ask_human", "proposer", "tool", "critic", "summarise")
NODES = (*NODES, "remember")
ORDER: dict[str, Any] = {}
STORES: list[RunStore] = []
LAST = [""]  # the step that was done last


def say(kind: str, **told: Any) -> None:
    """One line, whole."""
    os.write(1, (json.dumps({"kind": kind, "name": ORDER.get("name"), **told}) + "\n").encode())


def halt(point: str) -> None:
    """Stop here, if that is the order, and only once."""
    if point != ORDER.get("halt"):
        return
    ORDER["halt"] = None
    for store in STORES:
        for pool in store._pools:  # none of its threads holds a lock meanwhile
            pool.submit(int).result()
    say("at", point=point)
    os.kill(os.getpid(), signal.SIGSTOP)


class HaltingStore(RunStore):
    """A store that halts after a step's row, and claims what it is told to."""

    async def claim(self, worker: str, **how: Any) -> Held | None:
        """That run, or any."""
        return await super().claim(worker, **{**how, "run_id": ORDER.get("run")})

    async def step(self, held: Held, data: dict[str, Any], *, checkpoint: Any) -> Held:
        """As it is, then the halt."""
        held = await super().step(held, data, checkpoint=checkpoint)
        halt(f"row:{data['node']}")
        return held


class HaltingCheckpoints(Checkpoints):
    """Checkpoints that halt after each."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        """As it is, then the halt."""
        kept = await super().aput(config, checkpoint, metadata, versions)
        if metadata["source"] == "loop":
            halt(f"put:{LAST[0]}")
        return kept


class HaltingNodes(Nodes):
    """Steps that tell when they begin, and what they ask a model; they halt at their end."""

    def __init__(self, run: Any, speaker: Any, *more: Any) -> None:
        async def asked(role: str, talk: Any) -> Any:
            say("model", run=run.run_id, role=role)
            return await speaker(role, talk)

        super().__init__(run, asked, *more)  # type: ignore[arg-type]  # as it is called


def halting(name: str) -> Any:
    """That step, with the halt."""
    step: Callable[..., Any] = getattr(Nodes, name)

    @wraps(step)
    async def node(self: Any, given: Any) -> Any:
        say("node", run=self._run.run_id, node=name)
        done = await step(self, given)
        LAST[0] = name
        halt(f"done:{name}")
        return done

    return node


for _name in NODES:
    setattr(HaltingNodes, _name, halting(_name))


async def work() -> None:
    """Do runs until this worker's own has ended."""
    over = asyncio.Event()

    def observe(kind: str, **told: Any) -> None:
        if kind == "driven" and told["ended"] != "awaiting_input" and ORDER.get("run"):
            say("driven", ended=told["ended"])
            over.set()

    database.THREADS = 1  # type: ignore[misc]  # so that `halt` can wait for them
    url, name, lease = ORDER["url"], ORDER["name"], ORDER["lease"]
    store = opened(url, HaltingStore, begin=BEGIN)
    STORES.append(store)
    how: Any = {"ledger": ORDER["ledger"], "worker": name, "lease": lease}
    async with open_discussion(url, store, models=Models(pause=ORDER["pause"]), **how) as made:
        job = partial(made.job, nodes=HaltingNodes, checkpoints=HaltingCheckpoints)  # type: ignore[call-arg]  # as it is
        policy = RunPolicy(lease=lease, watchdog=0.1, capacity=1 if ORDER.get("run") else 4)
        manager = RunManager(
            store, {"discussion": job}, worker=name, policy=policy, observe=observe
        )
        serving = asyncio.create_task(manager.serve())
        await over.wait()
        await manager.shutdown()
        await serving
    store.close()
    say("ended")


def main() -> None:
    """Fork a worker for each order."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    say("ready")
    for line in sys.stdin:
        ORDER.update(json.loads(line))
        if pid := os.fork():
            say("started", pid=pid)
            ORDER.clear()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            asyncio.run(work())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


if __name__ == "__main__":
    main()
