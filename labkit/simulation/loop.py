"""One asyncio event loop in virtual time.

Rules: time starts at 0 and moves only when nothing is ready, straight to the next timer; timers due
at the same instant fire in the order in which they were set; there is no selector, so the outside
world is refused by name.

    loop = VirtualLoop()
    loop.run_until_complete(asyncio.sleep(3600))   # returns at once
    loop.time()                                    # 3600.0
"""

import asyncio
import ctypes
import heapq
import math
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final

from .errors import Deadlock, Halt, Livelock
from .generators import CLOSING, Generators
from .outside import Outside
from .tasks import Tasks
from .where import describe

LIMIT: Final = 100_000  # turns and trace events at one instant
TOTAL: Final = 200_000  # the same in a whole run
TURNS_TO_CLOSE: Final = 10_000
DIGITS: Final = 9  # of a second: 1,000 waits of 0.1 are 100.0
_MANY: Final = 1_000

Callback = Callable[..., object]


class Handle:
    """A callback that waits for its turn; `when` is 0 for one that is due now."""

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when")

    def __init__(
        self, callback: Callback, args: tuple[Any, ...], context: Context | None, when: float = 0.0
    ) -> None:
        self._callback = callback
        self._args = args
        # An empty context is false, and still the one to use.
        self._context = copy_context() if context is None else context
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
        return self._when


class VirtualLoop(Outside):
    """An event loop whose clock is a number; drive it with `run_until_complete`, then `close` it.

    `limit` bounds the turns and trace events at one instant, `total` those of the whole life; past
    either the loop raises `Halt(Livelock)`. `halt` is what ends the run at the next turn; another
    thread may set it. `unhandled` lists the errors that nobody awaited.
    """

    def __init__(
        self,
        *,
        limit: int = LIMIT,
        total: int = TOTAL,
        inline_executor: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(inline_executor)
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._prune_at = _MANY
        self._now = 0.0
        self._serial = 0
        self._spent_now = self._spent = 0
        self._limit, self._total = limit, total
        self._running = self._closed = False
        self._generators = Generators(self)
        self.tasks = Tasks()
        self.halt: Halt | None = None
        self.unhandled: list[BaseException | str] = []

    # Time

    def time(self) -> float:
        """Virtual seconds since the start."""
        return self._now

    def call_soon(self, callback: Callback, *args: Any, context: Context | None = None) -> Handle:
        """Run `callback` in the next round, in the order of these calls."""
        handle = Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> Handle:
        """Run `callback` after `delay` virtual seconds."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> Handle:
        """Run `callback` at virtual time `when`; infinity is never, NaN a `ValueError`."""
        if when != when:
            raise ValueError("a wait must be a number of seconds, not NaN")
        when = round(when, DIGITS)
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
        self._prune_at = _MANY + 2 * len(self._timers)

    # Running

    def run_until_complete(self, future: Any) -> Any:
        """Drive the loop until `future` is done and return its result."""
        future = asyncio.ensure_future(future, loop=self)
        self._drive(future.done)
        return future.result()

    def _drive(self, done: Callable[[], bool]) -> None:
        if self._running:
            raise RuntimeError("this loop is running already: await the coroutine instead")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(self._generators.first_used, self._generators.abandoned)
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
        self.tasks.name_new()
        if not self._ready:
            self._advance()
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not handle._cancelled:
                self._count(handle._callback)
                if self.halt is not None:
                    raise self.halt
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
            waiting = describe(self.tasks.pending())
            raise Halt(Deadlock(f"nothing can happen any more at t={self._now:g} s: {waiting}"))
        if timers[0][0] > self._now:
            self._now = timers[0][0]
            self._spent_now = 0

    # Limits

    def spend(self) -> bool:
        """Count one trace event; False where it does not count, after a limit or an interrupt.

        The code under study may catch whatever is raised in it, so `Halt` comes from the loop's
        next turn, and from here only where no turn ever comes.
        """
        self._count(None)
        if self.halt is not None and self._spent_now > 2 * self._limit:
            raise Halt(self.halt.error)
        return self.halt is None

    def _count(self, callback: Callback | None) -> None:
        self._spent_now += 1
        self._spent += 1
        if self._spent_now > self._limit or self._spent > self._total:
            self.halt = self.halt or Halt(Livelock(self._livelock(callback)))

    def _livelock(self, callback: Callback | None) -> str:
        if self._spent_now > self._limit:
            what = f"{self._limit:,} turns and events at t={self._now:g} s without time moving"
        else:
            what = f"{self._total:,} turns and events in one run, t={self._now:g} s"
        task = getattr(callback, "__self__", None) or asyncio.current_task(self)
        spinning = [task] if isinstance(task, asyncio.Task) else self.tasks.pending()
        return f"{what}: {describe(spinning)}. Give the loop there a wait or a limit"

    # What tasks and futures need

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:
        """Start a task; without a name it gets the coroutine's, numbered within this loop."""
        default = self.tasks.default_name(coro)
        name = options.pop("name", None) or default
        task = asyncio.Task(coro, loop=self, name=name, **options)
        self.tasks.add(task, default)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what a callback or a forgotten future failed with."""
        self.unhandled.append(context.get("exception") or context["message"])

    def is_running(self) -> bool:
        """Whether it is being driven."""
        return self._running

    def is_closed(self) -> bool:
        """Whether `close` is through."""
        return self._closed

    # The end

    def pardon(self) -> None:
        """Forget the halt, and allow as many turns and events as tidying up may take."""
        self.halt, self._spent_now, self._spent = None, 0, self._total - TURNS_TO_CLOSE

    def close(self) -> None:
        """Cancel what is left, close open async generators, and refuse any further work.

        A task that swallows its cancellation is given up after a bounded number of turns.
        """
        for left in (self.tasks.pending, self._generators.open):
            self.pardon()
            self._finish(left())
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def _finish(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task in tasks:
            if task.get_name() != CLOSING:
                task.cancel()
        try:
            self._drive(lambda: all(task.done() for task in tasks))
        except Halt:
            for task in tasks:
                if not task.done():  # collecting it would run it once more, to no better end
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # seen here, so that asyncio does not warn
