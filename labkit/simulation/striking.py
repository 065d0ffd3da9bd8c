"""Strikes the faults of one run where they are due, and notes where others may strike.

    FaultyLoop(striking.passes)              # is told of the suspensions of tasks,
    world.trace.after = striking.after       # and the trace of its events

A timeout is the deadline of whoever called the client: it cancels the client, wherever the task is
that has come to the point, and at the client's edge the cancellation becomes a `TimeoutError`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from .faults import EVENT_FAULTS, FROZEN, PROCESS_FAULTS, STEP_FAULTS, TASK_FAULTS, Fault, Point
from .processes import killed, owner
from .trace import Event
from .where import where
from .world import World


class Striking:
    """The faults of `world` and the points of its run, which are noted where `files` are given.

    `crash(index)` is called where a crash is due. `expired`: the deadline ended the client. `over`
    is the number of events by which the run had come to its end; nothing strikes any more then.
    `tasks` are those that came to a point, where the loop tells of them.
    """

    def __init__(
        self, world: World, crash: Callable[[int], None], files: Iterable[str] | None = None
    ) -> None:
        self.expired = False
        self.over: int | None = None
        self.tasks: dict[str, None] = {}
        self._world = world
        self._crash = crash
        self._files = None if files is None else frozenset(files)
        self._suspensions: list[Point] = []
        self._in_processes: list[Point] = []
        self._client: asyncio.Task[Any] | None = None
        self._deadlines = 0  # that have passed
        if any(fault.kind in EVENT_FAULTS for fault in world.faults):
            world.trace.after = self.after

    async def within_deadline(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Await the client's work, with a deadline as `asyncio.timeout` would hold it."""
        self._client = client = asyncio.current_task()
        assert client is not None
        try:
            return await work
        except asyncio.CancelledError:
            left = [client.uncancel() for _ in range(self._deadlines)]
            self.expired = left[-1:] == [0]  # else it was stopped by somebody else too
            if self.expired:
                raise TimeoutError("the caller's deadline passed") from None
            raise

    def passes(self, task: asyncio.Task[Any], number: int, phase: str) -> None:
        """A task has suspended or is about to wake: note the point, strike a fault that is due."""
        if self.over is not None:
            return
        name = task.get_name()
        self.tasks[name] = None
        if self._files is not None and phase == "waiting":
            last = len(self._world.trace.events) - 1
            point = Point(number, name, *where(task, self._files), self._world.time(), last)
            self._suspensions.append(point)
            if owner(task) is not None:
                self._in_processes.append(point)
        for fault in self._world.faults:
            if (fault.task, fault.point, fault.phase) == (name, number, phase):
                self._strike(fault, task)

    def _strike(self, fault: Fault, task: asyncio.Task[Any]) -> None:
        process = owner(task)
        if fault in self._world.struck or killed(task):
            return  # after a thaw a task comes to its wake-up once more
        if fault.kind == "cancel":
            self._world.strike(fault, task=fault.task, phase=fault.phase)
            task.cancel()
        elif fault.kind == "timeout" and self._client is not None:
            told = {"task": self._client.get_name(), "phase": fault.phase, "at": fault.task}
            self._world.strike(fault, **told)
            self._deadlines += 1
            self._client.cancel()
        elif fault.kind in PROCESS_FAULTS and process is not None:
            self._world.strike(fault, task=fault.task, phase=fault.phase)
            if fault.kind == "kill":
                process.kill()
            else:
                process.freeze(FROZEN)

    def after(self, index: int) -> None:
        """Event `index` has happened: crash if that is due."""
        for fault in self._world.faults:
            if fault.kind in EVENT_FAULTS and fault.point == index and self.over is None:
                self.over = index + 1
                self._world.strike(fault)
                self._crash(index)

    def points(self, kind: str) -> list[Point]:
        """Where a fault of `kind` may strike this run: see `labkit.simulation.points`."""
        if kind in TASK_FAULTS:
            return self._in_processes if kind in PROCESS_FAULTS else self._suspensions
        events = self._world.trace.events[: self.over]
        if kind in EVENT_FAULTS:
            own = [event for event in events if event.kind != "fault"]  # that is the lab's note
            return [_point(event, event.index, event.index) for event in own]
        actor, number = ("provider", "step") if kind in STEP_FAULTS else ("wire", "sequence")
        found: dict[int, Point] = {}  # of a number that comes again, the first is struck
        for event in events:
            if event.actor == actor and event.get(number) is not None:
                found.setdefault(event[number], _point(event, event[number], event.index - 1))
        return list(found.values())


def _point(event: Event, number: int, last: int) -> Point:
    return Point(number, event.actor, "", 0, event.kind, event.time, last)
