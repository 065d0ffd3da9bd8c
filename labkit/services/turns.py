"""A gateway with all its parts: a script as its model, a tool server, and sessions in files.

Each turn plays the script from its first attempt. A turn that the gateway's end interrupts is kept
in its session's file, and so is a message whose turn never began.

    files = SessionFiles(folder)
    gateway = assemble(load("tool-then-answer"), files, [TcpChannel()], observe=print)
    await serve(gateway)
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery.cancel import to_the_end
from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.dispatch import Concurrency, Dispatcher, limit_from_environment
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import Observe
from labkit.recovery.session import SessionError, begin_turn, close_turn
from labkit.recovery.stream.record import Owner
from labkit.recovery.tools import ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.simulation import Observer
from labkit.simulation.world import World
from labkit.stores.session_files import SessionFiles

from .channels import answering
from .gateway import Channel, Gateway
from .tool_program import TOOLS
from .transport import TOOL_PROGRAM, tool_server

KEPT: Final = 100  # sessions that stay loaded when their turns are over
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
    turns = Turns(script, files, answering(channels), speed, lambda: not gateway.stopping)
    dispatcher = Dispatcher(
        turns.handle,
        answer=turns.answer,
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
    """What becomes of a message; `stopped()`: whether a cancel is a user's stop, or the end."""

    script: Script
    files: SessionFiles
    answer: Callable[[Inbound, str], None]
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
        try:
            checkpoint = await self._checkpoint(message.session)
        except asyncio.CancelledError:
            await to_the_end(self.unanswered(message))
            raise
        try:
            await run_turn(message.text, checkpoint, self._services(message), mailbox)
        finally:
            if mailbox.closed:  # the answer is kept, also where a cancel came too late to stop it
                self.answer(message, checkpoint.session.messages[-1].content)
            await to_the_end(self._over(message.session))

    async def unanswered(self, message: Inbound) -> None:
        """Keep a message whose turn never began."""
        checkpoint = await self._checkpoint(message.session)
        begun = begin_turn(checkpoint.session, message.text)
        why = "stopped" if self.stopped() else "shutdown"
        await checkpoint.save(close_turn(begun, why), "closed")
        await self._over(message.session)

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
                with suppress(SessionError):  # it stays, and the next flush tries again
                    await asyncio.to_thread(self.files.put_away, longest)
                    del self._idle[longest]

    def _services(self, message: Inbound) -> TurnServices:
        observe = Observer(World(time=time.monotonic, spend=lambda: False), "turn")
        provider = FakeProvider(self.script, observe, speed=self.speed)
        return TurnServices(
            ask=lambda history, attempt: provider.stream(attempt),
            show=lambda text: None,
            policy=POLICY,
            random=Random(),
            observe=observe,
            tools=self.tools,
            owner=Owner(message.session, message.channel),
            stopped=self.stopped,
        )
