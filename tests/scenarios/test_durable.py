"""The scenarios of discussions that outlive their workers: each claim is what its run shows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

import labkit
from labkit.recovery.run_states import CANCELLED, COMPLETED
from labkit.runs.manager import RunPolicy
from labkit.simulation import Event, Run

NAMES = [name for name in labkit.names() if name.startswith("durable.")]

# name -> state of each run, requests to models, effects, last fence of the first run, findings
SHOWN: dict[str, tuple[tuple[str, ...], int, int, int, set[str]]] = {
    "reference": ((COMPLETED,), 10, 0, 1, set()),
    "killed": ((COMPLETED,), 11, 0, 2, set()),
    "between": ((COMPLETED,), 11, 0, 2, set()),
    "starts_over": ((COMPLETED,), 14, 0, 2, {"steps_redone"}),
    "zombie": ((COMPLETED,), 11, 0, 2, set()),
    "renewed_with_steps": ((COMPLETED,), 11, 0, 2, set()),
    "one_thread": ((COMPLETED,), 14, 0, 2, {"zombie_checkpoint", "steps_redone"}),
    "asks": ((COMPLETED,), 11, 0, 2, set()),
    "crash_after_answer": ((COMPLETED,), 11, 0, 2, set()),
    "approved": ((COMPLETED,), 10, 2, 3, set()),
    "rejected": ((COMPLETED,), 10, 0, 2, set()),
    "drifted": ((COMPLETED,), 11, 0, 2, set()),
    "approved_by_name": ((COMPLETED,), 11, 1, 2, {"unapproved_effect"}),
    "effect_then_killed": ((COMPLETED,), 10, 1, 3, set()),
    "without_keys": ((COMPLETED,), 10, 2, 3, {"effect_repeated"}),
    "broken": ((COMPLETED,), 11, 0, 2, set()),
    "remembered": ((COMPLETED, COMPLETED), 21, 0, 2, set()),
    "cancelled": ((CANCELLED, COMPLETED), 21, 0, 2, set()),
    "remembered_at_once": ((CANCELLED, COMPLETED), 21, 0, 2, {"memory_of_unfinished"}),
}


def test_every_scenario_is_shown_here() -> None:
    assert [f"durable.{name}" for name in SHOWN] == NAMES


@pytest.mark.parametrize("name", SHOWN)
def test_a_scenario_shows_what_it_claims(name: str) -> None:
    run = labkit.simulate(f"durable.{name}")
    states, requests, effects, fence, findings = SHOWN[name]
    assert (run.error, tuple(run.result.values())) == (None, states)
    assert (len(asked(run)), len(run.effects)) == (requests, effects)
    claims = [event for event in told(run, "claimed") if event["run"] == "run-1"]
    assert claims[-1]["fence"] == fence
    assert {finding.name for finding in run.findings} == findings


def told(run: Run, kind: str) -> list[Event]:
    return [event for event in run.trace if (event.actor, event.kind) == ("store", kind)]


def asked(run: Run) -> list[str]:
    return [event["role"] for event in run.trace if event.kind == "asked"]


def steps(run: Run, run_id: str = "run-1") -> list[str]:
    return [event["node"] for event in told(run, "step") if event["run"] == run_id]


def test_wherever_a_model_is_asked_a_kill_costs_that_request_and_nothing_else() -> None:
    whole = labkit.simulate("durable.reference")
    points = labkit.points("durable.reference", "kill")
    calls = [point for point in points if point.function == "_agenerate"]
    assert len(calls) == len(asked(whole)) == 10
    for call in calls:
        run = labkit.simulate(
            "durable.reference", faults=labkit.Fault("kill", call.number, task=call.task)
        )
        assert run.result == {"run-1": COMPLETED}
        assert steps(run) == steps(whole)
        assert len(asked(run)) == 11
        assert len(told(run, "claimed")) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["kill", "freeze"])
def test_a_discussion_is_done_once_wherever_its_worker_is_struck(kind: str) -> None:
    found = labkit.explore("durable.reference", faults=kind)
    assert found.struck > 400
    assert found.counts["held"] == found.struck


def test_what_is_done_is_not_done_again_and_what_was_under_way_is() -> None:
    run = labkit.simulate("durable.killed")
    assert Counter(steps(run)) == Counter(steps(labkit.simulate("durable.reference")))
    assert asked(run)[3:5] == ["critic", "critic"]


def test_the_zombies_checkpoint_is_put_and_nobody_goes_on_from_it() -> None:
    run = labkit.simulate("durable.renewed_with_steps")
    thawed = next(event for event in run.trace if event.kind == "thawed")
    late = [
        e for e in run.trace[thawed.index :] if e.kind == "checkpoint" and e["by"] == "worker-1"
    ]
    assert [(event["thread"], event["step"]) for event in late] == [("run-1/1", 5)]
    assert steps(run) == steps(labkit.simulate("durable.reference"))


def test_who_was_held_up_for_long_asks_before_it_puts_a_checkpoint() -> None:
    run = labkit.simulate("durable.zombie")
    thawed = next(event for event in run.trace if event.kind == "thawed")
    after = run.trace[thawed.index :]
    assert not [e for e in after if e.kind == "checkpoint" and e["by"] == "worker-1"]


def test_nobody_holds_a_run_that_waits_for_its_user() -> None:
    run = labkit.simulate("durable.asks")
    ask, answer = (
        next(event for event in told(run, "wrote") if event["event"] == kind)
        for kind in ("awaiting_input", "input_received")
    )
    assert answer.time - ask.time > 25.0
    between = run.trace[ask.index : answer.index]
    assert not [event for event in between if event.kind in ("asked", "claimed", "renewed")]


def test_each_of_two_calls_runs_after_its_own_yes() -> None:
    run = labkit.simulate("durable.approved")
    yes = [event for event in run.trace if event.kind == "approved"]
    assert [event["name"] for event in yes] == ["create_ticket", "send_mail"]
    done = [effect for effect in run.trace if effect.actor == "ledger"]
    assert [event["name"] for event in done] == ["create_ticket", "send_mail"]
    assert yes[0].time < done[0].time < yes[1].time < done[1].time


def test_what_was_approved_by_name_is_not_what_is_done() -> None:
    run = labkit.simulate("durable.approved_by_name")
    (yes,) = [event for event in run.trace if event.kind == "approved"]
    (effect,) = run.effects
    assert json.loads(yes["arguments"])["title"] == "Try plan v1"
    assert effect["title"] == "Try plan v2"


def test_a_run_that_failed_goes_on_from_the_step_that_failed() -> None:
    run = labkit.simulate("durable.broken")
    assert steps(run) == steps(labkit.simulate("durable.reference"))
    assert asked(run)[3:5] == ["critic", "critic"]


def test_the_second_discussion_reads_what_the_first_was_told() -> None:
    run = labkit.simulate("durable.remembered")
    assert [e["runs"] for e in run.trace if e.kind == "recalled"] == ["", "run-1"]


def test_the_policy_under_study_is_the_managers() -> None:
    run = labkit.simulate("durable.killed", policy=RunPolicy(lease=60.0, watchdog=2.0))
    second = told(run, "claimed")[1]
    assert second.time > 60.0


def test_the_library_of_the_graph_is_loaded_when_a_scenario_needs_it() -> None:
    ask = "import sys, labkit; labkit.names(); print('langgraph' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
