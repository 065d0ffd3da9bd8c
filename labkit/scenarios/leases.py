"""Scenarios of workers that hold runs by leases. The policy under study is the manager's.

simulate("leases.killed"), simulate("leases.frozen", policy=RunPolicy(lease=60.0))
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from labkit.recovery import lease, renewal, run_states
from labkit.recovery.run_states import AWAITING, ENDED
from labkit.runs import driving, front, jobs, manager, store
from labkit.runs.manager import RunPolicy
from labkit.simulation import Observer, Run, Scenario, simulate

from . import naive_runs
from .floor import JOB, OWNER, Floor, Worker
from .lease_judges import LEASE_JUDGES, taken_over
from .rows import rows

POLICY: Final = RunPolicy(lease=10.0, watchdog=2.0)
UNTIL: Final = 90.0  # seconds; by then every run is done, or never will be
LOOK: Final = 1.0
PATIENCE: Final = 10.0  # seconds
SOURCE: Final = (manager, driving, store, front, renewal, lease, jobs, run_states)


async def working(
    floor: Floor,
    policy: RunPolicy,
    observe: Observer,
    *,
    workers: int,
    runs: int = 1,
    happens: Sequence[Sequence[Any]] = (),
    until: float = UNTIL,
    at_least: float = 0.0,
) -> dict[str, str]:
    """Let workers do the runs of one owner while this and that happens; the state of each run."""
    for number in range(1, workers + 1):
        floor.worker(f"worker-{number}", policy)
    for number in range(1, runs + 1):
        await floor.store.submit(JOB, {"order": number}, owner=OWNER, run_id=f"run-{number}")
    for at, what, *about in happens:
        await asyncio.sleep(at - floor.clock())
        await happen(floor, what, *about)
    await ended(floor, until, at_least)
    return {run_id: run["status"] for run_id, run in floor.left().items()}


async def ended(floor: Floor, until: float, at_least: float) -> None:
    """Wait until every run is done, or nobody waits any longer; then workers leave in order.

    Who is frozen is waited for: what it does then is what a freeze is about.
    """
    for _ in range(int(until / LOOK)):
        frozen = any(worker.process.state == "frozen" for worker in floor.workers.values())
        if not (_open(floor) or frozen) and floor.clock() >= at_least:
            for worker in floor.workers.values():
                await _shut_down(worker)
            return
        await asyncio.sleep(LOOK)


def _open(floor: Floor) -> bool:
    return any(run["status"] not in (*ENDED, AWAITING) for run in floor.left().values())


async def happen(floor: Floor, what: str, *about: Any) -> None:
    """One thing that happens to a worker, or to a run."""
    if what == "cancel":
        await floor.store.cancel(about[0], OWNER)
    else:
        worker, *seconds = floor.workers[about[0]], *about[1:]
        if what == "kill":
            worker.process.kill()
        elif what == "freeze":
            worker.process.freeze(*seconds)
        elif what == "cut":
            worker.line.cut(*seconds)
        elif what == "shut down":
            await _shut_down(worker)


async def _shut_down(worker: Worker) -> None:
    """Let it end in order, unless it is dead or frozen."""
    if worker.process.state == "running":
        worker.process.start(worker.manager.shutdown())
        await asyncio.wait([worker.serving], timeout=PATIENCE)


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"leases.{name}", row) for name, row in rows("leases").items()]


def recoveries(run: Run) -> list[float]:
    """Seconds from each kill to the moment when another claims the run that was held."""
    killed, claims = _killed(run), taken_over(run.trace)
    return [round(e.time - killed[b.worker], 1) for e, b in claims if b.worker in killed]


def false_takeovers(run: Run) -> int:
    """How often a run was taken over from a worker that was not dead."""
    killed = _killed(run)
    return sum(before.worker not in killed for _, before in taken_over(run.trace))


def _killed(run: Run) -> dict[str, float]:
    return {event.actor: event.time for event in run.trace if event.kind == "killed"}


def sweep(leases: Iterable[float]) -> list[dict[str, float]]:
    """What each length of a lease costs, in seconds, and in work that is done twice.

    `recovery`: from a kill until another goes on, on average of three kills. `false`: how many of
    eight workers that stood still for 1 to 34 s lost a run that they would have gone on with.
    """
    found, table = [], rows("leases")
    each = [_scenario(f"leases.{name}", table[name]) for name in ("kills", "pauses")]
    for seconds in leases:
        policy = replace(POLICY, lease=seconds, capacity=1)
        kills, pauses = (simulate(scenario, policy=policy) for scenario in each)
        waits = recoveries(kills)
        recovery = round(sum(waits) / len(waits), 1)
        found.append({"lease": seconds, "recovery": recovery, "false": false_takeovers(pauses)})
    return found


def _scenario(name: str, row: Mapping[str, Any]) -> Scenario:
    how: dict[str, Any] = {key: row[key] for key in ("keyed", "seconds") if key in row}
    if "store" in row:
        how["store"] = getattr(naive_runs, row["store"])
    return Scenario(
        name=name,
        claim=row["claim"],
        script=None,
        make=partial(Floor, **how),
        client=partial(
            working,
            workers=row.get("workers", 2),
            runs=row.get("runs", 1),
            happens=row.get("happens", ()),
            until=row.get("until", UNTIL),
            at_least=row.get("at_least", 0.0),
        ),
        policy=replace(POLICY, **row.get("policy", {})),
        judges=LEASE_JUDGES,
        source=(*SOURCE, naive_runs) if "store" in row else SOURCE,
        breakpoints=tuple(row.get("breakpoints", ())),
    )
