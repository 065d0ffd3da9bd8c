"""A small gateway: messages come in on channels, turns run, and it ends in order.

It knows its parts by what they can do, see below. A transport is opened and closed by one task of
its own, since whoever opens one must close it. A cancel of `run` is a call of `stop`.

    gateway = Gateway(dispatcher=..., channels=[TcpChannel()], transports={}, sessions=...)
    ended = await serve(gateway)       # until a signal: how each step of the shutdown ended
"""

import asyncio
import itertools
import os
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Final, Protocol

from labkit.recovery.mailbox import Inbound
from labkit.recovery.retry import Observe
from labkit.recovery.shutdown import ShutdownLimits, Step, StepEnd, shut_down

from .answers import inline

LIMITS: Final = ShutdownLimits()

Inbox = asyncio.Queue[Inbound]
Transport = AbstractAsyncContextManager[object]


class Dispatcher(Protocol):
    """Starts a turn for what comes in; `close` cancels the turns and says how many there were."""

    async def run(self, inbound: Inbox) -> None: ...  # until it is cancelled
    async def close(self) -> int: ...


class Channel(Protocol):
    """`run` reads until it is cancelled; `send` takes answers until `stop`, and never waits."""

    name: str

    async def run(self, inbound: Inbox) -> None: ...
    async def stop(self) -> None: ...
    def send(self, session: str, text: str) -> None: ...


class Sessions(Protocol):
    """`flush_all` writes every session to the disk, with fsync, and says how many that were."""

    def flush_all(self) -> int: ...


@dataclass(kw_only=True, eq=False)
class Gateway:
    """Runs its parts until `stop`; it is made inside a running loop.

    `call(function)` calls what blocks: in a thread, unless a test says otherwise. `observe` is told
    when it is running, of a part that fails, which ends it, and of each step of the shutdown.
    """

    dispatcher: Dispatcher
    channels: Sequence[Channel]
    transports: Mapping[str, Transport]
    sessions: Sessions
    limits: ShutdownLimits = LIMITS
    observe: Observe = lambda kind, **details: None
    call: Callable[..., Coroutine[Any, Any, Any]] = asyncio.to_thread

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks: list[asyncio.Task[None]] = []
        self._owners: dict[str, asyncio.Task[None]] = {}
        self._stopping: asyncio.Future[None] = loop.create_future()
        self._hurry: asyncio.Future[None] = loop.create_future()
        self._closing = asyncio.Event()

    def stop(self) -> None:
        """The first time: end in order. The second time: wait for nothing but the sessions."""
        asked = self._hurry if self._stopping.done() else self._stopping
        if not asked.done():
            asked.set_result(None)

    @property
    def stopping(self) -> bool:
        """Whether it is ending, so that a turn that is cancelled is not its user's stop."""
        return self._stopping.done()

    async def run(self, restore: Callable[[], object] = lambda: None) -> list[StepEnd]:
        """Run until `stop`, or until a part fails; then how each step of the shutdown ended.

        `restore` gives the signals back; it is the last step.
        """
        living = asyncio.create_task(self._live(restore), name="gateway")
        cancelled: asyncio.CancelledError | None = None
        while not living.done():
            try:
                await asyncio.wait([living])
            except asyncio.CancelledError as error:
                cancelled = error
                self.stop()
        if cancelled:
            raise cancelled
        return living.result()

    async def _live(self, restore: Callable[[], object]) -> list[StepEnd]:
        await self._open_transports()
        if not self._stopping.done():
            inbound: Inbox = asyncio.Queue()
            parts = {"dispatcher": self.dispatcher.run(inbound)}
            parts |= {f"channel {c.name}": c.run(inbound) for c in self.channels}
            self._tasks = [self._start(name, part) for name, part in parts.items()]
            self.observe("running")
        await self._stopping
        return await shut_down(self._steps(restore), hurry=self._hurry, observe=self.observe)

    def _steps(self, restore: Callable[[], object]) -> list[Step]:
        limits = self.limits
        channels = [Step(f"stop channel {c.name}", c.stop, limits.channels) for c in self.channels]
        transports = [
            Step(f"close transport {name}", partial(self._close, owner), limits.transports)
            for name, owner in self._owners.items()
        ]
        return [
            Step("cancel tasks", self._cancel_tasks, limits.tasks),
            Step("gather tasks", self._gather_tasks, limits.tasks),
            Step("stop turns", self.dispatcher.close, limits.turns),
            *channels,
            *transports,
            Step("flush sessions", self._flush, limits.sessions, always=True),
            Step("restore signal handlers", partial(inline, restore), limits.tasks, always=True),
        ]

    # --- what the steps do

    async def _cancel_tasks(self) -> int:
        return sum(task.cancel() for task in self._tasks)

    async def _gather_tasks(self) -> None:
        for error in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(error, Exception):  # and not a cancel
                raise error

    async def _close(self, owner: asyncio.Task[None]) -> None:
        self._closing.set()
        await owner  # a cancel of this step is handed on to it

    async def _flush(self) -> int:
        return int(await self.call(self.sessions.flush_all))

    # --- the tasks

    async def _open_transports(self) -> None:
        """Each in a task that owns it; return when all are open, or when it is time to stop."""
        for name, transport in self.transports.items():
            opened = asyncio.get_running_loop().create_future()
            self._owners[name] = self._start(f"transport {name}", self._own(transport, opened))
            await asyncio.wait([opened, self._stopping], return_when=asyncio.FIRST_COMPLETED)
            if self._stopping.done():
                return

    async def _own(self, transport: Transport, opened: asyncio.Future[None]) -> None:
        async with transport:
            opened.set_result(None)
            await self._closing.wait()  # breakpoint: transport held

    def _start(self, name: str, part: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(part, name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A part that has failed ends the gateway; a channel that is through does not."""
        if not task.cancelled() and (error := task.exception()):
            self.observe("failed", part=task.get_name(), error=type(error).__name__)
            if not self._stopping.done():
                self._stopping.set_result(None)


async def serve(gateway: Gateway) -> list[StepEnd]:
    """Run it in the main thread until a SIGINT or SIGTERM; a third one leaves at once.

    That one is counted in the signal's handler, since the loop may be what hangs.
    """
    loop, asked = asyncio.get_running_loop(), itertools.count(1)

    def ask(number: int, frame: FrameType | None) -> None:
        if next(asked) > 2:
            os._exit(128 + number)
        loop.call_soon_threadsafe(gateway.stop)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return await gateway.run(restore)
