"""The office of the session lessons: a provider, tools, stored sessions and a page.

    office = Office(script, observe)
    await office.turn("Where is my refund?", policy)       # the session is in office.store

Two of its tools read and may run side by side. The third adds a note to a file: it reads what is
there, works, and writes it back with one note more, so that two at once lose one of the notes.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery.checkpoint import Checkpointer, MemorySessions
from labkit.recovery.deltas import Delta
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import TOOL, Message, Session, unanswered
from labkit.recovery.stream.record import Owner
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.simulation import Observer

QUESTION: Final = "Where is my refund?"
SECONDS: Final = 0.5  # of each tool


class Office:
    """Sessions are kept in `store`, each write takes `writing` seconds; `notes` is the file.

    `memory` is the checkpointer in use. With `trusting` every tool is declared safe, which is not
    so.
    """

    def __init__(
        self,
        script: Script,
        observe: Observer,
        *,
        writing: float = 0.0,
        memory: type[Checkpointer] = Checkpointer,
        trusting: bool = False,
    ) -> None:
        self.provider = FakeProvider(script, observe)
        self.store = MemorySessions(writing)
        self.notes: tuple[str, ...] = ()
        self.tools = ToolRegistry(
            Tool(name="look_up", run=self._look_up, concurrent=True),
            Tool(name="read_policy", run=self._read_policy, concurrent=True),
            Tool(name="add_note", run=self._add_note, concurrent=trusting),
        )
        self.observe = observe
        self._memory = memory
        self._showing: set[str] = set()

    def left(self) -> dict[str, Any]:
        """What is stored, as it would be found after a crash."""
        return {name: plain(session) for name, session in self.store.kept.items()}

    async def turn(
        self,
        question: str,
        policy: RetryPolicy,
        *,
        session: str = "ann",
        mailbox: Mailbox | None = None,
    ) -> str:
        """One turn of a session; the answer."""
        checkpoint = self.checkpoint(session)
        return await run_turn(question, checkpoint, self.services(policy, session), mailbox)

    async def unanswered(self, message: Inbound) -> None:
        """Keep a message whose turn never began."""
        checkpoint = self.checkpoint(message.session)
        await checkpoint.save(unanswered(checkpoint.session, message.text, "stopped"), "closed")

    def checkpoint(self, session: str) -> Checkpointer:
        """The session as it is stored, and the writing of it."""
        stored = self.store.load(session)
        return self._memory(stored, self.store.write, self.observe.of("session"))

    def services(self, policy: RetryPolicy, session: str) -> TurnServices:
        """What a turn of a session works with here."""
        return TurnServices(
            ask=partial(self.ask, session),
            show=partial(self.show, session),
            policy=policy,
            random=self.observe.random,
            observe=self.observe.of("turn"),
            tools=self.tools,
            owner=Owner(session, "acme"),
            now=self.observe.now,
        )

    def ask(
        self, session: str, history: Sequence[Message], attempt: int
    ) -> AsyncGenerator[Delta, None]:
        """Send a request, which closes the segment of what was shown before it."""
        page = self.observe.of("page")
        if session in self._showing:
            self._showing.remove(session)
            page(
                "segment_end",
                reason="tools" if history[-1].role == TOOL else "next",
                session=session,
            )
        page("begins", session=session)
        return self.provider.stream(attempt)

    def show(self, session: str, text: str) -> None:
        """Show it on the session's page."""
        self._showing.add(session)
        self.observe.of("page")("shown", text=text, session=session)

    async def _look_up(self, arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.sleep(SECONDS)
        self.observe.effect("look_up", order=arguments.get("order"))
        return "refund sent on Monday"

    async def _read_policy(self, arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.sleep(SECONDS)
        return "refunds take five days"

    async def _add_note(self, arguments: Mapping[str, Any], key: str) -> str:
        before = self.notes
        await asyncio.sleep(SECONDS)
        self.notes = (*before, str(arguments.get("text")))
        self.observe.effect("add_note", text=arguments.get("text"), notes=len(self.notes))
        return f"notes: {len(self.notes)}"


def plain(session: Session) -> dict[str, Any]:
    """A session for the trace; a row is (role, text, calls, call id, status), a call (id, name)."""
    turn = session.turn
    drafts = (*(draft.text for draft in session.drafts), turn.draft if turn else "")
    return {
        "messages": tuple(_row(message) for message in session.messages),
        "checkpoint": tuple(_row(message) for message in turn.steps) if turn else None,
        "running": turn.running if turn else (),
        "drafts": tuple(filter(None, drafts)),
    }


def _row(message: Message) -> tuple[Any, ...]:
    calls = tuple((call.call_id, call.name) for call in message.calls)
    return (message.role, message.content, calls, message.call_id, message.status)
