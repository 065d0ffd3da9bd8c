"""Plays made-up streams to the recovering client in virtual time, and keeps what everybody saw.

played = play([[say("Hel"), DROP], [say("Hello"), FINISH]], can_continue=True)
played.record.text, played.page, played.requests
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.providers.fake import FakeProvider
from labkit.providers.script import script
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.stream import Owner, StreamEvent, StreamRequest, StreamRun
from labkit.recovery.stream.client import recovering_answer
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.receiving import Services
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.simulation import Observer, Run, Scenario, simulate
from labkit.stores.memory import MemoryStreamStore

FINISH = {"finish": "stop"}
CALLS = {"finish": "tool_calls"}
DROP = {"drop": True}
POLICY = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0, jitter=0)
QUESTION = StreamRequest("Where is my refund?")
OWNER = Owner("ann", "acme")


def say(text: str, wait: float = 0.0) -> dict[str, Any]:
    return {"wait": wait, "say": text}


def call(arguments: str, call_id: str = "c1", name: str = "create_ticket") -> dict[str, Any]:
    return {"call": {"index": 0, "id": call_id, "name": name, "arguments": arguments}}


@dataclass
class Played:
    """What came of it: the record, what the page was told, the requests, the tools' effects."""

    run: Run = field(init=False)
    store: MemoryStreamStore = field(default_factory=MemoryStreamStore)
    page: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    effects: list[Mapping[str, Any]] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def record(self) -> StreamRun:
        """As a new process would find it."""
        return self.store.load("run-1", OWNER)

    @property
    def shown(self) -> str:
        """The page's text; a bar stands where a segment was closed."""
        told = [(kind, data) for kind, data in self.page if kind in ("text_delta", "segment_end")]
        return "".join(data["text"] if kind == "text_delta" else "|" for kind, data in told)

    @property
    def states(self) -> list[str]:
        """What the page's status line said, one after the other."""
        return [data["state"] for kind, data in self.page if kind == "status"]

    def told(self, kind: str) -> list[dict[str, Any]]:
        """The data of each event of a kind that the page was told."""
        return [data for name, data in self.page if name == kind]


Resume = Callable[[StreamRun], AsyncGenerator[StreamEvent, None]]


def play(
    attempts: Sequence[Sequence[dict[str, Any]]],
    *,
    request: StreamRequest = QUESTION,
    stop_at: float | None = None,
    played: Played | None = None,
    by_hand: bool = False,
    tool: Tool | None = None,
    resume: Resume | None = None,
    **services: Any,
) -> Played:
    """Play `attempts` to the client; `by_hand` goes on with the record that `played` has kept."""
    played = played or Played()

    async def create_ticket(arguments: Mapping[str, Any], key: str) -> str:
        played.effects.append(arguments)
        return f"ticket {len(played.effects)}"

    tools = ToolRegistry(tool or Tool(name="create_ticket", run=create_ticket))

    def noted(kind: str, **data: Any) -> None:
        if kind == "choice":
            played.choices.append(data["action"])
        if kind == "wait":
            played.waits.append(data["seconds"])

    async def client(provider: FakeProvider, policy: RetryPolicy, observe: Observer) -> None:
        def ask(request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
            played.requests.append(request)
            return provider.stream(attempt)

        brought = Services(
            ask=ask,
            save=played.store.save,
            page=lambda kind, **data: played.page.append((kind, data)),
            policy=policy,
            random=observe.random,
            tools=tools,
            resume=resume,
            observe=noted,
            now=observe.now,
            **services,
        )
        begun = played.record if by_hand else StreamRun("run-1", OWNER, request)
        record = begun if by_hand else played.store.create(begun)
        task = asyncio.create_task(recovering_answer(record, brought))
        await asyncio.wait([task], timeout=stop_at)
        if stop_at is not None and not task.done():
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()

    told = script({"name": "made up", "attempts": attempts})
    played.run = simulate(
        Scenario(
            name="made up",
            claim="made up for a test",
            script=told,
            make=FakeProvider,
            client=client,
            policy=POLICY,
        )
    )
    if played.run.error is not None:
        raise played.run.error
    return played
