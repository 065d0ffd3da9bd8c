"""Interruptions placed at points of a run.

Points are numbered in the fault-free run. A cancel or a timeout strikes where a named task
suspends: while it waits, or as it wakes, ahead of its own wake-up. So does a kill or a freeze,
where the task belongs to a `Process`, and strikes all of that. A crash strikes after an event, and
ends whatever runs here, as if it were one process. A disconnect or a stall strikes in place of a
step of the script; the rest strike an event on its way from a service that numbers them to its
reader, since one connection brings nothing twice or out of order, and without a number nobody could
notice. `points` lists them with what happens there.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .breakpoints import short
from .errors import SimulationError, Unknown
from .loop import CLOSING, VirtualLoop
from .processes import killed
from .tasks import Handle

PROCESS_FAULTS: Final = ("kill", "freeze")
TASK_FAULTS: Final = ("cancel", "timeout", *PROCESS_FAULTS)
EVENT_FAULTS: Final = ("crash",)
STEP_FAULTS: Final = ("disconnect", "stall")
WIRE_FAULTS: Final = ("cut", "lose", "duplicate", "reorder")
KINDS: Final = TASK_FAULTS + EVENT_FAULTS + STEP_FAULTS + WIRE_FAULTS
PHASES: Final = ("waiting", "waking")
FROZEN: Final = 60.0  # seconds: far longer than any lease in the lessons, so that it is lost


@dataclass(frozen=True, slots=True)
class Fault:
    """One interruption: its `kind`, the number of its `point`, and for some kinds where and when.

    Kinds: cancel (of `task`, at one of its suspensions) and timeout (the deadline of whoever called
    the client passes, at a suspension of `task`); kill and freeze (of the process of `task`, a
    freeze for `FROZEN` seconds); crash (after an event); disconnect and stall (at
    a step of the script); and on the wire, by an event's number, cut (in the middle of it), lose,
    duplicate and reorder. `phase` is "waiting", or "waking" for one that comes just ahead of the
    task's own wake-up.
    """

    kind: str
    point: int
    task: str = "client"
    phase: str = "waiting"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Unknown("fault", self.kind, KINDS)
        if self.phase not in PHASES:
            raise Unknown("phase", self.phase, PHASES)
        if type(self.point) is not int or self.point < 0:
            raise SimulationError(f"a point is a whole number from 0, not {self.point!r}")


@dataclass(frozen=True, slots=True, repr=False)
class Point:
    """Where a fault may strike: its number, the task, the place, the time and the last event.

    Where it is an event, as the step of a script is one, `function` is the event's kind, and file
    and line are empty.
    """

    number: int
    task: str
    file: str
    line: int
    function: str
    time: float
    event: int

    def __repr__(self) -> str:
        at = f"in {self.function} ({short(self.file)})" if self.file else f"at {self.function!r}"
        when = f"t={self.time:g} s, after event {self.event}"
        return f"point {self.number}: {self.task} {at}, {when}"


class FaultyLoop(VirtualLoop):
    """A virtual loop that counts the suspensions of each task.

    `passes(task, number, phase)` is called at each, and again just ahead of the wake-up.
    """

    def __init__(
        self, passes: Callable[[asyncio.Task[Any], int, str], None], **options: Any
    ) -> None:
        super().__init__(**options)
        self._passes = passes
        self._suspensions: dict[str, int] = {}

    def _call(self, handle: Handle) -> None:
        task = getattr(handle._callback, "__self__", None)
        if not isinstance(task, asyncio.Task) or task.done() or handle._callback == task.cancel:
            super()._call(handle)
            return
        name = task.get_name()
        passed = self._suspensions.get(name, 0)
        self._passes(task, passed - 1, "waking")
        if self.processes.any and self.processes.keeps(handle):  # that has stopped its process
            return
        super()._call(handle)
        if not (task.done() or name.startswith(CLOSING) or killed(task)):
            self._suspensions[name] = passed + 1
            self._passes(task, passed, "waiting")
