"""Every scenario is struck at every point: what is careful holds, what is naive breaks by name."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import pytest

import labkit
from labkit.scenarios import clients
from labkit.simulation import Exploration, Outcome
from labkit.simulation.faults import KINDS
from tests.scenarios import naive_streams

PAIRS = 500
# A real library in each run: a tenth as fast.
SLOW = ("frameworks.", "sdk.", "budgets.langgraph", "budgets.nested")
CROWD = ("budgets.storm",)  # of 200 clients: not swept, since each has thousands of points
WORKERS = ("leases.", "durable.")  # processes, which are killed and frozen: see their own tests
FAST = [name for name in labkit.names() if not name.startswith(SLOW + CROWD + WORKERS)]
# Close kin of sessions.gate and turn.reference, with hundreds of points each.
LARGE = "sessions.busy sessions.no_lock sessions.tail sessions.three".split()
LARGE += "turn.late_stop turn.slow_store turn.trusting".split()
SWEPT = [pytest.param(n, marks=pytest.mark.slow) if n in LARGE else n for n in FAST]
REST = [name for name in labkit.names() if name.startswith(SLOW)]
# What a library does with its own tasks when they are struck, and with a wait that has no end.
LIBRARY = ("frameworks.langgraph", "frameworks.agents", "budgets.langgraph")
# A cancel of such a task comes from nobody but a loop that ends: it is shielded from its callers,
# and so a second one, in the middle of what the first one asked for, may leave that half done.
SHIELDED = ("clean-up", "save ")


@cache
def explored(name: str) -> Exploration:
    return labkit.explore(name, faults="all")


def wrong(found: Exploration) -> list[Outcome]:
    return [*found.of("broken"), *found.of("unresolved")]


def is_naive(name: str) -> bool:
    """Whether it breaks without a fault already, or says in its name that it is naive."""
    return name.endswith("_forgetful") or bool(explored(name).usual)


@pytest.mark.parametrize("name", SWEPT)
def test_what_is_careful_holds_at_every_point(name: str) -> None:
    found = explored(name)
    assert is_naive(name) or wrong(found) == []
    assert found.missed <= 2  # a task that never wakes again cannot be struck as it wakes
    struck = {row["fault"] for row in found.by_kind}
    assert struck == {kind for kind in KINDS if labkit.points(name, kind)}


@pytest.mark.slow  # where one worker does what several share above
def test_the_sweep_strikes_thousands_of_times() -> None:
    assert sum(explored(name).struck for name in FAST) > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("name", REST)
def test_what_is_careful_holds_inside_a_real_library_too(name: str) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("agents")
    found = explored(name)
    assert found.struck > 5
    assert is_naive(name) or name.startswith(LIBRARY) or wrong(found) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FAST)
def test_what_is_careful_holds_at_pairs_of_points(name: str) -> None:
    found = labkit.explore(name, faults="all", pairs=PAIRS)
    broken = [each for each in wrong(found) if not each.point.task.startswith(SHIELDED)]
    assert is_naive(name) or broken == []
    assert found.struck > explored(name).struck


def own(name: str, **changes: Any) -> Any:
    """The client of a scenario with other options; `stop_at=None` takes the user's stop away."""
    client: Any = labkit.find(name).client
    return partial(client.func, **{**client.keywords, **changes})


# on a script where it passes without a fault: scenario, client, fault, finding
NAIVE: list[tuple[str, Any, str, str]] = [
    ("retry.many_scripts", clients.starts_over, "disconnect", "duplicate_text"),
    ("retry.many_scripts", clients.hammers, "disconnect", "duplicate_text"),
    ("retry.many_scripts", clients.swallows_the_cancel, "cancel", "cancel_swallowed"),
    ("retry.many_scripts", clients.swallows_the_cancel, "timeout", "cancel_swallowed"),
    ("retry.many_scripts", clients.swallows_the_cancel, "disconnect", "truncation_accepted"),
    ("stream.whole", naive_streams.glues, "disconnect", "duplicate_text"),
    ("stream.whole", naive_streams.clears, "disconnect", "text_cleared"),
    ("stream.kept", naive_streams.skips_the_gap, "lose", "gap_spliced"),
    ("stream.kept", naive_streams.skips_the_gap, "reorder", "gap_spliced"),
    ("stream.kept", naive_streams.skips_the_gap, "duplicate", "piece_doubled"),
    ("stream.kept", naive_streams.counts_what_it_received, "cut", "cursor_overshoot"),
    ("turn.saves_late", "saves late", "crash", "effect_forgotten"),
    ("turn.saves_late", "saves late", "timeout", "result_lost"),
    ("turn.rolls_back", "rolls back", "cancel", "draft_lost"),
    ("turn.rolls_back", "rolls back", "stall", "effect_forgotten"),
]


@pytest.mark.parametrize(("name", "client", "kind", "finding"), NAIVE)
def test_what_is_naive_is_broken_by_a_fault_alone(
    name: str, client: Any, kind: str, finding: str
) -> None:
    client = own(name, stop_at=None) if isinstance(client, str) else client
    found = labkit.explore(name, faults=kind, client=client)
    assert found.usual == ()
    assert finding in {each for outcome in found.of("broken") for each in outcome.findings}


@pytest.mark.parametrize("kind", ["stall", "cancel"])
def test_a_client_that_waits_without_an_end_is_unresolved(kind: str) -> None:
    name, client = "stream.kept", naive_streams.skips_the_gap
    found = labkit.explore(name, faults=kind, client=client, total=2_000)
    assert {each.error for each in found.of("unresolved")} == {"Livelock"}
