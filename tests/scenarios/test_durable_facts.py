"""The answers behind the table of durable runs."""

from __future__ import annotations

import pytest

import labkit
from labkit.scenarios.durable_facts import goes_on_with, model_requests
from labkit.scenarios.facts import Fact
from tests.simulation.kit import trace

from .test_durable_judges import claimed, kept, put

BEGINNING = "at the beginning"
UNDER_WAY = "with the step that was under way"

ANSWERS = {
    "killed": (UNDER_WAY, "11"),
    "between": (UNDER_WAY, "11"),
    "starts_over": (BEGINNING, "14 or more"),
    "renewed_with_steps": (UNDER_WAY, "11"),
    "one_thread": (UNDER_WAY, "14 or more"),
    "effect_then_killed": (UNDER_WAY, "10"),
    "without_keys": (UNDER_WAY, "10"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_run_answers_for_itself(name: str) -> None:
    run = labkit.simulate(f"durable.{name}")
    assert (goes_on_with(run.trace).answer, model_requests(run.trace).answer) == ANSWERS[name]


def test_where_it_goes_on_is_decided_by_the_first_checkpoint_of_the_last_holder() -> None:
    run = labkit.simulate("durable.killed")
    decided = run.trace[goes_on_with(run.trace).event]
    assert (decided.kind, decided["by"], decided["step"]) == ("checkpoint", "worker-2", 5)


def test_what_the_one_before_still_puts_decides_nothing() -> None:
    told = (
        claimed("a", 1),
        put("a", 1),
        kept("a"),
        claimed("b", 2),
        put("a", 2),
        put("b", 0, "r/2"),
    )
    assert goes_on_with(trace(*told)) == Fact(BEGINNING, 5)


def test_a_step_that_was_passed_over_is_seen() -> None:
    run = labkit.simulate("durable.killed")
    first = goes_on_with(run.trace).event
    kept = [e.index for e in run.trace if e.kind == "step"]
    fewer = [e for e in run.trace if e.index not in kept[2:]]
    assert first in [e.index for e in fewer]
    assert goes_on_with(fewer).answer == "with the step after that"


@pytest.mark.parametrize(
    ("name", "number", "role"),
    [
        ("killed", 5, "critic"),
        ("between", 4, "coordinator"),
        ("starts_over", 5, "coordinator"),
        ("renewed_with_steps", 5, "critic"),
        ("one_thread", 5, "critic"),
        ("effect_then_killed", 10, "keeper"),
    ],
)
def test_the_first_request_that_is_made_again_decides_how_many_there_are(
    name: str, number: int, role: str
) -> None:
    """Where none is made again, it is the last one."""
    run = labkit.simulate(f"durable.{name}")
    asked = [event for event in run.trace if event.kind == "asked"]
    decided = run.trace[model_requests(run.trace).event]
    assert (asked.index(decided), decided["role"]) == (number - 1, role)
