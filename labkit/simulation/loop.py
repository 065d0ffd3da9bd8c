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
import threading
import weakref
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, Final

from .errors import Deadlock, Halt, Livelock, SimulationError
from .outside import Outside, refusing
from .processes import Processes, killed
from .tasks import Callback, Handle, Tasks
from .where import describe

LIMIT: Final = 100_000  # turns and trace events at one instant
TOTAL: Final = 200_000  # the same in a whole run
TURNS_TO_CLOSE: Final = 10_000
CLOSING: Final = "closing a generator"  # the name of the tasks that do so
DIGITS: Final = 9  # of a second: 1,000 waits of 0.1 are 100.0
_MANY: Final = 1_000


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
        self.processes = Processes(self._ready)
        self._timers: list[tuple[float, int, Handle]] = []
        self._prune_at = _MANY
        self._now = 0.0
        self._serial = 0
        self._spent_now = self._spent = 0
        for name, bound in (("limit", limit), ("total", total)):
            if type(bound) is not int or bound < 1:
                raise SimulationError(f"{name} is a number of turns, from 1, not {bound!r}")
        self._limit, self._total = limit, total
        self._running = self._closed = False
        self._generators: list[weakref.ref[Any]] = []  # a WeakSet would have the order of addresses
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
        sys.set_asyncgen_hooks(self._first_used, self._abandoned)
        asyncio._set_running_loop(self)
        self._thread = threading.get_ident()
        self._running = True
        try:
            while not done():
                self._round()
        finally:
            self._running = False
            asyncio._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _round(self) -> None:
        if self.tasks.new:
            self.tasks.name_new()
        if not self._ready:
            self._advance()
        timers, processes = self._timers, self.processes
        while timers and timers[0][0] <= self._now:
            self._ready.append(heapq.heappop(timers)[2])
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if not (handle._cancelled or (processes.any and processes.keeps(handle))):
                self.spend(handle._callback)
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

    def spend(self, callback: Callback | None = None) -> bool:
        """Count one turn, that of `callback`, or one trace event.

        False says that it does not count any more, after a limit or an interrupt.

        The code under study may catch whatever is raised in it, so `Halt` comes from the loop's
        next turn, and from here only where no turn ever comes.
        """
        self._spent_now += 1
        self._spent += 1
        if self._spent_now > self._limit or self._spent > self._total:
            self.halt = self.halt or Halt(Livelock(self._livelock(callback)))
            if self._spent_now > 2 * self._limit:
                raise Halt(self.halt.error)
        return self.halt is None

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
        if self.processes.any:
            self.processes.add(task, options.get("context"))
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

    # Async generators: closed when they are dropped, or at the end of the run

    def _first_used(self, generator: Any) -> None:
        self._generators.append(weakref.ref(generator))
        if len(self._generators) > _MANY:
            self._generators = [ref for ref in self._generators if ref() is not None]

    def _abandoned(self, generator: Any) -> None:
        """Python's hook: nobody holds `generator` any more. It may come from any thread."""
        if threading.get_ident() == self._thread and not self._closed:
            self.call_soon(self._close_generator, generator)

    def _close_generator(self, generator: Any) -> None:
        self.create_task(generator.aclose(), name=CLOSING)

    # The end

    def pardon(self) -> None:
        """Forget the halt, and allow as many turns and events as tidying up may take."""
        self.halt, self._spent_now, self._spent = None, 0, self._total - TURNS_TO_CLOSE

    def left_over(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, but for those that were killed or only close a generator."""
        pending = self.tasks.pending()
        return [t for t in pending if not (killed(t) or t.get_name().startswith(CLOSING))]

    def close(self) -> None:
        """Cancel what is left, close open async generators, and refuse any further work.

        A task that swallows its cancellation is given up after a bounded number of turns.
        """
        self.processes.any = False  # what stands still goes on, to its end
        self.processes.release()
        for task in self.left_over():
            task.cancel()
        self._finish()
        for generator in [found for ref in self._generators if (found := ref()) is not None]:
            if generator.ag_frame is not None and not generator.ag_running:
                self._close_generator(generator)
        self._finish()
        self._closed = True
        self._ready.clear()
        self._timers.clear()

    def _finish(self) -> None:
        self.pardon()
        try:
            self._drive(lambda: not self.tasks.pending())
        except Halt:
            for task in self.tasks.pending():  # to collect it would run it again, to no better end
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(task))
        for task in self.tasks.unseen():
            task.exception()  # seen here, so that asyncio does not warn
        self.tasks = Tasks()


for _name, _method in vars(asyncio.AbstractEventLoop).items():
    if not _name.startswith("_") and getattr(VirtualLoop, _name) is _method:
        setattr(VirtualLoop, _name, refusing(_name))
