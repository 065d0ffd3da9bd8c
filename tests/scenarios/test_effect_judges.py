"""The judges of effects, each on a trace that has its flaw and on one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.scenarios.effect_judges import (
    EFFECT_JUDGES,
    counted,
    effect_lost,
    effect_repeated,
    effect_unrecorded,
    failure_told,
    key_stuck,
)
from labkit.simulation import Event
from tests.simulation.kit import trace

SEVEN: dict[str, Any] = {"name": "charge", "order": "order-7", "amount": 5}
EIGHT = {**SEVEN, "order": "order-8"}


def calls(about: dict[str, Any] = SEVEN, key: str = "d7", call: str = "c1") -> tuple[Any, ...]:
    return 0.0, "model", "calls", {"call": call, "digest": key, **about}


def told(status: str, about: dict[str, Any] = SEVEN, call: str = "c1") -> tuple[Any, ...]:
    return 1.0, "model", "told", {"call": call, "status": status, **about}


def effect(about: dict[str, Any] = SEVEN) -> tuple[Any, ...]:
    return 0.5, "ledger", "effect", about


def entered(key: str = "d7") -> tuple[Any, ...]:
    return 0.1, "worker-1", "entered", {"digest": key, "answer": "execute"}


def left(state: str = "succeeded", until: float = 0.0, key: str = "d7") -> tuple[Any, ...]:
    return 2.0, "lab", "left", {key: (("state", state), ("until", until))}


def names(events: tuple[Event, ...]) -> list[tuple[str, int]]:
    return [(found.name, found.event) for judge in EFFECT_JUDGES for found in judge(events)]


RIGHT = {
    "it happened once": (calls(), effect(), told("succeeded")),
    "it was made twice and happened once": (calls(), effect(), told("succeeded"), told("reused")),
    "two were meant": (calls(), calls(EIGHT), effect(), effect(EIGHT), told("succeeded")),
    "nobody knows, and says so": (calls(), effect(), told("unknown")),
    "it failed, and did not happen": (calls(), told("failed")),
    "it failed, and then it was done": (calls(), told("failed"), effect(), told("succeeded")),
    "it failed, and a later call did it": (calls(), told("failed"), calls(), effect()),
    "it failed, and another call beside it did it": (calls(), calls(), told("failed"), effect()),
    "a repeat was rejected": (calls(), effect(), told("succeeded"), told("rejected")),
    "its key is in doubt": (calls(), entered(), effect(), left("pending", 10.0)),
    "there are no keys": (calls(), effect(), left(key="session")),
}


@pytest.mark.parametrize("why", RIGHT)
def test_what_is_right_has_no_finding(why: str) -> None:
    assert names(trace(*RIGHT[why])) == []


def test_the_second_effect_of_one_thing_is_a_repeat_and_the_third_no_other() -> None:
    events = trace(calls(), effect(), effect(), effect())
    assert [found.event for found in effect_repeated(events)] == [2]


def looked_up(state: str, key: str = "d7") -> tuple[Any, ...]:
    return 0.6, "worker-1", "looked_up", {"digest": key, "state": state}


def resolves(happened: bool) -> tuple[Any, ...]:
    return 0.7, "person", "resolves", {"digest": "d7", "happened": happened}


@pytest.mark.parametrize(
    ("before", "between", "cure"),
    [
        ([], [], "one key for every repeat"),
        ([], [looked_up("not done")], "the service's word was wrong"),
        ([], [resolves(False)], "the person's word was wrong"),
        ([], [looked_up("not done"), resolves(False)], "the person's word was wrong"),
        ([], [looked_up("done"), resolves(True)], "one key for every repeat"),
        ([], [looked_up("not done", key="d8")], "one key for every repeat"),
        ([looked_up("not done")], [], "one key for every repeat"),
    ],
)
def test_the_cure_of_a_repeat_is_for_what_was_said_between_the_two(
    before: list[Any], between: list[Any], cure: str
) -> None:
    events = trace(calls(), *before, effect(), *between, effect(), looked_up("not done"))
    (found,) = effect_repeated(events)
    assert found.cure.startswith(cure)


@pytest.mark.parametrize("status", ["succeeded", "reused", "reconciled"])
def test_what_was_told_as_done_and_is_not_there_is_lost(status: str) -> None:
    events = trace(calls(), effect(EIGHT), told(status))
    assert [found.event for found in effect_lost(events)] == [2]


def test_another_amount_is_another_thing() -> None:
    events = trace(calls(), effect({**SEVEN, "amount": 6}), told("succeeded"))
    assert [found.name for found in effect_lost(events)] == ["effect_lost"]


@pytest.mark.parametrize("status", ["failed", "timed out", "budget exhausted"])
def test_what_was_told_as_not_done_and_is_there_is_told_wrongly(status: str) -> None:
    events = trace(calls(), effect(), told(status))
    assert [found.event for found in failure_told(events)] == [2]


@pytest.mark.parametrize("rest", [left("failed"), left(key="another")])
def test_an_effect_whose_key_says_no_or_nothing_is_unrecorded(rest: tuple[Any, ...]) -> None:
    events = trace(calls(), entered(), effect(), rest)
    assert [found.event for found in effect_unrecorded(events)] == [3]


def test_a_claim_without_an_end_is_stuck_and_one_with_a_lease_is_not() -> None:
    assert [found.event for found in key_stuck(trace(left("pending", 1e9)))] == [0]
    assert list(key_stuck(trace(left("pending", 3_600.0)))) == []
    assert list(key_stuck(trace(left("unknown", 1e9)))) == []


def test_a_run_in_figures() -> None:
    request = (0.2, "service", "request", {})
    events = trace(calls(), request, effect(), effect(), told("succeeded"), calls(EIGHT), request)
    assert counted(events) == {
        "duplicates": 1,
        "losses": 1,
        "open": 0,
        "waiting": 1.0,
        "cost": 2,
    }
    assert counted(trace(calls(), told("unknown")))["open"] == 1
    assert counted(trace(calls(), told("unknown")))["losses"] == 0


@pytest.mark.parametrize(("sevens", "duplicates"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_each_effect_beyond_the_first_of_one_thing_is_a_duplicate(
    sevens: int, duplicates: int
) -> None:
    events = trace(calls(), calls(EIGHT), effect(EIGHT), *[effect()] * sevens)
    assert counted(events)["duplicates"] == duplicates


@pytest.mark.parametrize(
    ("later", "open_ones", "losses"),
    [
        ([], 1, 0),
        ([calls(call="c2"), told("reused", call="c2")], 0, 1),  # with the person's word
        ([calls(call="c2"), told("failed", call="c2")], 0, 1),
        ([calls(call="c2"), told("rejected", call="c2")], 1, 0),
        ([calls(call="c2"), told("manual intervention", call="c2")], 2, 0),
        ([calls(key="own", call="c2"), told("failed", call="c2")], 1, 0),
        ([calls(key="own", call="c2"), effect(), told("succeeded", call="c2")], 1, 0),
    ],
)
def test_a_call_is_open_until_a_later_one_of_its_key_is_told_how_it_ended(
    later: list[Any], open_ones: int, losses: int
) -> None:
    figures = counted(trace(calls(), told("manual intervention"), *later))
    assert (figures["open"], figures["losses"]) == (open_ones, losses)


def test_an_answer_before_settles_no_later_call() -> None:
    before = (calls(), told("failed"))
    assert counted(trace(*before, calls(call="c2"), told("unknown", call="c2")))["open"] == 1
