"""Plays messages to a dispatcher in virtual time, and says which of its promises is broken.

desk = dispatch([Arrival(0, "A", "hello"), Arrival(0.5, "A", "/stop")], limit=1)
broken(desk)                 # [] where every promise holds
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from labkit.recovery.cancel import to_the_end
from labkit.recovery.dispatch import STATUS, STOP, Concurrency, Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.simulation.faults import FaultyLoop

STEP = 1.0  # seconds from one look into the mailbox to the next
LOOKS = 2  # looks after which a turn ends whatever is in its mailbox


class Arrival(NamedTuple):
    """A message and its time; equal times arrive in one go."""

    at: float
    session: str
    text: str


class Handled(NamedTuple):
    """What came of a message: turn, injected, dropped, unanswered, or left in the mailbox."""

    how: str
    session: str
    text: str


@dataclass
class Desk:
    """A dispatcher at work, and a ledger of what came of each message."""

    arrivals: Sequence[Arrival]
    limit: int = 3
    room: int = 20
    ledger: list[Handled] = field(default_factory=list)
    answers: list[tuple[str, str]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    starts: list[tuple[float, str]] = field(default_factory=list)
    active: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)  # at once, by session, and "" for all
    left_over: list[str] = field(default_factory=list)
    unhandled: list[Any] = field(default_factory=list)
    steps: int = 0
    closing: bool = False
    closed: int | None = None
    late: list[str] = field(default_factory=list)  # turns that began after the close had begun
    end: float = 0.0

    def __post_init__(self) -> None:
        self.inbound: asyncio.Queue[Inbound] = asyncio.Queue()
        self.dispatcher = Dispatcher(
            self.handle,
            answer=lambda message, text: self.answers.append((message.text, text)),
            unanswered=self.unanswered,
            concurrency=Concurrency(limit=self.limit, room=self.room),
            observe=self.observe,
        )

    def note(self, how: str, message: Inbound) -> None:
        self.ledger.append(Handled(how, message.session, message.text))

    def observe(self, kind: str, **told: Any) -> None:
        self.events.append((kind, told))
        if kind == "dropped":
            self.ledger.append(Handled("dropped", told["session"], told["message"]))

    async def unanswered(self, message: Inbound) -> None:
        await asyncio.sleep(0.1)
        self.note("unanswered", message)

    async def handle(self, message: Inbound, mailbox: Mailbox) -> None:
        """A turn: it looks into its mailbox from time to time, and cleans up slowly."""
        self.note("turn", message)
        if self.closing:
            self.late.append(message.text)
        self.starts.append((asyncio.get_running_loop().time(), message.text))
        for name in (message.session, ""):
            self.active[name] += 1
            self.most[name] = max(self.most[name], self.active[name])
        try:
            if "fails" in message.text:
                raise LookupError("no such thing")
            for look in range(LOOKS):
                await asyncio.sleep(STEP)
                if mailbox.finish(anyway=look == LOOKS - 1):
                    break
                while letter := mailbox.take():
                    self.note("injected", letter)
            await to_the_end(asyncio.sleep(0.1))  # the answer is being saved
        finally:
            try:
                await to_the_end(asyncio.sleep(0.2))
            finally:
                for name in (message.session, ""):
                    self.active[name] -= 1

    async def close(self) -> None:
        self.closing = True
        self.closed = await self.dispatcher.close()
        assert self.active[""] == 0  # it has waited for the turns

    async def arrive(self) -> None:
        clock = asyncio.get_running_loop().time
        for arrival in self.arrivals:
            if arrival.at > clock():
                await asyncio.sleep(arrival.at - clock())
            self.inbound.put_nowait(Inbound(arrival.session, arrival.text))


async def close(desk: Desk) -> None:
    """As a gateway ends: what takes messages in first, then the turns."""
    (taking,) = [task for task in asyncio.all_tasks() if task.get_name() == "run"]
    taking.cancel()
    await desk.close()


def dispatch(
    arrivals: Sequence[Arrival],
    *,
    limit: int = 3,
    room: int = 20,
    at_step: int | None = None,
    act: Callable[[Desk], Any] | None = None,
) -> Desk:
    """Play the arrivals until nothing is left to do; `act(desk)` runs as step `at_step` passes."""
    now = asyncio.Event()
    desk: Desk
    begun = False

    def step(task: asyncio.Task[Any], number: int, phase: str) -> None:
        if begun:
            if desk.steps == at_step:
                now.set()
            desk.steps += 1

    async def acts() -> None:
        await now.wait()
        assert act
        await act(desk)

    async def work() -> None:
        nonlocal begun
        taking = asyncio.create_task(desk.dispatcher.run(desk.inbound), name="run")
        acting = asyncio.create_task(acts(), name="act") if act else None
        begun = True
        await desk.arrive()
        if acting and at_step is not None:
            done, _ = await asyncio.wait([acting], timeout=1000)
            for task in done:
                task.result()
        await asyncio.sleep(1)
        await desk.dispatcher.idle()
        await asyncio.sleep(1)  # commands may still be answering
        desk.end = asyncio.get_running_loop().time()
        await desk.dispatcher.close()  # what came after an earlier close is told now
        others = [taking, *([acting] if acting else [])]
        for task in others:
            task.cancel()
        await asyncio.wait(others)

    loop = FaultyLoop(step)
    try:
        desk = Desk(arrivals, limit, room)
        loop.run_until_complete(work())
        desk.left_over = [task.get_name() for task in loop.left_over()]
        desk.unhandled = [*loop.unhandled, *(task.get_name() for task in loop.tasks.unseen())]
    finally:
        loop.close()
    return desk


def broken(desk: Desk) -> list[str]:
    """The promises that are not kept, whatever was stopped, dropped or closed meanwhile."""
    told = []
    texts = [arrival.text for arrival in desk.arrivals]
    priority = [text for text in texts if text.split()[0] in (STOP, STATUS)]
    for text in texts:
        count = sum(one.text == text for one in desk.ledger)
        if count != (text not in priority):
            told.append(f"{text!r} was handled {count} times")
    for session in {arrival.session for arrival in desk.arrivals}:
        came = [a.text for a in desk.arrivals if a.session == session and a.text not in priority]
        went = [one.text for one in desk.ledger if one.session == session and one.how != "dropped"]
        if went != [text for text in came if text in went]:
            told.append(f"{session}: came {came}, went {went}")
    for one in desk.ledger:
        if one.how == "injected" and one.text.startswith("/"):
            told.append(f"{one.text} was injected")
    answered = Counter(text for text, _ in desk.answers if text in priority)
    told += [
        f"{text} was answered {answered[text]} times" for text in priority if answered[text] != 1
    ]
    if desk.limit > 0 and desk.most[""] > desk.limit:
        told.append(f"{desk.most['']} turns at once")
    told += [
        f"{desk.most[name]} turns of {name} at once"
        for name in desk.most
        if name and (desk.most[name] > 1)
    ]
    told += [f"{text} began after the close" for text in desk.late]
    if desk.dispatcher.lanes:
        told.append(f"lanes are left: {desk.dispatcher.lanes}")
    told += [f"{name} is left running" for name in desk.left_over]
    told += [f"nobody saw {what}" for what in desk.unhandled]
    return told
