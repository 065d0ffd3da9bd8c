"""`simulate` makes a run: a pure function of scenario, policy, faults and seed.

run = simulate(scenario, seed=1)
"""

from collections.abc import Iterable
from typing import Any

from .faults import Fault, Point
from .playing import Inputs, Playing, refuse_unknown
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
    refuse_unknown(bounds, simulate)
    return Run(Inputs(scenario, policy, faults, seed, bounds))


def points(
    scenario: Scenario, kind: str = "cancel", *, policy: Any = None, seed: int = 0
) -> list[Point]:
    """Where a fault of `kind` may strike, from the fault-free run of the same inputs.

    For a cancel or a timeout: the suspensions of every task, told by the line of the readable
    source at which the task waits; for a kill or a freeze, those in a process. For a crash: the
    events. For a disconnect or a stall: the steps of the script. For the others: the events that a
    service has sent.
    """
    Fault(kind, 0)  # refuses a kind that is not there
    return Playing(Inputs(scenario, policy, (), seed, {}), look=True).play().striking.points(kind)
