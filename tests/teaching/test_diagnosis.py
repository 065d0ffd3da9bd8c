"""The diagnosis table names the symptom that a run shows, and the event to look at first."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import Unknown
from labkit.teaching.diagnosis import symptoms
from labkit.teaching.said import texts

TABLE = texts("diagnosis")


@pytest.mark.parametrize(
    ("scenario", "symptom", "kind"),
    [
        ("retry.rate_limit", "silent_wait", "wait"),
        ("retry.stall_plain", "silent_wait", "stall"),
        ("retry.naive", "restart", "shown"),
        ("retry.stall", "restart", "segment_end"),
        ("interruption.stop", "tools_after_stop", "checkpoint"),
        ("retry.swallow", "backend_goes_on", "cancel"),
        ("retry.forgotten", "backend_goes_on", "left_over"),
        ("effects.tries_again", "charged_twice", "effect"),
        ("effects.gives_up", "told_as_failed", "told"),
        ("effects.died~lease=86400", "key_in_progress", "left"),
        ("budgets.storm", "request_storm", "request"),
        ("budgets.per_call", "silent_minutes", "shown"),
    ],
)
def test_a_run_shows_its_symptom_and_the_event_to_look_at_first(
    scenario: str, symptom: str, kind: str
) -> None:
    run = labkit.from_token(scenario)
    event = run.trace[symptoms(run.trace)[symptom]]
    assert event.kind == kind
    told = labkit.diagnose(run).text()
    assert TABLE[symptom]["words"] in told
    assert f"here:      {event!r}" in told


@pytest.mark.parametrize(
    ("scenario", "names"),
    [
        ("retry.many_scripts", set()),
        ("retry.guarded", set()),
        ("retry.thinking", set()),
        ("interruption.error", set()),
        ("interruption.rate_limit", {"silent_wait"}),
        ("effects.reference", set()),
        ("effects.happened", set()),
        ("effects.manual", set()),
        ("budgets.deadline", set()),
    ],
)
def test_a_run_without_a_symptom_is_not_given_one(scenario: str, names: set[str]) -> None:
    trace = labkit.simulate(scenario).trace
    assert set(symptoms(trace)) == names


def test_two_calls_of_one_tool_that_no_call_of_a_shop_has_made_are_no_double_charge() -> None:
    assert "charged_twice" not in symptoms(labkit.simulate("turn.reference").trace)


def test_without_a_symptom_it_says_so() -> None:
    told = labkit.diagnose(labkit.simulate("retry.guarded")).text()
    assert told == "The trace shows none of these symptoms."


def test_the_table_says_where_to_look_and_what_not_to_do_first() -> None:
    told = labkit.diagnose().text()
    assert len(TABLE) == 9
    for row in TABLE.values():
        assert all(words in told for words in row.values())
    told = labkit.diagnose("silent wait").text()
    assert "do not restart the gateway" in told
    assert "front end" not in told


def test_an_unknown_symptom_lists_those_there_are() -> None:
    with pytest.raises(Unknown, match=r"a silent wait.*restarts.*still runs.*in progress.*silence"):
        labkit.diagnose("headache")
