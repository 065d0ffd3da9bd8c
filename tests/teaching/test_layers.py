"""Checkpoints and the row of a run side by side."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import SimulationError


def test_each_line_is_a_checkpoint_or_a_row_in_the_order_in_which_they_came() -> None:
    run = labkit.simulate("durable.killed")
    told = labkit.layers(run)
    assert list(told.columns) == ["seconds", "by", "what", "checkpoint", "row"]
    assert told["seconds"].is_monotonic_increasing
    assert all((told["checkpoint"] == "") ^ (told["row"] == ""))
    put = [event for event in run.trace if event.kind in ("checkpoint", "copied")]
    assert list(told.loc[told["checkpoint"] != "", "checkpoint"]) == [
        f"{event['thread']} step {event['step']}" for event in put
    ]


def test_who_takes_over_copies_what_the_row_names_and_each_step_has_its_name() -> None:
    told = labkit.layers("durable.killed")
    (copied,) = told.index[told["what"] == "copied"]
    assert told.loc[copied, "checkpoint"] == "run-1/2 step 4"
    assert told.loc[copied - 1, "what"] == "claimed"
    assert list(told["what"])[-5:] == [
        "summarise kept",
        "checkpoint",
        "remember kept",
        "completed",
    ] or list(told["what"])[-4:] == ["summarise kept", "checkpoint", "remember kept", "completed"]
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
