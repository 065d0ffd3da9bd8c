"""`simulate` makes a run: a pure function of scenario, policy, faults and seed.

run = simulate(scenario, seed=1)
"""

from collections.abc import Iterable
from typing import Any

from .faults import STEP_FAULTS, TASK_FAULTS, Fault, Point
from .playing import Inputs, Playing
from .run import Run
from .scenario import Scenario


def simulate(
    scenario: Scenario,
    *,
    policy: Any = None,
    faults: Fault | Iterable[Fault] = (),
    seed: int = 0,
    **bounds: int,
) -> Run:
    """Run `scenario` in virtual time, in a thread of its own, and return what happened.

    What the client raises becomes `run.error`, as do `Deadlock` and `Livelock`: more turns and
    events than the bounds allow, `limit` at one instant, `total` in all. A `KeyboardInterrupt` ends
    the run within a second and leaves. Sockets, threads, subprocesses, real sleeps are refused.
    """
    return Run(Inputs(scenario, policy, faults, seed, bounds))


def points(
    scenario: Scenario, kind: str = "cancel", *, policy: Any = None, seed: int = 0
) -> list[Point]:
    """Where a fault of `kind` may strike, from the fault-free run of the same inputs.

    For a cancel: the suspensions of every task, told by the line of the readable source at which
    the task waits. For a disconnect or a stall: the steps of the script. For the others: the events
    that a service has sent.
    """
    Fault(kind, 0)  # refuses a kind that is not there
    played = Playing(Inputs(scenario, policy, (), seed, {}), look=True).play()
    if kind in TASK_FAULTS:
        return played.points
    number = "step" if kind in STEP_FAULTS else "sequence"
    return [
        Point(event[number], event.actor, "", 0, event.kind, event.time, event.index - 1)
        for event in played.world.trace.events
        if isinstance(event.get(number), int)  # a checkpoint names its step
    ]
