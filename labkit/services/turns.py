"""A gateway with all its parts: a script as its model, a tool server, and sessions in files.

Each turn plays the script from its first attempt. What the model says goes at once to all who have
written in the turn. A turn that the gateway's end interrupts is kept in its session's file, and so
is a message whose turn never began. A line that begins with a slash never reaches the model.

    files = SessionFiles(folder)
    gateway = assemble(load("tool-then-answer"), files, [TcpChannel()], observe=print)
    await serve(gateway)
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery.cancel import to_the_end
from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.dispatch import Concurrency, Dispatcher, limit_from_environment
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.mailbox import Inbound, Mailbox, command_of
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import Observe
from labkit.recovery.session import SessionError, unanswered
from labkit.recovery.stream.record import Owner
from labkit.recovery.tools import ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.simulation.world import unheard
from labkit.stores.session_files import SessionFiles

from .channels import answering
from .gateway import Channel, Gateway
from .tool_program import TOOLS
from .transport import TOOL_PROGRAM, tool_server

KEPT: Final = 100  # sessions that stay loaded when their turns are over
HELP: Final = "/help"
COMMANDS: Final = "/stop (end the turn), /stop all (and drop what waits), /status, /help"
POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, first_wait=0.5)


def assemble(
    script: Script,
    files: SessionFiles,
    channels: Sequence[Channel],
    *,
    observe: Observe,
    speed: float = 1.0,
) -> Gateway:
    """Such a gateway; `speed` divides the script's waits. It is made inside a running loop."""
    turns = Turns(
        script,
        files,
        say=lambda message, text: dispatcher.say(message, text),
        speed=speed,
        stopped=lambda: not gateway.stopping,
    )
    dispatcher = Dispatcher(
        turns.handle,
        answer=answering(channels),
        unanswered=turns.unanswered,
        concurrency=Concurrency(limit=limit_from_environment()),
        observe=observe,
    )
    gateway = Gateway(
        dispatcher=dispatcher,
        channels=channels,
        transports={"tools": turns.tool_server()},
        sessions=files,
        observe=observe,
    )
    return gateway


@dataclass(eq=False)
class Turns:
    """What becomes of a message.

    `say(message, text)` answers it and raises nothing; `stopped()`: whether a cancel is a user's
    stop, or the end.
    """

    script: Script
    files: SessionFiles
    say: Callable[[Inbound, str], None]
    speed: float
    stopped: Callable[[], bool]
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    _idle: dict[str, None] = field(default_factory=dict)  # loaded, the longest idle first
    _door: asyncio.Lock = field(default_factory=asyncio.Lock)  # in and out of memory, one by one

    @asynccontextmanager
    async def tool_server(self) -> AsyncIterator[None]:
        """The transport: its tools are there for the length of the block."""
        async with tool_server(TOOL_PROGRAM, folder=Path(__file__).parent) as server:
            self.tools = ToolRegistry(*[server.tool(name) for name in TOOLS])
            yield

    async def handle(self, message: Inbound, mailbox: Mailbox) -> None:
        """One turn. Raises what ends it; a cancel during the loading keeps the message, too."""
        if command := command_of(message.text):
            unknown = "" if command == HELP else f"There is no {command}. "
            self._said(message, mailbox, f"{unknown}Commands: {COMMANDS}")
            return
        try:
            checkpoint = await self._checkpoint(message.session)
        except asyncio.CancelledError:
            await to_the_end(self.unanswered(message))
            raise
        try:
            await run_turn(message.text, checkpoint, self._services(message, mailbox), mailbox)
        finally:
            await to_the_end(self._over(message.session))

    async def unanswered(self, message: Inbound) -> None:
        """Keep a message whose turn never began."""
        if command_of(message.text):
            return
        checkpoint = await self._checkpoint(message.session)
        why = "stopped" if self.stopped() else "shutdown"
        await checkpoint.save(unanswered(checkpoint.session, message.text, why), "closed")
        await self._over(message.session)

    def _said(self, message: Inbound, mailbox: Mailbox, text: str) -> None:
        """Answer all who have written in the turn."""
        for one in mailbox.writers(message):
            self.say(one, text)

    async def _checkpoint(self, session: str) -> Checkpointer:
        async with self._door:
            self._idle.pop(session, None)
            stored = await asyncio.to_thread(self.files.load, session)
        return Checkpointer(stored, self.files.write)

    async def _over(self, session: str) -> None:
        """A session without a turn stays loaded; of too many the one that was idle longest goes."""
        async with self._door:
            self._idle[session] = None
            if len(self._idle) > KEPT:
                longest = next(iter(self._idle))
                del self._idle[longest]
                try:
                    await asyncio.to_thread(self.files.put_away, longest)
                except SessionError:
                    self._idle[longest] = None  # it stays, behind the others

    def _services(self, message: Inbound, mailbox: Mailbox) -> TurnServices:
        observe = unheard("turn")
        provider = FakeProvider(self.script, observe, speed=self.speed)
        return TurnServices(
            ask=lambda history, attempt: provider.stream(attempt),
            show=lambda text: None,
            said=partial(self._said, message, mailbox),
            policy=POLICY,
            random=Random(),
            observe=observe,
            tools=self.tools,
            owner=Owner(message.session, message.channel),
            stopped=self.stopped,
        )
