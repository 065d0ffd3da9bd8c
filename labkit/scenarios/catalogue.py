"""Finds scenarios by name.

find("retry.guarded"), names(), simulate("retry.guarded"), explore("retry.guarded", faults="all")
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from labkit.recovery import dispatch, mailbox, retry, retry_after, run_states
from labkit.recovery import policy as policy_module
from labkit.simulation import Breakpoint, Exploration, Fault, Point, Run, Scenario, Unknown
from labkit.simulation import breakpoints as in_files
from labkit.simulation import explore as strike
from labkit.simulation import points as points_of
from labkit.simulation import simulate as run

from .rows import EFFECTS, STREAMS, TURNS

READABLE: Final = tuple(
    dict.fromkeys(
        (
            retry,
            retry_after,
            policy_module,
            *STREAMS,
            *TURNS,
            dispatch,
            mailbox,
            *EFFECTS,
            run_states,
        )
    )
)
RUNS: Final = Path(__file__).parents[1] / "runs"
TOPICS: Final = (
    "retries interruptions sdk streams frameworks turns sessions budgets framework_retries effects "
    "leases durable"
)
NEEDS: Final = {"leases": "sqlalchemy", "durable": "langgraph"}


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Scenario]:
    """Every scenario by name, in the order of the lessons.

    On a Python without the lab's libraries, those that need one are left out.
    """
    topics = (topic for topic in TOPICS.split() if find_spec(NEEDS.get(topic, "labkit")))
    modules = (import_module(f".{topic}", __package__) for topic in topics)
    every = [scenario for topic in modules for scenario in topic.scenarios()]
    return {scenario.name: scenario for scenario in every}


def names() -> list[str]:
    """The names of all scenarios."""
    return list(catalogue())


def find(name: str | Scenario) -> Scenario:
    """The scenario of that name, or the one that is given; raises `Unknown` with the names."""
    if isinstance(name, Scenario):
        return name
    if name not in names():  # in a list: a name may be anything, also what has no hash
        raise Unknown("scenario", name, names())
    return catalogue()[name]


def simulate(
    scenario: str | Scenario,
    *,
    policy: Any = None,
    faults: Fault | Iterable[Fault] = (),
    seed: int = 0,
    **bounds: int,
) -> Run:
    """Run a scenario, by name or as a record, in virtual time: see `labkit.simulation.simulate`."""
    return run(find(scenario), policy=policy, faults=faults, seed=seed, **bounds)


def points(scenario: str | Scenario, kind: str = "cancel", **inputs: Any) -> list[Point]:
    """Where a fault of `kind` may strike a scenario: see `labkit.simulation.points`."""
    return points_of(find(scenario), kind, **inputs)


def explore(scenario: str | Scenario, *, faults: str | Iterable[str], **how: Any) -> Exploration:
    """Strike at every point of a scenario with these faults: see `labkit.simulation.explore`."""
    return strike(find(scenario), faults=faults, **how)


def breakpoints() -> tuple[Breakpoint, ...]:
    """The named lines of the recovery code, with file and line for any debugger."""
    runs = sorted(
        [*RUNS.glob("*.py"), *RUNS.glob("discussion/*.py")]
    )  # by their files: to import them would load their libraries
    return in_files([*(str(module.__file__) for module in READABLE), *map(str, runs)])
