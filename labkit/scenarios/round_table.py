"""The floor of the lesson on durable runs: workers that drive discussions, and what they share.

    table = RoundTable(None, observe)
    table.worker("worker-1", RunPolicy(lease=10.0))
    await table.submit("run-1", "Which database?")

The graph, its checkpoints and its memories are LangGraph's, in memory, which is the database here:
it outlives each worker. The way to it takes time, so that a worker can die on it.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from labkit.recovery.stream.record import Owner
from labkit.runs.discussion.approval import APPROVAL, APPROVE
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.discussing import Services, discuss
from labkit.runs.discussion.memory import Memories, Memory
from labkit.runs.discussion.models import DEMO, DemoModel, Models
from labkit.runs.discussion.opening import completed
from labkit.runs.discussion.toolbox import toolbox
from labkit.runs.job import Job
from labkit.runs.manager import RunPolicy
from labkit.runs.record import AgentRun
from labkit.simulation import Observer

from . import naive_talks
from .floor import LINE, OWNER, Floor, NotedStore

JOB: Final = "discussion"
ROUNDS: Final = 3


class NotedSaver(InMemorySaver):
    """LangGraph's saver in memory, as `who` reaches it; it tells what is put, and by whom."""

    who: str = ""
    note: Callable[..., object] = staticmethod(lambda kind, **data: None)

    def __init__(self) -> None:
        super().__init__()
        self.steps: dict[tuple[str, str], int] = {}  # of each thread and checkpoint

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, versions: Any) -> Any:
        """As it is, at the other end of a line."""
        await asyncio.sleep(LINE)
        thread = config["configurable"]["thread_id"]
        there = {each for space in self.storage.values() for ids in space.values() for each in ids}
        kind = "copied" if checkpoint["id"] in there else "checkpoint"
        kept = await super().aput(config, checkpoint, metadata, versions)
        self.steps[thread, checkpoint["id"]] = metadata["step"]
        self.note(kind, thread=thread, step=metadata["step"], by=self.who)
        await asyncio.sleep(LINE)
        return kept


class NotedModel(DemoModel):
    """The demo model; it tells in which role it is asked.

    `drifts()`: another number for each call of a tool. `blocks(role)`: done at the end of each.
    """

    note: Any = None
    drifts: Any = None
    blocks: Any = None

    async def _agenerate(self, messages: Any, *more: Any, **options: Any) -> Any:
        role = str(messages[0].content).partition(".")[0].rpartition(" ")[2]
        self.note("asked", role=role)
        said = await super()._agenerate(messages, *more, **options)
        message: Any = said.generations[0].message
        for call in message.tool_calls if self.drifts else ():
            call["args"] = {**call["args"], "title": f"Try plan v{self.drifts()}"}
        self.blocks(role)
        return said


class NotesRecall(Memories):
    """Memories that tell of which runs they are, when they are loaded."""

    note: Callable[..., object] = staticmethod(lambda kind, **data: None)

    async def of(self, owner: Owner, *, most: int = 50) -> list[Memory]:
        """As they are."""
        await asyncio.sleep(LINE)
        found = await super().of(owner, most=most)
        self.note("recalled", runs=",".join(sorted({each.run_id for each in found})))
        return found


class NotesSteps(NotedStore):
    """A run store that tells of each step its name, and which checkpoint the row names."""

    steps: Mapping[tuple[str, str], int]

    def _told(
        self, connection: sa.Connection, row: sa.Row[Any], event: str, data: dict[str, Any]
    ) -> AgentRun:
        run = super()._told(connection, row, event, data)
        if named := run.checkpoint:
            step = self.steps[named["thread"], named["id"]]
            self._done[-1][1]["names"] = f"{named['thread']} step {step}"
        if "node" in data:
            self._done.append(("step", {"run": row.run_id, "by": self.who, "node": data["node"]}))
        return run


class RoundTable(Floor):
    """The store of runs, the checkpoints, the memories, the service with effects, and workers.

    `pause`: seconds of a call to a model. `naive`: the names in `naive_talks` of what gets one
    thing wrong. `drifts`: the model never says the same twice. `blocks`: for how many seconds the
    first call in a role holds up its whole process, as code does that never waits.
    """

    def __init__(
        self,
        script: object,
        observe: Observer,
        *,
        pause: float = 1.0,
        naive: Mapping[str, str] | None = None,
        drifts: bool = False,
        blocks: Mapping[str, float] | None = None,
        **how: Any,
    ) -> None:
        told = {part: getattr(naive_talks, name) for part, name in (naive or {}).items()}
        kinds: tuple[type, ...] = (NotesSteps, told.pop("store", NotedStore))
        self._saver = NotedSaver()
        self._saver.note = observe.of("checkpoints")
        kind = type("TalkStore", kinds, {"steps": self._saver.steps})
        super().__init__(script, observe, store=kind, **how)
        kinds = (NotesRecall, told.pop("memories", Memories))
        make: Any = type("NotedMemories", kinds, {"note": staticmethod(observe.of("memories"))})
        self._memories = make(InMemoryStore(), partial(completed, self.store))
        self._job = partial(discuss, **told)
        numbers = partial(next, itertools.count(1))
        self._model: dict[str, Any] = {"pause": pause, "drifts": numbers if drifts else None}
        self._blocks = dict(blocks or {})

    async def submit(self, run_id: str, question: str, model: str = DEMO[0]) -> None:
        """One more discussion of the owner's."""
        given = {"question": question, "rounds": ROUNDS}
        await self.store.submit(JOB, given, owner=OWNER, model=model, run_id=run_id)

    async def say(self, run_id: str, word: str) -> None:
        """Answer what waits longest; to a tool's call the word is "approve" or "reject"."""
        run = await self.store.get(run_id, OWNER)
        ask = asked(run)[0]
        if ask["kind"] == APPROVAL and word == APPROVE:
            told = {"name": ask["tool"], "arguments": json.dumps(ask["arguments"])}
            self.observe.of("ann")("approved", **told)
        said = {"ask": ask["id"], "answer": word, "digest": ask.get("digest", "")}
        await self.store.answer(run_id, OWNER, said, seq=run.seq)

    def _block(self, name: str, role: str) -> None:
        if seconds := self._blocks.pop(role, 0.0):
            self.workers[name].process.freeze(seconds)

    def _jobs(self, name: str, policy: RunPolicy, observe: Observer) -> dict[str, Job]:
        models = Models()
        for each, demo in zip(DEMO, map(models, DEMO), strict=True):
            assert isinstance(demo, DemoModel)
            own: dict[str, Any] = {
                "note": observe,
                "breaks": demo.breaks,
                "blocks": partial(self._block, name),
            }
            models.add(each, NotedModel(**{**own, **self._model}))
        saver = copy(self._saver)
        saver.who = name
        tools, schemas = toolbox(self._warehouse)
        services = Services(
            saver=saver,
            memories=self._memories,
            models=models,
            tools=tools,
            schemas=schemas,
            once=self._once(name, policy, observe),
            clock=self.store.now,
            random=observe.random,
        )
        return {JOB: partial(self._job, services)}
