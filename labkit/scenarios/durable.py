"""Scenarios of discussions that outlive their workers. The policy under study is the manager's.

simulate("durable.killed"), simulate("durable.one_thread")
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from labkit.recovery import renewal, run_states
from labkit.runs import driving, manager, store
from labkit.runs.discussion.approval import digest_of, refusal
from labkit.runs.discussion.talk import Call
from labkit.runs.manager import RunPolicy
from labkit.simulation import Observer, Scenario
from labkit.simulation.outside import loading

from .durable_judges import DURABLE_JUDGES
from .floor import OWNER
from .leases import POLICY, UNTIL, ended, happen
from .rows import rows

if TYPE_CHECKING:
    from .round_table import RoundTable

_TALKS: Final = Path(store.__file__).parent / "discussion"
# By their files: to import them would load LangGraph, before anybody asks for it.
_READ: Final = "discussing checkpoints nodes graph approval memory speaking talk"
SOURCE: Final[tuple[ModuleType | str, ...]] = (
    *(str(_TALKS / f"{name}.py") for name in _READ.split()),
    *(driving, manager, store, renewal, run_states),
)


def table(script: object, observe: Observer, **how: Any) -> "RoundTable":
    """The round table, whose libraries are loaded when it is first needed."""
    with loading():
        from .round_table import RoundTable
    return RoundTable(script, observe, **how)


async def talking(
    table: "RoundTable",
    policy: RunPolicy,
    observe: Observer,
    *,
    runs: Sequence[Sequence[str]],
    workers: int = 2,
    happens: Sequence[Sequence[Any]] = (),
    until: float = UNTIL,
) -> dict[str, str]:
    """Let workers do the discussions of one owner while this and that happens; each one's state."""
    for number in range(1, workers + 1):
        table.worker(f"worker-{number}", policy)
    for number, told in enumerate(runs, start=1):
        await table.submit(f"run-{number}", *told)
    for at, what, *about in happens:
        await asyncio.sleep(at - table.clock())
        await _happen(table, what, *about)
    await ended(table, until, 0.0)
    return {run_id: run["status"] for run_id, run in table.left().items()}


async def _happen(table: "RoundTable", what: str, *about: Any) -> None:
    """One thing that happens: an owner's, or to a worker."""
    if what == "submit":
        await table.submit(*about)
    elif what == "say":
        await table.say(*about)
    elif what == "retry":
        await table.store.retry(about[0], OWNER, model=about[1])
    else:
        await happen(table, what, *about)


def digest(call: Mapping[str, Any]) -> str:
    """What an approval of such a call is bound to: see `labkit.runs.discussion.approval`."""
    return digest_of(_call(call))


def allowed(call: Mapping[str, Any], word: Mapping[str, Any], now: float) -> bool:
    """Whether the call may run after a person's word."""
    return not refusal(_call(call), word, now=now)


def _call(told: Mapping[str, Any]) -> Call:
    return Call(id="", tool=told["tool"], arguments=told["arguments"], until=told.get("until", 0.0))


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"durable.{name}", row) for name, row in rows("durable").items()]


def _scenario(name: str, row: Mapping[str, Any]) -> Scenario:
    world = {key: row[key] for key in ("keyed", "naive", "drifts", "blocks") if key in row}
    told = {key: row[key] for key in ("workers", "happens", "until") if key in row}
    naive = (str(Path(__file__).parent / "naive_talks.py"),) if "naive" in row else ()
    return Scenario(
        name=name,
        claim=row["claim"],
        script=None,
        make=partial(table, **world),
        client=partial(talking, runs=row.get("runs", [["Which database?"]]), **told),
        policy=replace(POLICY, **row.get("policy", {})),
        judges=DURABLE_JUDGES,
        source=(*SOURCE, *naive),
        breakpoints=tuple(row.get("breakpoints", ())),
    )
