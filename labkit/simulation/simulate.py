"""`simulate` makes a run: a pure function of scenario, policy, faults and seed.

run = simulate(scenario, seed=1)
"""

from collections.abc import Iterable
from typing import Any

from .faults import STEP_FAULTS, Fault, Point
from .guard import refuse_inside
from .loop import LIMIT, TOTAL
from .places import Place
from .playing import Playing
from .run import Inputs, Outcome, Run
from .scenario import Scenario


def simulate(
    scenario: Scenario,
    *,
    policy: Any = None,
    faults: Fault | Iterable[Fault] = (),
    seed: int = 0,
    limit: int = LIMIT,
    total: int = TOTAL,
) -> Run:
    """Run `scenario` in virtual time, in a thread of its own, and return what happened.

    What the client raises becomes `run.error`, as do `Deadlock` and `Livelock` (more than `limit`
    turns and events at one instant, or `total` in all). A `KeyboardInterrupt` ends the run within a
    second and leaves. Sockets, threads, subprocesses and real sleeps are refused.
    """
    refuse_inside()
    inputs = _inputs(scenario, policy, faults, seed, limit, total)

    def record() -> Outcome:
        places: list[Place] = []
        return Playing(inputs, places=places).outcome()

    return Run(inputs, Playing(inputs).outcome(), record)


def points(
    scenario: Scenario, kind: str = "cancel", *, policy: Any = None, seed: int = 0
) -> list[Point]:
    """Where a fault of `kind` may strike, from the fault-free run of the same inputs.

    For a cancel: the suspensions of every task, told by the line of the readable source at which
    the task waits. For a disconnect or a stall: the steps of the script.
    """
    Fault(kind, 0)
    found: list[Point] = []
    outcome = Playing(_inputs(scenario, policy, (), seed), points=found).outcome()
    if kind not in STEP_FAULTS:
        return found
    return [
        Point(event["step"], event.actor, "", 0, event.kind, event.time, event.index - 1)
        for event in outcome.trace
        if isinstance(event.get("step"), int)  # a checkpoint names its step
    ]


def _inputs(
    scenario: Scenario,
    policy: Any,
    faults: Fault | Iterable[Fault],
    seed: int,
    limit: int = LIMIT,
    total: int = TOTAL,
) -> Inputs:
    chosen = scenario.policy if policy is None and isinstance(scenario, Scenario) else policy
    several = (faults,) if isinstance(faults, Fault) else tuple(faults)
    return Inputs(scenario, chosen, several, seed, limit, total)
