"""The call chain is read from the places of a run."""

from __future__ import annotations

import labkit
from labkit.teaching.chain import chain, roots


def test_the_chain_of_a_retry_leads_from_the_client_to_the_guard() -> None:
    lines = chain(labkit.simulate("retry.guarded")).text.splitlines()
    depth = {line.split()[0].strip(","): len(line) - len(line.lstrip()) for line in lines[1:]}
    assert depth["careful"] < depth["stream_with_retry"] < depth["decide"]
    (guard,) = [line for line in lines if "'retry guard'" in line]
    assert guard.split()[0] == "decide"
    assert guard.endswith("passes 'retry guard' at 1.2 s")


def test_each_task_has_a_root_of_its_own() -> None:
    run = labkit.simulate("interruption.stop")
    told = {call.function: call.origin for call in roots(run)}
    assert told["one_turn"] == "task client"
    assert told["run_turn"] == "task turn"


def test_calls_are_counted_and_their_callers_are_those_of_the_places() -> None:
    run = labkit.simulate("retry.stall")

    def total(calls: object) -> int:
        return sum(call.times + total(call.calls.values()) for call in calls)  # type: ignore

    assert total(roots(run)) == len({place.frame for place in run.recorded})


def test_the_chart_is_small_and_has_a_box_for_each_line_of_the_text() -> None:
    made = chain(labkit.simulate("interruption.error"))
    assert len(made.png) < 60_000
    boxes = [text for text in made.figure.axes[0].texts if text.get_bbox_patch()]
    assert len(boxes) == len(made.text.splitlines()) - 1
