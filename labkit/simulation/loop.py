"""One asyncio event loop in virtual time.

Rules: time starts at 0 and moves only when nothing is ready, straight to the next timer; timers due
at the same instant fire in the order in which they were set; there is no selector, so the outside
world is refused by name.

    loop = VirtualLoop()
    loop.run_until_complete(asyncio.sleep(3600))   # returns at once
    loop.time()                                    # 3600.0
"""

import asyncio
import contextvars
import heapq
import math
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from .errors import Deadlock, Halt, Livelock, Refused
from .where import describe, where

LIMIT: Final = 100_000  # turns and trace events at one instant
TOTAL: Final = 200_000  # the same in a whole run
TURNS_TO_CLOSE: Final = 10_000


class Handle:
    """A callback that waits for its turn; `when` is None for one that is due now."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when")

    def __init__(
        self,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: contextvars.Context | None,
        when: float | None = None,
    ) -> None:
        self._callback = callback
        self._args = args
        self._context = context or contextvars.copy_context()
        self._when = when
        self._cancelled = False

    def cancel(self) -> None:
        """Never run it; its slot is dropped when its turn comes."""
        self._cancelled = True
        self._args = ()

    def cancelled(self) -> bool:
        """Whether it was cancelled before it ran."""
        return self._cancelled

    def when(self) -> float:
        """The virtual time, in seconds, at which it is due."""
        return self._when or 0.0


class VirtualLoop(asyncio.AbstractEventLoop):
    """An event loop whose clock is a number; drive it with `run_until_complete`.

    `limit` bounds the turns at one instant, `total` those of the whole life; past either the loop
    raises `Halt(Livelock)`. `inline_executor`, when given, is told the function's name and lets
    executor calls run on the spot; without it they are refused.
    """

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        total: int = TOTAL,
        inline_executor: Callable[[str], object] | None = None,
    ) -> None:
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._now = 0.0
        self._serial = 0
        self._spent_now = self._spent = 0
        self._limit, self._total = limit, total
        self._prune_at = 1_000
        self._tasks: list[asyncio.Task[Any]] = []
        self._names: dict[str, int] = {}
        self._generators: list[weakref.ref[Any]] = []
        self._abandoned: list[Any] = []
        self._inline_executor = inline_executor
        self._thread = threading.get_ident()
        self._running = self._closed = False
        self.halt: Halt | None = None
        self.unhandled: list[str] = []

    # Time

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def call_soon(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Run `callback` in the next round, in the order of these calls."""
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Run `callback` after `delay` virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """Run `callback` at virtual time `when`; infinity is never, NaN a `ValueError`."""
        if when != when:
            raise ValueError("a wait must be a number of seconds, not NaN")
        when = round(when, 9)
        handle = Handle(callback, args, context, when)
        if when != math.inf:
            self._serial += 1
            heapq.heappush(self._timers, (when, self._serial, handle))
            if len(self._timers) > self._prune_at:
                self._prune()
        return handle

    def _prune(self) -> None:
        self._timers = [timer for timer in self._timers if not timer[2]._cancelled]
        heapq.heapify(self._timers)
        self._prune_at = 1_000 + 2 * len(self._timers)

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Drive the loop until `future` is done and return its result."""
        future = asyncio.ensure_future(future, loop=self)
        self._drive(future.done)
        return future.result()

    def _drive(self, done: Callable[[], bool]) -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._track, finalizer=self._abandoned.append)
        asyncio._set_running_loop(self)
        self._running = True
        try:
            while not done():
                self._round()
        finally:
            self._running = False
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _round(self) -> None:
        if not self._ready:
            self._advance()
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                self.spend()
                self._call(handle)

    def _call(self, handle: Handle) -> None:
        try:
            handle._context.run(handle._callback, *handle._args)
        except Exception as error:
            self.call_exception_handler({"message": "a callback failed", "exception": error})

    def _advance(self) -> None:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not timers:
            waiting = "; ".join(describe(task) for task in self.pending()) or "no task"
            raise Halt(Deadlock(f"nothing can happen any more at t={self._now:g} s: {waiting}"))
        if timers[0][0] > self._now:
            self._now = timers[0][0]
            self._spent_now = 0

    def spend(self) -> None:
        """Count one turn or trace event; raises `Halt` past a limit or after an interrupt."""
        self._spent_now += 1
        self._spent += 1
        if self.halt is not None:
            raise self.halt
        if self._spent_now > self._limit or self._spent > self._total:
            self.halt = Halt(Livelock(self._livelock()))
            raise self.halt

    def _livelock(self) -> str:
        if self._spent_now > self._limit:
            what = f"{self._limit:,} turns and events at t={self._now:g} s without time moving"
        else:
            what = f"{self._total:,} turns and events in one run, t={self._now:g} s"
        tasks = "; ".join(describe(task) for task in self.pending()) or "no task"
        return f"{what}: {tasks}. Give the loop there a wait or a limit"

    # Tasks

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        """Start a task; without a name it gets the coroutine's, numbered within this loop."""
        name = options.pop("name", None)
        if name is None:
            name = getattr(coro, "__name__", "task")
            count = self._names[name] = self._names.get(name, 0) + 1
            name = name if count == 1 else f"{name} {count}"
        task = asyncio.Task(coro, loop=self, name=name, **options)
        if len(self._tasks) > 100 and len(self._tasks) > 2 * len(self.pending()):
            self._tasks = self.pending()
        self._tasks.append(task)
        return task

    def pending(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, in the order of their creation."""
        return [task for task in self._tasks if not task.done()]

    # The end

    def _track(self, generator: Any) -> None:
        self._generators.append(weakref.ref(generator))
        if len(self._generators) > 1_000:
            self._generators = [ref for ref in self._generators if ref() is not None]

    def close(self) -> None:
        """Cancel what is left, close open async generators, and refuse any further work.

        A task that swallows its cancellation is given up after a bounded number of turns.
        """
        if self._closed:
            return
        self._closed = True
        self.halt, self._spent_now, self._spent = None, 0, self._total - TURNS_TO_CLOSE
        for finish in (self._cancel_tasks, self._close_generators):
            try:
                finish()
            except Halt:
                continue
        self._ready.clear()
        self._timers.clear()

    def _cancel_tasks(self) -> None:
        left = self.pending()
        for task in left:
            task.cancel()
        self._drive(lambda: all(task.done() for task in left))
        for task in left:
            if not task.cancelled():
                task.exception()  # seen here, so that asyncio does not warn

    def _close_generators(self) -> None:
        known = [generator for ref in self._generators if (generator := ref()) is not None]
        # An abandoned generator's weak reference is dead, so both lists are needed.
        for generator in [*known, *self._abandoned]:
            if generator.ag_frame is not None and not generator.ag_running:
                closing = asyncio.Task(generator.aclose(), loop=self, name="closing a generator")
                self._drive(closing.done)
                if not closing.cancelled():
                    closing.exception()

    # What asyncio asks of any loop

    def get_debug(self) -> bool:
        """Never: debug mode reads the wall clock."""
        return False

    def is_running(self) -> bool:
        """Whether it is being driven."""
        return self._running

    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep the message of an error that nobody awaited."""
        self.unhandled.append(f"{context['message']}: {context.get('exception')!r}")

    def call_soon_threadsafe(
        self,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> Any:
        """As `call_soon`, from the loop's own thread only: another's timing is not repeatable."""
        if threading.get_ident() != self._thread:
            raise Refused("a call from another thread was refused: a simulation has one thread")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run `func` on the spot where the run allows it, else refuse."""
        name = getattr(getattr(func, "func", func), "__name__", "a function")
        if self._inline_executor is None:
            raise Refused(
                f"a thread for {name!r} was refused: await an async function in a simulation"
            )
        self._inline_executor(name)
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def _refuse(name: str, what: str) -> Callable[..., Any]:
    def refused(self: VirtualLoop, *args: Any, **options: Any) -> Any:
        raise Refused(f"{what} was refused: a simulation has none; use a fake ({name})")

    refused.__name__ = name
    return refused


_OUTSIDE: Final = {
    "a network connection": "create_connection create_unix_connection create_datagram_endpoint "
    "sock_connect sock_recv sock_recv_into sock_recvfrom sock_sendall sock_sendto sock_sendfile "
    "sendfile start_tls connect_accepted_socket getaddrinfo getnameinfo",
    "a server": "create_server create_unix_server sock_accept",
    "a subprocess": "subprocess_exec subprocess_shell connect_read_pipe connect_write_pipe",
    "a file descriptor": "add_reader add_writer remove_reader remove_writer",
    "a signal handler": "add_signal_handler remove_signal_handler",
}
for _what, _names in _OUTSIDE.items():
    for _name in _names.split():
        setattr(VirtualLoop, _name, _refuse(_name, _what))
