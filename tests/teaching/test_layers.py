"""Checkpoints and the row of a run side by side."""

from __future__ import annotations

from functools import partial

import pytest

import labkit
from labkit.scenarios.durable import talking
from labkit.simulation import SimulationError


def test_each_line_is_a_checkpoint_or_a_row_or_a_blow_in_the_order_in_which_they_came() -> None:
    run = labkit.simulate("durable.killed")
    told = labkit.layers(run)
    assert list(told.columns) == ["seconds", "by", "what", "checkpoint", "row", "row names"]
    assert told["seconds"].is_monotonic_increasing
    either = (told["checkpoint"] == "") ^ (told["row"] == "")
    assert list(either) == [what != "killed" for what in told["what"]]
    put = [event for event in run.trace if event.kind in ("checkpoint", "copied")]
    assert list(told.loc[told["checkpoint"] != "", "checkpoint"]) == [
        f"{event['thread']} step {event['step']}" for event in put
    ]


def test_a_row_says_which_checkpoint_it_names_also_when_it_is_claimed() -> None:
    told = labkit.layers("durable.between")
    named = list(told.loc[told["row"] != "", "row names"])[:8]
    one = [f"run-1/1 step {step}" for step in (1, 2, 3)]
    assert named == ["", "", *one, one[-1], "run-1/2 step 4", "run-1/2 step 5"]
    before = list(told["checkpoint"])[: list(told["what"]).index("copied")]
    assert "run-1/1 step 4" in before


def test_the_row_that_one_thread_writes_names_the_checkpoint_that_came_back() -> None:
    told = labkit.layers("durable.one_thread")
    refused = list(told["what"]).index("step refused")
    assert told["row names"][refused - 3] == "run-1 step 8"
    assert told["row names"][refused + 2] == "run-1 step 6"


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("renewed_with_steps", ["frozen for 14.4 s", "wakes", "step refused"]),
        ("effect_then_killed", ["effect: create_ticket", "killed"]),
        ("without_keys", ["effect: create_ticket", "killed", "effect: create_ticket"]),
    ],
)
def test_what_struck_a_worker_what_was_refused_and_effects_have_lines(
    name: str, lines: list[str]
) -> None:
    told = labkit.layers(f"durable.{name}")
    assert [what for what in told["what"] if what in lines] == lines
    rows = told.set_index("what")["row"]
    assert rows.get("step refused", "fence 1: not written") == "fence 1: not written"
    assert set(told.loc[told["what"].str.startswith("effect"), "by"]) <= {"service"}


def test_a_worker_that_is_cut_off_has_a_line_for_how_long() -> None:
    cut = labkit.find("durable.reference").but(
        client=partial(talking, runs=[["Which database?"]], happens=[[2.0, "cut", "worker-1", 3.0]])
    )
    assert "cut off from the store for 3 s" in set(labkit.layers(labkit.simulate(cut))["what"])


def test_who_takes_over_copies_what_the_row_names_and_each_step_has_its_name() -> None:
    told = labkit.layers("durable.killed")
    (copied,) = told.index[told["what"] == "copied"]
    assert told.loc[copied, "checkpoint"] == "run-1/2 step 4"
    assert told.loc[copied - 1, ["what", "row names"]].tolist() == ["claimed", "run-1/1 step 4"]
    assert list(told["what"])[-4:] == ["summarise kept", "checkpoint", "remember kept", "completed"]
    assert told.iloc[-1]["row"] == "completed, fence 2, event 16"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("durable.asks", ["asked for", "asks a person", "is answered"]),
        ("durable.broken", ["failed", "retried"]),
        ("durable.cancelled", ["cancelled"]),
    ],
)
def test_a_move_is_said_in_a_word(name: str, words: list[str]) -> None:
    assert {*words} <= {*labkit.layers(name)["what"]}


def test_of_two_runs_each_row_says_whose_it_is() -> None:
    rows = labkit.layers("durable.remembered")["row"]
    assert {row.partition(":")[0] for row in rows if row} == {"run-1", "run-2"}


def test_a_run_without_checkpoints_is_refused_with_one_that_has_some() -> None:
    with pytest.raises(SimulationError, match=r"leases\.killed has no checkpoints: try 'durable"):
        labkit.layers("leases.killed")
