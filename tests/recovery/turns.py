"""Plays one turn in virtual time, strikes it where a test asks, and says which promise is broken.

world = play_turn(REFERENCE)                   # three calls in two batches, then text
world = play_turn(REFERENCE, strikes=[17])     # its task is cancelled as the 17th step is passed
broken(world)                                  # [] where every promise holds
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from labkit.recovery.cancel import to_the_end
from labkit.recovery.checkpoint import Checkpointer, MemorySessions
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.mailbox import Mailbox
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import (
    ASSISTANT,
    DONE,
    NOTE,
    TOOL,
    UNKNOWN,
    USER,
    Message,
    Session,
)
from labkit.recovery.stream.record import Owner
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import Ask, TurnServices, run_turn
from labkit.simulation.faults import FaultyLoop

OWNER = Owner("ann", "acme")
POLICY = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0, jitter=0)
QUESTION = "Where is it?"

Step = Delta | float | Exception


def call(call_id: str, name: str = "read", arguments: str = "{}", index: int = 0) -> Delta:
    """A whole tool call in one piece."""
    return Delta("tool_call", arguments, index=index, call_id=call_id, name=name)


def say(text: str) -> Delta:
    """A visible piece of text."""
    return Delta("text", text)


def asks(*answers: Sequence[Step]) -> Ask:
    """A model that gives these answers one after the other, and the last one for ever.

    A number is a wait in seconds, an exception is raised, and the finish reason comes by itself.
    """
    left = list(answers)

    async def ask(history: Sequence[Message], attempt: int) -> AsyncGenerator[Delta, None]:
        answer = left.pop(0) if len(left) > 1 else left[0]
        reason = "stop"
        for step in answer:
            if isinstance(step, Exception):
                raise step
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            reason = "tool_calls" if step.kind == "tool_call" else step.reason or reason
            yield step
        if not answer or not isinstance(answer[-1], Delta) or answer[-1].kind != "finish":
            yield Delta("finish", reason=reason)

    return ask


REFERENCE: Sequence[Sequence[Step]] = (
    [say("Let me look. "), call("a"), call("b", index=1), call("c", "write", index=2)],
    [say("It is "), 0.1, say("sent.")],
)


class Striking(FaultyLoop):
    """Cancels `turn` as it passes the steps numbered `strikes`: each suspension of any task, and
    each wake-up, while the turn is going on."""

    def __init__(self, strikes: Collection[int]) -> None:
        super().__init__(self._step)
        self.turn: asyncio.Task[Any] | None = None
        self.steps = 0
        self.struck = 0
        self._begun = False
        self._strikes = strikes

    def _step(self, task: asyncio.Task[Any], number: int, phase: str) -> None:
        if self.turn is None or self.turn.done():
            return
        if not self._begun:  # a turn that has not begun keeps nothing: its dispatcher does
            self._begun = task is self.turn
            return
        if self.steps in self._strikes:
            self.struck += 1
            self.turn.cancel()
        self.steps += 1


@dataclass
class World:
    """What is left of a turn, and what came before its end."""

    store: Any
    keeper: Checkpointer
    mailbox: Mailbox
    shown: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)  # the calls that had their effect
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answer: str | None = None
    error: BaseException | None = None
    left_over: list[str] = field(default_factory=list)
    unhandled: list[Any] = field(default_factory=list)
    steps: int = 0
    struck: int = 0

    @property
    def session(self) -> Session:
        return self.keeper.session

    @property
    def stored(self) -> Session | None:
        return self.store.kept.get(self.session.session_id)  # type: ignore[no-any-return]

    def statuses(self) -> dict[str, str]:
        """The status of each call's result."""
        return {row.call_id: row.status for row in self.session.history if row.role == TOOL}

    def observe(self, kind: str, **told: Any) -> None:
        self.told.append((kind, told))

    def steps_told(self) -> list[str]:
        return [told["step"] for kind, told in self.told if kind == "checkpoint"]


def tools_of(world: World) -> ToolRegistry:
    """`read` may run beside its neighbours; each has its effect half way, and cleans up slowly."""

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        name = asyncio.current_task().get_name().removeprefix("tool ")  # type: ignore[union-attr]
        try:
            await asyncio.sleep(0.1 if name != "b" else 0.3)
            world.ran.append(name)
            await asyncio.sleep(0.1)
        finally:
            await to_the_end(asyncio.sleep(0.02 if name != "b" else 0.2), name=f"clean-up {name}")
        return f"result of {name}"

    return ToolRegistry(Tool(name="read", run=run, concurrent=True), Tool(name="write", run=run))


def play_turn(
    answers: Sequence[Sequence[Step]],
    *,
    ask: Ask | None = None,
    strikes: Collection[int] = (),
    store: Any = None,
    session: Session | None = None,
    tools: Callable[[World], ToolRegistry] = tools_of,
    mailbox: Mailbox | None = None,
    show: Callable[[str], object] | None = None,
    stopped: Callable[[], bool] = lambda: True,
    policy: RetryPolicy = POLICY,
    meanwhile: Callable[[World, asyncio.Task[Any]], Any] | None = None,
) -> World:
    """Run one turn to its end, whatever that is; `meanwhile(world, task)` runs beside it."""
    store = MemorySessions(delay=0.05) if store is None else store
    world: World
    keeper = Checkpointer(
        session or Session("ann"), store.write, lambda kind, **told: world.observe(kind, **told)
    )
    world = World(store, keeper, Mailbox() if mailbox is None else mailbox)

    def shown(text: str) -> None:
        world.shown.append(text)
        if show:
            show(text)

    services = TurnServices(
        ask=ask or asks(*answers),
        show=shown,
        said=world.said.append,
        policy=policy,
        random=Random(0),
        observe=world.observe,
        tools=tools(world),
        owner=OWNER,
        stopped=stopped,
        now=lambda: 0.0,
    )
    loop = Striking(strikes)

    async def work() -> None:
        loop.turn = turn = asyncio.create_task(
            run_turn(QUESTION, keeper, services, world.mailbox), name="turn"
        )
        beside = asyncio.create_task(meanwhile(world, turn)) if meanwhile else None
        await asyncio.wait([turn])
        if beside:
            await asyncio.wait([beside])
            beside.result()

    try:
        loop.run_until_complete(work())
        world.left_over = [task.get_name() for task in loop.left_over()]
        assert loop.turn is not None
        if loop.turn.cancelled():
            world.error = asyncio.CancelledError()
        else:
            world.error = loop.turn.exception()
            world.answer = None if world.error else loop.turn.result()
        world.unhandled = [*loop.unhandled, *(task.get_name() for task in loop.tasks.unseen())]
        world.steps, world.struck = loop.steps, loop.struck
    finally:
        loop.close()
    return world


def broken(world: World) -> list[str]:
    """The promises that are not kept, of whatever interrupted turn."""
    session, told = world.session, []
    rows = session.messages
    asked = [call.call_id for row in rows for call in row.calls]
    results = [row.call_id for row in rows if row.role == TOOL]
    if Counter(asked) != Counter(results) or results != asked:
        told.append(f"calls {asked}, results {results}")
    status = world.statuses()
    told += [
        f"{name} ran and is {status.get(name)}"
        for name in world.ran
        if status.get(name) not in (DONE, UNKNOWN)
    ]
    told += [
        f"{name} is done and never ran"
        for name, end in status.items()
        if not (end != DONE or name in world.ran)
    ]
    texts = [row.content for row in rows if row.role == ASSISTANT and row.content]
    if world.said != texts[: len(world.said)]:
        told.append(f"said {world.said}, kept {texts}")
    kept = "".join(texts) + "".join(draft.text for draft in session.drafts)
    if not kept.startswith("".join(world.shown)):
        told.append(f"shown {world.shown}, kept {kept!r}")
    if session.turn is not None:
        told.append("a turn is still open")
    if not rows or (rows[0].role, rows[0].content) != (USER, QUESTION):
        told.append("the question is gone")
    answered = rows[-1].role == ASSISTANT and not rows[-1].calls
    closed = rows[-1].role == NOTE
    if answered == closed or (answered and session.drafts):
        told.append(f"two outcomes: {rows[-1]}, {session.drafts}")
    if world.stored != session:
        told.append(f"stored {world.stored}, in memory {session}")
    told += [f"{name} is left running" for name in world.left_over]
    told += [f"nobody saw {what}" for what in world.unhandled]
    return told
