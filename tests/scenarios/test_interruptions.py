"""The three interruptions, on labkit's memory and on the one that forgets."""

from functools import partial

import pytest

from labkit.providers.script import script
from labkit.recovery.turn import Session
from labkit.scenarios.catalogue import find, simulate
from labkit.scenarios.interruptions import one_turn
from labkit.simulation import Fault

LOST: list[tuple[str, str]] = []


@pytest.mark.parametrize(
    ("name", "drafts", "turns", "checkpoint"),
    [
        ("rate_limit", LOST, 1, ["user", "tool", "answer"]),
        ("error", [("The refund was sent ", "server")], 0, ["user", "tool"]),
        ("stop", [("The refund ", "stopped")], 0, ["user", "tool"]),
        ("rate_limit_forgetful", LOST, 1, ["user", "tool", "answer"]),
        ("error_forgetful", LOST, 0, ["user", "tool"]),
        ("stop_forgetful", LOST, 0, ["user", "tool"]),
    ],
)
def test_what_each_interruption_leaves_in_the_session(
    name: str, drafts: list[tuple[str, str]], turns: int, checkpoint: list[str]
) -> None:
    session = simulate(f"interruption.{name}").result
    assert isinstance(session, Session)
    assert (session.drafts, len(session.turns)) == (drafts, turns)
    assert [kind for kind, _ in session.checkpoint] == checkpoint


@pytest.mark.parametrize("name", ["rate_limit", "error", "stop"])
def test_the_tool_takes_effect_once_whatever_interrupts_the_turn(name: str) -> None:
    run = simulate(f"interruption.{name}")
    assert [effect["name"] for effect in run.effects] == ["look_up"]


def test_a_stop_ends_the_turn_as_cancelled_at_once() -> None:
    run = simulate("interruption.stop")
    ends = {event["task"]: event["outcome"] for event in run.trace if event.kind == "end"}
    assert ends == {"turn": "cancelled", "client": "result"}
    assert run.time == 3.5
    assert [event["how"] for event in run.trace if event.kind == "left"] == ["cancelled"]


def test_a_stop_that_comes_after_the_answer_cancels_nothing() -> None:
    quick = script({"name": "quick", "attempts": [[{"say": "Hello"}, {"finish": "stop"}]]})
    run = simulate(find("interruption.stop").but(script=quick))
    assert [event.kind for event in run.trace if event.actor == "user"] == []
    assert run.findings == ()


def test_a_cancel_of_the_one_who_waits_stops_the_turn_too() -> None:
    run = simulate("interruption.error", faults=[Fault("cancel", 0, "client")])
    ends = {event["task"]: event["outcome"] for event in run.trace if event.kind == "end"}
    assert ends == {"turn": "cancelled", "client": "cancelled"}


def test_an_error_that_is_no_providers_does_not_pass_for_an_interruption() -> None:
    class Broken(Session):
        def finish(self, question: str, answer: str) -> None:
            raise RuntimeError("the store is full")

    client = partial(one_turn, memory=Broken)
    run = simulate(find("interruption.rate_limit").but(client=client))
    assert repr(run.error) == "RuntimeError('the store is full')"


@pytest.mark.parametrize(
    ("name", "outcome"), [("rate_limit", "result"), ("error", "error"), ("stop", "cancelled")]
)
def test_the_turns_end_is_noted_as_it_was_and_the_page_survives_it(name: str, outcome: str) -> None:
    run = simulate(f"interruption.{name}")
    ends = {event["task"]: event["outcome"] for event in run.trace if event.kind == "end"}
    assert ends == {"turn": outcome, "client": "result"}


def test_a_date_in_retry_after_is_read_by_the_runs_own_clock() -> None:
    headers = {"retry-after": "Mon, 02 Mar 2026 12:00:07 GMT"}  # the run begins at 12:00:00
    refused = [{"http_error": {"status": 429, "headers": headers}}]
    dated = script({"name": "dated", "attempts": [refused, [{"say": "Hi"}, {"finish": "stop"}]]})
    run = simulate(find("interruption.rate_limit").but(script=dated))
    assert [event["seconds"] for event in run.trace if event.kind == "wait"] == [7.0]
