"""Scenarios of calls with effects. The policy under study is the executor's.

simulate("effects.happened"), resolved_by("effects.manual", happened=False)
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, Final

from labkit.recovery.cancel import stop, to_the_end
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.outcomes import Outcome
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.services import effects
from labkit.simulation import Observer, Run, Scenario, simulate
from labkit.simulation.judge import cancel_swallowed, left_over_task

from . import naive_calls
from .effect_judges import EFFECT_JUDGES, counted
from .rows import EFFECTS, rows
from .shop import Shop

POLICY: Final = ExecutionPolicy(
    retry=RetryPolicy(retry_on=TRANSIENT, attempts=3, jitter=0.0, stall=5.0, total=60.0),
    limit=10.0,
    lease=10.0,
    ttl=3_600.0,
    join=20.0,
)
REPEATS: Final = rows("effects")["reference"]["calls"]
KINDS: Final = tuple(effects.KINDS)
CUES: Final = effects.CUES

# what is chosen in the grid -> what differs from the careful way
WAYS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gives up": {"executor": "GivesUp"},
    "hopes": {"executor": "Hopes"},
    "tries again": {"executor": "TriesAgain"},
    "key of the call": {"keyed": "call"},
    "key of the amount": {"keyed": "amount"},
    "key of the order": {},
}


async def calling(
    shop: Shop,
    policy: ExecutionPolicy,
    observe: Observer,
    *,
    calls: Sequence[Sequence[Any]],
    person: Sequence[Any] = (),
    died: bool = False,
) -> dict[str, str]:
    """Make each call at its time, each by a worker of its own; what became of them, by id."""
    tasks: dict[str, asyncio.Task[Outcome]] = {}
    try:
        if died:
            await shop.worker_dies(calls[0], policy)
        for call in calls:
            tasks[call[1]] = asyncio.create_task(shop.at(call, policy), name=call[1])
        if person:
            await asyncio.sleep(person[0] - shop.clock())
            await shop.resolve(*person[1:])
        await asyncio.wait(tasks.values())
        return dict(zip(tasks, map(_status, tasks.values()), strict=True))
    finally:
        await to_the_end(_ended(shop, tuple(tasks.values())))


async def _ended(shop: Shop, tasks: Sequence[asyncio.Task[Outcome]]) -> None:
    """End what is still under way, and let the service finish what it has begun."""
    for task in tasks:
        await stop(task)
    await shop.service.idle()


def _status(task: asyncio.Task[Outcome]) -> str:
    return "cancelled" if task.cancelled() else task.result().status


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"effects.{name}", row) for name, row in rows("effects").items()]


def resolved_by(scenario: Scenario, *, happened: bool | Mapping[str, bool]) -> Scenario:
    """The same with another word of the person who finds out, of everything or by digest."""
    client: Any = scenario.client
    return scenario.but(client=partial(client, person=(40.0, happened)))


def world(name: str, way: str, *, kind: str = "payment") -> Run:
    """One call that gets no answer, in the world that is "did_not_happen" or "happened"."""
    row = {**rows("effects")[name], "kind": kind, **WAYS[way]}
    return simulate(_scenario(f"effects.{name}", row))


def cell(way: str, cue: str, *, kind: str = "payment") -> Run:
    """Three calls, two orders, the first request meets `cue`: one cell of the grid."""
    told = f"{way}, {cue}, {kind}"
    row = {"claim": told, "cues": [cue], "kind": kind, "calls": REPEATS, **WAYS[way]}
    return simulate(_scenario("effects.grid", row))


def figures(run: Run) -> dict[str, float]:
    """What a cell of the grid shows: see `counted`."""
    return counted(run.trace)


def _scenario(name: str, row: Mapping[str, Any]) -> Scenario:
    given = ("kind", "look_ups", "forgets_after", "remembers", "keyed")
    how: dict[str, Any] = {key: row[key] for key in given if key in row}
    for key in ("executor", "service"):
        if key in row:
            how[key] = getattr(naive_calls, row[key])
    cues = (row["died"], *row.get("cues", ())) if "died" in row else tuple(row.get("cues", ()))
    readable: tuple[ModuleType, ...] = (*EFFECTS, effects)
    return Scenario(
        name=name,
        claim=row["claim"],
        script=cues,
        make=partial(Shop, **how),
        client=partial(
            calling, calls=row["calls"], person=row.get("person", ()), died="died" in row
        ),
        policy=POLICY,
        judges=(*EFFECT_JUDGES, cancel_swallowed, left_over_task),
        refusals=("RecoveryError",),
        source=(*readable, naive_calls) if row.keys() & {"executor", "service"} else readable,
        breakpoints=tuple(row.get("breakpoints", ())),
    )
