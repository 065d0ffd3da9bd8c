"""The prediction tables of effects are graded from traces, by the events that decided them."""

from __future__ import annotations

from typing import Any

import pytest

import labkit
from labkit.recovery.outcomes import STATUSES
from labkit.scenarios import effect_facts as facts
from labkit.scenarios.effects import cell
from labkit.scenarios.facts import Fact
from labkit.simulation import Event, SimulationError
from tests.simulation.kit import trace

NOTHING = "nothing, it may have been done"

# table -> row -> the answers, and the times of the events that decided them
KEYS: dict[str, dict[str, list[tuple[str, float]]]] = {
    "timeouts": {
        "effects.refused": [("that it was not done", 0.0), ("one", 1.2), ("succeeded", 1.4)],
        "effects.did_not_happen": [(NOTHING, 10.0), ("one", 11.4), ("succeeded", 11.6)],
        "effects.happened": [(NOTHING, 10.0), ("one", 0.2), ("reconciled", 10.2)],
        "effects.gives_up": [(NOTHING, 10.0), ("one", 0.2), ("failed", 10.0)],
        "effects.hopes": [(NOTHING, 10.0), ("none", 10.0), ("succeeded", 10.0)],
        "effects.tries_again": [(NOTHING, 11.0), ("two", 11.2), ("succeeded", 11.4)],
    },
    "repeats": {
        "effects.reference": [("reused", 30.0), ("succeeded", 60.4), ("two", 60.2)],
        "effects.call_key": [("succeeded", 30.4), ("succeeded", 60.4), ("three or more", 60.2)],
        "effects.payload_key": [("reused", 30.0), ("rejected", 60.0), ("one", 0.2)],
    },
    "doubts": {
        "effects.at_once": [("succeeded", 0.4), ("deduplicated", 0.5), ("one", 0.2)],
        "effects.conflict": [("succeeded", 0.4), ("rejected", 30.0), ("one", 0.2)],
        "effects.died": [("reconciled", 10.2), ("reused", 12.0), ("one", 0.2)],
        "effects.died~lease=86400": [("deduplicated", 22.0), ("deduplicated", 32.0), ("one", 0.2)],
        "effects.manual": [("manual intervention", 13.8), ("reused", 60.0), ("one", 0.2)],
        "effects.wrong_person": [("manual intervention", 13.8), ("succeeded", 60.4), ("two", 60.2)],
    },
    "budgets": {
        "budgets.plain": [("36", 29.7), ("up to 30 seconds", 29.8)],
        "budgets.plain_shared": [("4", 2.5), ("10 seconds or less", 2.6)],
        "budgets.per_call": [("4", 35.0), ("longer", 43.5)],
        "budgets.deadline": [("1", 4.0), ("10 seconds or less", 9.5)],
    },
}
# of a crowd whose moments hang on chance
CROWDS = {
    "budgets.storm": ["more than 100", "some"],
    "budgets.storm_jitter": ["21 to 100", "all"],
    "budgets.storm_budget": ["20 or fewer", "none"],
}
ROWS = [(table, row) for table, rows in KEYS.items() for row in rows]


@pytest.mark.parametrize(("table", "row"), ROWS)
def test_the_answers_of_a_row_and_the_moments_that_decided_them(table: str, row: str) -> None:
    columns = labkit.predict(table).columns
    events = labkit.from_token(row).trace
    found = [facts.EFFECT_FACTS[column](events) for column in columns]
    assert [(fact.answer, round(events[fact.event].time, 1)) for fact in found] == KEYS[table][row]


@pytest.mark.parametrize("row", CROWDS)
def test_what_becomes_of_a_crowd(row: str) -> None:
    events = labkit.simulate(row).trace
    assert [fact(events).answer for fact in (facts.crowd, facts.served)] == CROWDS[row]


@pytest.mark.parametrize("table", KEYS)
def test_no_row_is_left_out_of_the_key(table: str) -> None:
    assert list(labkit.predict(table).rows) == list(KEYS[table])


@pytest.mark.parametrize("column", ["first_call", "second_call"])
def test_the_choices_of_a_call_are_the_ten_words_of_an_outcome(column: str) -> None:
    assert tuple(labkit.predict("doubts").columns[column]["choices"]) == STATUSES


def test_a_second_order_is_an_effect_of_its_own_whatever_the_first_request_met() -> None:
    found = [facts.effects(cell("key of the order", cue).trace).answer for cue in ("ok", "late")]
    assert found == ["two", "two"]


def asked(*after: tuple[Any, ...]) -> tuple[Event, ...]:
    """A trace of one request at 0, and what comes after it."""
    return trace((0, "service", "request"), *after, (99, "lab", "end"))


@pytest.mark.parametrize(
    ("after", "answer", "event"),
    [
        ([(1, "service", "answer"), (1, "worker", "tried")], "that it was done", 2),
        ([(1, "worker", "tried", {"sent": False})], "that it was not done", 1),
        ([(9, "worker", "tried", {"sent": True}), (9, "service", "answer")], NOTHING, 1),
        ([(9, "worker", "attempt"), (9, "service", "answer")], NOTHING, 1),
        ([(9, "model", "told"), (10, "service", "answer")], NOTHING, 1),
        ([(5, "ledger", "effect")], NOTHING, 2),
    ],
    ids=["answered", "refused", "late", "tried again", "told before", "no end"],
)
def test_what_a_caller_can_know_is_decided_when_its_first_try_is_over(
    after: list[tuple[Any, ...]], answer: str, event: int
) -> None:
    assert facts.known(asked(*after)) == Fact(answer, event)


def test_without_a_request_a_caller_knows_nothing() -> None:
    assert facts.known(trace((0, "lab", "end"))) == Fact(NOTHING, 0)


CALLS = [(0, "model", "calls", {"call": "c1"}), (1, "model", "calls", {"call": "c2"})]


def told(call: str, status: str) -> tuple[Any, ...]:
    return (2, "model", "told", {"call": call, "status": status})


def test_a_call_is_told_by_its_own_answer_in_whatever_order_they_come() -> None:
    events = trace(*CALLS, told("c2", "reused"), told("c1", "succeeded"))
    assert facts.first_call(events) == Fact("succeeded", 3)
    assert facts.second_call(events) == Fact("reused", 2)


def test_of_a_call_without_an_answer_the_model_is_told_nothing() -> None:
    events = trace(*CALLS, told("c1", "succeeded"), (9, "lab", "end"))
    assert facts.second_call(events) == Fact("nothing", 3)


def test_a_call_that_is_never_made_is_no_answer() -> None:
    with pytest.raises(SimulationError, match="makes 2 calls only: there is no call 3"):
        facts.third_call(trace(*CALLS))


@pytest.mark.parametrize(
    ("count", "answer"),
    [(0, "none"), (1, "one"), (2, "two"), (3, "three or more"), (4, "three or more")],
)
def test_effects_are_counted_in_the_ledger(count: int, answer: str) -> None:
    events = trace(*[(1, "ledger", "effect")] * count, (2, "service", "answer"), (9, "lab", "end"))
    assert facts.effects(events) == Fact(answer, count - 1 if count else 1)


def page(kind: str, time: float) -> tuple[Any, ...]:
    return (time, "page", kind, {"text": "x"})


@pytest.mark.parametrize(
    ("time", "answer"),
    [
        (10.0, "10 seconds or less"),
        (10.1, "up to 30 seconds"),
        (30.0, "up to 30 seconds"),
        (30.1, "longer"),
    ],
)
def test_a_page_shows_its_end_at_the_last_thing_that_it_shows(time: float, answer: str) -> None:
    events = trace(page("shown", 1.0), page("error", time), (99, "lab", "end"))
    assert facts.shown_after(events) == Fact(answer, 1)


def test_every_request_is_one_that_was_sent_and_the_last_one_decides() -> None:
    assert facts.sent(asked((1, "client", "wait"), (2, "provider", "request"))) == Fact("2", 2)
    assert facts.sent(trace((0, "lab", "end"))) == Fact("0", 0)


@pytest.mark.parametrize(
    ("times", "answer", "event"),
    [
        ([1.0] * 20, "20 or fewer", 0),
        ([1.0] * 21, "21 to 100", 0),
        ([1.0] * 100, "21 to 100", 0),
        ([0.0, *[5.0] * 100, 5.9], "more than 100", 1),
        ([5.0] * 100 + [6.0] * 100, "21 to 100", 0),
    ],
)
def test_a_crowd_is_counted_in_any_one_second_from_its_first_retry(
    times: list[float], answer: str, event: int
) -> None:
    events = trace(*((time, "provider", "request", {"attempt": 2}) for time in times))
    assert facts.crowd(events) == Fact(answer, event)


def test_first_tries_are_no_crowd_of_retries() -> None:
    first = [(0, "provider", "request", {"attempt": 1})] * 200
    assert facts.crowd(trace(*first)) == Fact("20 or fewer", 199)


@pytest.mark.parametrize(
    ("kinds", "answer", "event"),
    [
        (["shown", "shown"], "all", 1),
        (["shown", "error"], "some", 0),
        (["error", "error"], "none", 2),
    ],
)
def test_who_is_served_is_decided_by_the_last_answer(
    kinds: list[str], answer: str, event: int
) -> None:
    pages = [page(kind, 1.0) for kind in kinds]
    assert facts.served(trace(*pages, (2, "lab", "end"))) == Fact(answer, event)
