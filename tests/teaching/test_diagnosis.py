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
    ],
)
def test_a_run_shows_its_symptom_and_the_event_to_look_at_first(
    scenario: str, symptom: str, kind: str
) -> None:
    run = labkit.simulate(scenario)
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
    ],
)
def test_a_run_without_a_symptom_is_not_given_one(scenario: str, names: set[str]) -> None:
    trace = labkit.simulate(scenario).trace
    assert set(symptoms(trace)) == names


def test_without_a_symptom_it_says_so() -> None:
    told = labkit.diagnose(labkit.simulate("retry.guarded")).text()
    assert told == "The trace shows none of the four symptoms."


def test_the_table_says_where_to_look_and_what_not_to_do_first() -> None:
    told = labkit.diagnose().text()
    assert len(TABLE) == 4
    for row in TABLE.values():
        assert all(words in told for words in row.values())
    told = labkit.diagnose("silent wait").text()
    assert "do not restart the gateway" in told
    assert "front end" not in told


def test_an_unknown_symptom_lists_the_four() -> None:
    with pytest.raises(Unknown, match=r"a silent wait.*restarts.*tool results.*still runs"):
        labkit.diagnose("headache")
