"""The scenarios of workers and leases: each claim is what its run shows."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import labkit
from labkit.recovery.run_states import CANCELLED, COMPLETED, RUNNING
from labkit.runs.manager import RunPolicy
from labkit.scenarios import leases
from labkit.simulation import Run

NAMES = [name for name in labkit.names() if name.startswith("leases.")]
DOUBLE, FALSE, ORPHAN = "double_claim", "false_takeover", "orphan_run"

# name -> the state of the run, its last fence, the number of effects, and what is found
SHOWN: dict[str, tuple[str, int, int, set[str]]] = {
    "reference": (COMPLETED, 1, 3, set()),
    "killed": (COMPLETED, 2, 3, set()),
    "shut_down": (COMPLETED, 2, 3, set()),
    "nobody_looks": (RUNNING, 1, 1, {ORPHAN}),
    "read_then_write": (COMPLETED, 2, 3, {DOUBLE}),
    "frozen": (COMPLETED, 2, 3, set()),
    "no_fence": (COMPLETED, 2, 3, {"zombie_write"}),
    "cut_off": (COMPLETED, 2, 3, set()),
    "goes_on": (COMPLETED, 2, 4, {"effect_repeated"}),
    "long_step": (COMPLETED, 1, 3, set()),
    "renewed_with_steps": (RUNNING, 5, 1, {FALSE}),
    "another_clock": (RUNNING, 28, 1, {DOUBLE}),
    "cancelled": (CANCELLED, 1, 1, set()),
    "without_keys": (COMPLETED, 2, 4, {"effect_repeated"}),
    "kills": (COMPLETED, 2, 9, set()),
    "pauses": (COMPLETED, 2, 24, set()),
}


SHIELDED = ("clean-up", "claim", "write", "hand back", "shut down")


def test_every_scenario_is_shown_here() -> None:
    assert [f"leases.{name}" for name in SHOWN] == NAMES


@pytest.mark.parametrize("name", SHOWN)
def test_a_scenario_shows_what_it_claims(name: str) -> None:
    run = labkit.simulate(f"leases.{name}")
    state, fence, effects, findings = SHOWN[name]
    assert set(run.result.values()) == {state}
    assert claims(run)[-1][2] == fence
    assert len(run.ledger) == effects
    assert {finding.name for finding in run.findings} == findings


def claims(run: Run) -> list[tuple[float, str, int]]:
    """Each claim: when, by whom, and its fence."""
    told = [event for event in run.trace if (event.actor, event.kind) == ("store", "claimed")]
    return [(event.time, event["by"], event["fence"]) for event in told]


def test_a_run_whose_worker_was_killed_waits_for_the_end_of_its_lease() -> None:
    run = labkit.simulate("leases.killed")
    (_, first, _), (when, second, fence) = claims(run)
    last = max(e["until"] for e in run.trace if e.kind in ("claimed", "renewed") and e.get("until"))
    renewed = [e["until"] for e in run.trace if e.kind == "renewed" and e["by"] == "worker-1"]
    assert (first, second, fence) == ("worker-1", "worker-2", 2)
    assert renewed[-1] <= when <= renewed[-1] + 2.2 < last


def test_a_run_that_is_handed_back_waits_for_the_next_look_only() -> None:
    (_, first, _), (when, second, fence) = claims(labkit.simulate("leases.shut_down"))
    assert (first, second, fence) == ("worker-1", "worker-2", 2)
    assert when < 3.5 + 2.2


def test_a_worker_that_wakes_past_its_lease_is_refused_and_the_other_goes_on() -> None:
    run = labkit.simulate("leases.frozen")
    (thawed,) = [event.index for event in run.trace if event.kind == "thawed"]
    late = [event for event in run.trace[thawed:] if event.get("by") == "worker-1"]
    assert [event.kind for event in late] == ["refused"]
    assert [event.actor for event in run.trace if event.kind == "late_write"] == ["worker-1"]
    assert Counter(effect.name for effect in run.ledger) == dict.fromkeys(
        ("reserve", "send_mail", "ship"), 1
    )


def test_a_worker_that_is_cut_off_stops_before_another_may_begin() -> None:
    run = labkit.simulate("leases.cut_off")
    (lost,) = [e.time for e in run.trace if (e.actor, e.kind) == ("worker-1", "claim_lost")]
    assert lost < claims(run)[1][0]
    assert lost < max(
        e["until"] for e in run.trace if e.kind == "renewed" and e["by"] == "worker-1"
    )


def test_a_renewal_beside_the_work_keeps_a_step_that_is_longer_than_the_lease() -> None:
    run = labkit.simulate("leases.long_step")
    renewed = [event.time for event in run.trace if event.kind == "renewed"]
    gaps = [later - sooner for sooner, later in pairwise(renewed)]
    assert max(gaps) <= leases.POLICY.lease / 2
    assert len(claims(run)) == 1


def test_a_longer_lease_is_slower_after_a_kill_and_takes_less_from_the_living() -> None:
    found = leases.sweep([3.0, 10.0, 60.0])
    assert [row["lease"] for row in found] == [3.0, 10.0, 60.0]
    recovery, false = ([row[name] for row in found] for name in ("recovery", "false"))
    assert recovery == sorted(recovery)
    assert all(row["recovery"] <= row["lease"] + 2.2 for row in found)
    assert false == sorted(false, reverse=True)
    assert (false[0], false[-1]) == (7, 0)


def test_a_kill_and_a_freeze_are_told_apart_where_they_are_counted() -> None:
    kills, pauses = (labkit.simulate(f"leases.{name}") for name in ("kills", "pauses"))
    assert (len(leases.recoveries(kills)), leases.false_takeovers(kills)) == (3, 0)
    assert leases.recoveries(pauses) == []
    assert leases.false_takeovers(pauses) > 0


@pytest.mark.parametrize("kind", ["kill", "freeze"])
def test_a_worker_struck_at_its_first_points_leaves_a_run_that_is_done(kind: str) -> None:
    scenario = labkit.find("leases.reference")
    for point in labkit.points(scenario, kind)[:12]:
        fault = labkit.Fault(kind, point.number, task=point.task)
        run = labkit.simulate(scenario, faults=fault)
        assert (run.result, run.findings) == ({"run-1": COMPLETED}, ())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kill", "freeze", "cancel"])
def test_a_worker_struck_anywhere_leaves_a_run_that_is_done_once(kind: str) -> None:
    found = labkit.explore("leases.reference", faults=kind)
    # A task of `to_the_end` is cancelled by nobody.
    own = [each for each in found.outcomes if not each.point.task.startswith(SHIELDED)]
    assert len(own) > 25
    assert {each.verdict for each in own} == {"held"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["killed", "shut_down", "frozen", "cancelled"])
@pytest.mark.parametrize("kind", ["kill", "freeze"])
def test_whatever_strikes_beside_nobody_writes_for_another(name: str, kind: str) -> None:
    found = labkit.explore(f"leases.{name}", faults=kind)
    assert found.struck > 50
    assert {each.error for each in found.outcomes} == {""}
    # With its last worker gone, a run waits.
    assert {each for outcome in found.outcomes for each in outcome.findings} <= {ORPHAN}


def test_the_same_seed_gives_the_same_run_of_workers() -> None:
    first, second = (labkit.simulate("leases.frozen") for _ in range(2))
    assert first.hash == second.hash


def test_a_policy_of_the_learners_own_is_taken() -> None:
    policy = RunPolicy(lease=60.0, watchdog=2.0)
    frozen = labkit.simulate("leases.frozen", policy=policy)
    assert len(claims(frozen)) == 1  # it woke in time
