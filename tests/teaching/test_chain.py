"""The call chain is read from the places of a run."""

from __future__ import annotations

import pytest

import labkit
from labkit.teaching.chain import calls, chain


def test_the_chain_of_a_retry_leads_from_the_client_to_the_guard() -> None:
    lines = chain(labkit.simulate("retry.guarded")).text().splitlines()
    depth = {line.split("└ ")[-1].split()[0].strip(","): line.find("└") for line in lines[1:]}
    assert depth["careful"] < depth["stream_with_retry"] < depth["decide"]
    (guard,) = [line for line in lines if "'retry guard'" in line]
    assert guard.split()[1] == "decide"
    assert guard.endswith("passes 'retry guard' at 1.2 s")


def test_each_task_has_a_root_of_its_own() -> None:
    paths = [call.path for call in calls(labkit.simulate("interruption.stop"))]
    assert ("task client", "one_turn") in paths
    assert ("task turn", "run_turn") in paths


def test_calls_are_counted_and_stand_right_below_their_callers() -> None:
    run = labkit.simulate("retry.stall")
    found = [call for call in calls(run) if len(call.path) > 1]
    frames = {p.frame for p in run.recorded if not p.function.startswith("_")}
    assert sum(len(call.times) for call in found) == len(frames)
    above: list[str] = []
    for call in calls(run):
        above[len(call.path) - 1 :] = [call.path[-1]]
        assert tuple(above) == call.path


@pytest.mark.parametrize("name", ["retry.rate_limit", "interruption.stop"])
def test_a_private_helper_is_a_part_of_its_caller(name: str) -> None:
    run = labkit.simulate(name)
    assert any(place.function.startswith("_") for place in run.recorded)
    assert all(not call.path[-1].startswith("_") for call in calls(run))
    passed = {mark for call in calls(run) for mark in call.passed}
    assert passed == {place.breakpoint for place in run.recorded if place.breakpoint}


def test_the_picture_holds_each_line_of_the_text() -> None:
    made = chain(labkit.simulate("interruption.error"))
    assert len(made.png) < 60_000
    assert [text.get_text() for text in made.figure.texts] == made.text().splitlines()


def test_tasks_of_one_kind_stand_together() -> None:
    told = labkit.chain("turn.reference").text()
    assert told.count("tasks save …") == 1
    assert "write, 15 calls" in told
    assert "task save" not in told


def test_a_breakpoint_that_is_passed_often_has_the_time_of_the_first_pass() -> None:
    run = labkit.simulate("retry.down")
    times = [place.time for place in run.recorded if place.breakpoint == "retry guard"]
    (passed,) = [call.passed for call in calls(run) if "retry guard" in call.passed]
    assert passed["retry guard"] == times[0] < times[-1]
