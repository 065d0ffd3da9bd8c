"""A table in virtual time: workers that drive discussions, on a floor with LangGraph in memory.

    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.submit()
        await table.until(run, "completed")

    at_table(program)

What a model says is the demo model's, unless a test says it: `table.model.says["critic"] = [...]`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, NOT_DONE, Known, Request
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.discussing import Services, discuss
from labkit.runs.discussion.memory import Memories
from labkit.runs.discussion.models import DemoModel, Models
from labkit.runs.discussion.opening import completed
from labkit.runs.discussion.talk import Call, Talk
from labkit.runs.discussion.toolbox import toolbox
from labkit.runs.job import Job
from labkit.runs.jobs import Once
from labkit.runs.manager import RunPolicy
from labkit.runs.record import AgentRun
from labkit.stores.memory import MemoryKeyStore
from tests.runs.kit import ANN, POLICY, Floor, Line, Worker
from tests.simulation.kit import virtually

Answer = TypeVar("Answer")
ASKS, ACTS = "Which? [needs clarification]", "Which? [needs approval]"
BOTH = f"{ACTS} [needs approval]"


def whole(text: str, finish: str = "stop", calls: tuple[dict[str, Any], ...] = ()) -> AIMessage:
    """An answer that says how it ended."""
    told = {"finish_reason": finish} if finish else {}
    return AIMessage(text, tool_calls=list(calls), response_metadata=told)


def wants(tool: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool, as a model makes it."""
    return {"name": tool, "args": arguments, "id": "any"}


class Scripted(DemoModel):
    """The demo model, but what is said in a role of `says` is what stands there, in this order.

    A text is a whole answer; an error is raised; the last one is said again. `asked`: the roles.
    """

    says: dict[str, list[Any]] = Field(default_factory=dict)
    asked: list[str] = Field(default_factory=list)
    read: list[str] = Field(default_factory=list)

    async def _agenerate(self, messages: Any, *more: Any, **options: Any) -> ChatResult:
        role = str(messages[0].content).partition(".")[0].rpartition(" ")[2]
        self.asked.append(role)
        self.read.append(str(messages[-1].content))
        if role not in self.says:
            return await super()._agenerate(messages, *more, **options)
        words = self.says[role]
        word = words.pop(0) if len(words) > 1 else words[0]
        if isinstance(word, BaseException):
            raise word
        message = whole(word) if isinstance(word, str) else word
        return ChatResult(generations=[ChatGeneration(message=message)])


def models(model: BaseChatModel | None = None, *, pause: float = 1.0) -> Models:
    """Models, of which "fake" is that one."""
    made = Models(pause=pause)
    if model is not None:
        made.add("fake", model)
    return made


class Desk:
    """What has the effects, in memory; each takes some time, and its answer may be `late`.

    What was looked up comes late.
    """

    atomic = False
    cancels = False
    remembers = math.inf
    seconds = 0.5
    late = 0.0
    refuses = False

    def __init__(self) -> None:
        self.effects: list[Any] = []
        self._done: dict[str, str] = {}
        self._looked_up: dict[str, int] = {}

    async def perform(self, request: Request) -> str:
        """Do it."""
        await asyncio.sleep(self.seconds)
        if self.refuses:
            raise ProviderError("not you", kind="permission")
        if request.fence < self._looked_up.get(request.key, 0):
            raise ProviderError("an older claim", kind="permission")
        self.effects.append(request.payload["given"])
        receipt = self._done[request.key] = f"receipt {len(self.effects)}"
        await asyncio.sleep(self.late)
        return receipt

    async def look_up(self, request: Request) -> Known:
        """What became of it; "not done" holds for every older claim."""
        self._looked_up[request.key] = request.fence
        receipt = self._done.get(request.key)
        return Known(DONE, receipt) if receipt else Known(NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        """It cannot."""
        raise NotImplementedError


class Table(Floor):
    """A floor whose workers drive discussions."""

    def __init__(self, policy: RunPolicy = POLICY) -> None:
        super().__init__(policy)
        self.saver: Any = InMemorySaver()
        self.facts = InMemoryStore()
        self.memories: Memories | None = Memories(self.facts, partial(completed, self.store))
        self.desk = Desk()
        self.keys = MemoryKeyStore(self.clock)
        self.model = Scripted(pause=1.0)

    def services(self, name: str = "a", **changed: Any) -> Services:
        """What worker `name` is given."""
        tools, schemas = toolbox(self.desk)
        once = Once(self.keys, self.desk, worker=name, lease=self.policy.lease, random=Random(7))
        given = {
            "saver": self.saver,
            "memories": self.memories,
            "models": models(self.model),
            "tools": tools,
            "schemas": schemas,
            "once": once,
            "clock": self.store.now,
            "random": Random(7),
        }
        return Services(**(given | changed))

    def worker(
        self,
        name: str,
        line: Line | None = None,
        *,
        jobs: Mapping[str, Job] | None = None,
        policy: RunPolicy | None = None,
        deaf: bool = False,
        **changed: Any,
    ) -> Worker:
        """One that serves from now on, with other services where some are `changed`."""
        own: Mapping[str, Job] = {"discussion": partial(discuss, self.services(name, **changed))}
        return super().worker(name, line, jobs=jobs or own, policy=policy, deaf=deaf)

    async def submit(
        self, job: str = "discussion", given: Any = None, *, model: str = "fake", rounds: int = 3
    ) -> AgentRun:
        """A new run of Ann's; what is `given` is its question."""
        return await super().submit(
            job, {"question": given or "Which?", "rounds": rounds}, model=model
        )

    async def say(self, run: AgentRun, answer: Any = "approve", **changed: Any) -> AgentRun:
        """Answer the first thing that a run waits for; what comes next, it does."""
        run = await self.until(run, "awaiting_input")
        ask = asked(run)[0]
        word = {"ask": ask["id"], "answer": answer, "digest": ask.get("digest"), **changed}
        return await self.store.answer(run.run_id, ANN, word, seq=run.seq)

    async def done(self, question: str = "Which?", *answers: str) -> AgentRun:
        """A run to its end, with these answers."""
        run = await self.submit(given=question)
        for answer in answers:
            await self.say(run, answer)
        return await self.until(run, "completed")

    async def steps(self, run: AgentRun) -> list[str]:
        """The steps that were told."""
        events = await self.events(run)
        return [event.data["node"] for event in events if event.type == "node_finished"]

    def threads(self) -> list[str]:
        """Of all checkpoints."""
        return sorted(self.saver.storage)


def at_table(program: Callable[[Table], Awaitable[Answer]], policy: RunPolicy = POLICY) -> Answer:
    """Run `program` at a table of its own, to the end of its workers; what it returns."""
    tables: list[Table] = []

    async def all_of_it() -> Answer:
        tables.append(Table(policy))
        answer = await program(tables[0])
        await tables[0].leave()
        return answer

    try:
        found: Answer = virtually(all_of_it())
        return found
    finally:
        for table in tables:
            table.store.close()


def talk(*turns: Any, **more: Any) -> Talk:
    """A state of a discussion."""
    made: dict[str, Any] = {"question": "Which?", "rounds": 3, "memories": [], "turns": list(turns)}
    return made | more  # type: ignore[return-value]  # a TypedDict by its parts


def call(tool: str = "send_mail", until: float = 100.0, **arguments: Any) -> Call:
    """A call that waits for approval."""
    given = arguments or {"to": "team", "text": "v1"}
    return {"id": "ask-1", "tool": tool, "arguments": given, "until": until}
