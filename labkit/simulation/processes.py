"""Processes in virtual time: several of them in one loop, and each can be killed or frozen.

    worker = Process("worker-1", observe.of("worker-1"))
    task = worker.start(serve(store))    # whatever that starts, directly or not, belongs to worker
    worker.freeze(12.0)                  # as SIGSTOP does, and SIGCONT 12 s later
    worker.kill()                        # as SIGKILL does

To cancel a task is something else, since its clean-up runs. Here the loop asks before each callback
whose it is. What belongs to a process that stands still is kept, and runs at the thaw in the order
in which it was due; a clock shows by then how much time has passed.

What a killed process held in memory, a lock or its turn at a queue, nobody gets any more: let
processes share a store, and no object of asyncio's. A service that goes on after a call is a
process too, else what it starts is its caller's. When the run is over and nothing counts, all of
them go on, so that their tasks end in the usual way: look at what a kill left before that.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final
from weakref import WeakKeyDictionary

from .errors import SimulationError
from .tasks import Handle

_PROCESS: Final[ContextVar["Process | None"]] = ContextVar("process", default=None)


class Process:
    """One process of a run: what `start` was given, and everything that came of it.

    `state` is "running", "frozen" or "killed". `observe` is told "killed", "frozen" with its
    `seconds`, and "thawed". A process may stop itself: the line that does so goes on to the task's
    next suspension. One that another process starts is not a part of that, and outlives it.

    Raises `SimulationError` outside a running `VirtualLoop`.
    """

    def __init__(self, name: str, observe: Callable[..., object]) -> None:
        loop: Any = asyncio._get_running_loop()
        if not isinstance(getattr(loop, "processes", None), Processes):
            raise SimulationError("a process needs a running VirtualLoop: make it in the client")
        loop.processes.any = True
        self.name = name
        self.state = "running"
        self._observe = observe
        self._loop = loop
        self._until = 0.0

    @property
    def alive(self) -> bool:
        """Whether it was not killed; a frozen one is alive."""
        return self.state != "killed"

    def __repr__(self) -> str:
        return f"process {self.name!r}: {self.state}"

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Start `work` as a task of this process, and of its name.

        Once the process is killed, that task never ends, so await it with a deadline. To start
        more is a `SimulationError` then.
        """
        if not self.alive:
            work.close()
            raise SimulationError(f"{self.name} was killed: make another process in its place")
        context = copy_context()
        context.run(_PROCESS.set, self)
        task: asyncio.Task[Any] = self._loop.create_task(work, name=self.name, context=context)
        return task

    def kill(self) -> None:
        """Nothing of it runs any more, no `finally` either; killing it again does nothing."""
        if self.alive:
            self.state = "killed"
            self._observe("killed")

    def freeze(self, seconds: float) -> None:
        """Nothing of it runs for so many virtual seconds, from 0; then it goes on.

        Of two that overlap the later end counts. On a killed process it does nothing.
        """
        if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
            raise SimulationError(f"freeze for a number of seconds, from 0, not {seconds!r}")
        if self.alive:
            self.state = "frozen"
            thaw = self._loop.call_later(seconds, self._thaw, context=Context())  # nobody's
            self._until = max(self._until, thaw.when())
            self._observe("frozen", seconds=seconds)

    def _thaw(self) -> None:
        if self.state == "frozen" and self._loop.time() >= self._until:
            self.state = "running"
            self._loop.processes.release()
            self._observe("thawed")


class Processes:
    """What a loop knows of its processes: `owners` of tasks, and what of theirs it keeps.

    `ready` holds what the loop runs next. `any`: there are some, and the loop has to ask.
    """

    def __init__(self, ready: deque[Handle]) -> None:
        self.any = False
        self._ready = ready
        self._kept: list[Handle] = []
        self.owners: WeakKeyDictionary[asyncio.Task[Any], Process] = WeakKeyDictionary()

    def add(self, task: asyncio.Task[Any], context: Context | None) -> None:
        """Note whose a new task is, by its context; None is that of the code that runs."""
        process = _PROCESS.get() if context is None else context.get(_PROCESS)
        if process is not None:
            self.owners[task] = process

    def keeps(self, handle: Handle) -> bool:
        """Keep `handle` if its process stands still now, and say whether."""
        process = handle._context.get(_PROCESS)
        if process is None or process.state == "running":
            return False
        self._kept.append(handle)
        return True

    def release(self) -> None:
        """Let what was kept be asked again, ahead of what waits, since it was due before that."""
        self._ready.extendleft(reversed(self._kept))
        self._kept.clear()


def owner(task: asyncio.Task[Any]) -> Process | None:
    """The process of `task`, if it has one, and until the loop closes."""
    loop: Any = task.get_loop()
    processes: Processes = loop.processes
    return processes.owners.get(task) if processes.any else None


def killed(task: asyncio.Task[Any]) -> bool:
    """Whether `task` never goes on, since its process was killed."""
    process = owner(task)
    return process is not None and not process.alive
