"""The table of an agent run's states, and what is said of a move that it does not allow."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.recovery.errors import RecoveryError
from labkit.recovery.run_states import (
    ENDED,
    MOVES,
    OWNER,
    QUEUED,
    STATES,
    TIME,
    WORKER,
    IllegalMove,
    LeaseLost,
    RunError,
    UnknownRun,
    possible,
    refused,
)

# From a state to those that a run may have next, as the course tells it.
WAYS = {
    "queued": {"running", "cancelled"},
    "running": {"running", "completed", "failed", "awaiting_input", "cancelled", "queued"},
    "awaiting_input": {"queued", "cancelled"},
    "completed": set(),
    "failed": {"queued"},
    "cancelled": set(),
}


def test_the_table_has_these_ways_and_no_others() -> None:
    found = {
        state: {move.target for move in MOVES.values() if state in move.sources} for state in STATES
    }
    assert found == WAYS


def test_a_run_begins_as_one_that_waits() -> None:
    begins = {name: move.target for name, move in MOVES.items() if not move.sources}
    assert begins == {"submit": QUEUED}


def test_every_state_can_be_reached() -> None:
    reached = {QUEUED}
    for _ in STATES:
        reached |= {it.target for it in MOVES.values() if reached & set(it.sources)}
    assert reached == set(STATES)


def test_only_states_of_the_list_are_named() -> None:
    named = {state for move in MOVES.values() for state in (*move.sources, move.target)}
    assert named == set(STATES)
    assert set(ENDED) < set(STATES)


def test_whoever_works_on_a_run_moves_it_only_while_it_runs() -> None:
    of_workers = {name: move.sources for name, move in MOVES.items() if move.by == WORKER}
    assert of_workers.pop("claim") == ("queued",)
    assert set(of_workers.values()) == {("running",)}


def test_what_time_does_is_told_by_the_next_claim() -> None:
    assert [(name, move.event) for name, move in MOVES.items() if move.by == TIME] == [
        ("expire", "")
    ]


def test_each_event_tells_of_one_move() -> None:
    events = [move.event for move in MOVES.values() if move.event]
    assert len(events) == len(set(events)) == 8


@pytest.mark.parametrize(
    ("state", "ways"),
    [
        ("queued", ["cancel"]),
        ("running", ["cancel"]),
        ("awaiting_input", ["answer", "cancel"]),
        ("failed", ["retry"]),
        ("completed", []),
        ("cancelled", []),
    ],
)
def test_what_an_owner_may_do_is_read_from_the_table(state: str, ways: list[str]) -> None:
    assert possible(state) == ways
    assert all(MOVES[way].by == OWNER for way in ways)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("awaiting_input", "retry: run 'run-1' is awaiting_input; possible is answer or cancel"),
        ("completed", "retry: run 'run-1' is completed; possible is nothing any more"),
    ],
)
def test_a_refused_move_says_what_the_run_is_and_what_is_possible(state: str, said: str) -> None:
    error = refused("run-1", state, "retry")
    assert isinstance(error, IllegalMove)
    assert str(error) == said


def test_all_that_is_said_of_runs_has_one_base() -> None:
    assert {RunError.__base__} == {RecoveryError}
    assert all(issubclass(kind, RunError) for kind in (UnknownRun, IllegalMove, LeaseLost))


@pytest.mark.parametrize("state", ["nope", "", None, 7, []])
def test_a_state_that_there_is_not_is_refused_with_those_there_are(state: Any) -> None:
    with pytest.raises(RunError, match=r"^there is no state .*; there is: queued, running, "):
        possible(state)
