"""The three interruptions, on labkit's memory and on the one that forgets."""

from functools import partial

import pytest

from labkit.providers.script import script
from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.session import Session
from labkit.scenarios.catalogue import find, simulate
from labkit.scenarios.office import Office
from labkit.simulation import Fault

LOST: list[tuple[str, str]] = []
WHOLE = ["user", "assistant", "tool", "assistant"]
CLOSED = ["user", "assistant", "tool", "note"]


@pytest.mark.parametrize(
    ("name", "drafts", "rows"),
    [
        ("rate_limit", LOST, WHOLE),
        ("error", [("The refund was sent ", "server")], CLOSED),
        ("stop", [("The refund ", "stopped")], CLOSED),
        ("rate_limit_forgetful", LOST, WHOLE),
        ("error_forgetful", LOST, CLOSED),
        ("stop_forgetful", LOST, CLOSED),
    ],
)
def test_what_each_interruption_leaves_in_the_session(
    name: str, drafts: list[tuple[str, str]], rows: list[str]
) -> None:
    session = simulate(f"interruption.{name}").result
    assert isinstance(session, Session)
    assert [(draft.text, draft.reason) for draft in session.drafts] == drafts
    assert [message.role for message in session.messages] == rows
    assert session.turn is None


@pytest.mark.parametrize("name", ["rate_limit", "error", "stop"])
def test_the_tool_takes_effect_once_whatever_interrupts_the_turn(name: str) -> None:
    run = simulate(f"interruption.{name}")
    assert [effect["name"] for effect in run.effects] == ["look_up"]


def test_a_stop_ends_the_turn_as_cancelled_at_once() -> None:
    run = simulate("interruption.stop")
    ends = {event["task"]: event["outcome"] for event in run.trace if event.kind == "end"}
    assert ends == {"turn": "cancelled", "client": "result"}
    assert run.time == 3.5
    assert [
        event["how"] for event in run.trace if event.kind == "left" and event.actor == "provider"
    ] == ["cancelled"]


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
    class Broken(Checkpointer):
        async def save(self, changed: Session, step: str = "") -> None:
            if step == "answer":
                raise RuntimeError("the store is full")
            await super().save(changed, step)

    run = simulate(find("interruption.rate_limit").but(make=partial(Office, memory=Broken)))
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
