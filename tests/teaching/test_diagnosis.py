"""The diagnosis table names the symptom that a run shows, and the event to look at first."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import Unknown
from labkit.teaching.diagnosis import SYMPTOMS


@pytest.mark.parametrize(
    ("scenario", "symptom", "kind"),
    [
        ("retry.rate_limit", "silent_wait", "wait"),
        ("retry.stall_plain", "silent_wait", "stall"),
        ("retry.naive", "restart", "request"),
        ("retry.stall", "restart", "request"),
        ("interruption.stop", "tools_after_stop", "checkpoint"),
        ("retry.swallow", "backend_goes_on", "cancel"),
        ("retry.forgotten", "backend_goes_on", "left_over"),
    ],
)
def test_a_run_shows_its_symptom_and_the_event_to_look_at_first(
    scenario: str, symptom: str, kind: str
) -> None:
    run = labkit.simulate(scenario)
    index = SYMPTOMS[symptom].shows(run.trace)
    assert index is not None
    assert run.trace[index].kind == kind
    told = labkit.diagnose(run).text()
    assert SYMPTOMS[symptom].words in told
    assert f"here:      event {index} at" in told


@pytest.mark.parametrize(
    ("scenario", "symptoms"),
    [
        ("retry.many_scripts", set()),
        ("retry.guarded", set()),
        ("retry.thinking", set()),
        ("interruption.error", set()),
        ("interruption.rate_limit", {"silent_wait"}),
    ],
)
def test_a_run_without_a_symptom_is_not_given_one(scenario: str, symptoms: set[str]) -> None:
    trace = labkit.simulate(scenario).trace
    assert {name for name, row in SYMPTOMS.items() if row.shows(trace) is not None} == symptoms


def test_without_a_symptom_it_says_so() -> None:
    told = labkit.diagnose(labkit.simulate("retry.guarded")).text()
    assert told == "The trace shows none of the four symptoms."


def test_the_table_says_where_to_look_and_what_not_to_do_first() -> None:
    told = labkit.diagnose().text()
    for symptom in SYMPTOMS.values():
        assert all(words in told for words in (symptom.words, symptom.look, symptom.not_first))
    row = labkit.diagnose("silent wait").text()
    assert "do not restart the gateway" in row
    assert "front end" not in row


def test_an_unknown_symptom_lists_the_four() -> None:
    with pytest.raises(Unknown, match=r"a silent wait.*restarts.*tool results.*still runs"):
        labkit.diagnose("headache")
