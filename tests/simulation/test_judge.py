"""Judges: each on a scenario that shows the fault, one that does not, and hand-made traces."""

from collections.abc import Sequence
from typing import Any

import pytest

import labkit
from labkit.simulation import STREAM_JUDGES, Event, Fault, judge

from .kit import trace

NAIVE = {
    "duplicate_text": "retry.naive",
    "lost_tail": "retry.late",
    "truncation_accepted": "retry.cut_off",
    "retry_after_ignored": "retry.hammer",
    "retry_storm": "retry.storm",
    "cancel_swallowed": "retry.swallow",
    "left_over_task": "retry.forgotten",
}
CAREFUL = [
    "retry.guarded", "retry.rate_limit", "retry.thinking", "retry.stall", "retry.stall_plain",
    "retry.quota", "retry.down", "retry.rising", "retry.half_call", "retry.cut_off_guarded",
    "retry.many_scripts", "interruption.rate_limit", "interruption.error", "interruption.stop",
]  # fmt: skip

REQUEST = (0, "provider", "request")
FINISH = (1, "provider", "finish", {"reason": "stop"})
CLOSED = (1, "provider", "closed")
RESULT = (2, "lab", "end", {"task": "client", "outcome": "result"})
FAILED = (2, "lab", "end", {"task": "client", "outcome": "error"})


def said(text: str) -> Any:
    return (1, "provider", "say", {"text": text})


def shown(text: str) -> Any:
    return (1, "page", "shown", {"text": text})


def names(events: Sequence[Event]) -> list[str]:
    return [finding.name for judged in STREAM_JUDGES for finding in judged(events)]


def test_there_is_a_naive_scenario_for_every_judge() -> None:
    assert list(NAIVE) == [judged.__name__ for judged in STREAM_JUDGES]


@pytest.mark.parametrize(("finding", "name"), NAIVE.items())
def test_a_naive_scenario_shows_its_finding_and_no_other(finding: str, name: str) -> None:
    run = labkit.simulate(name)
    assert {found.name for found in run.findings} == {finding}
    for found in run.findings:
        assert 0 <= found.event < len(run.trace)
        assert found.cure
        assert "\n" not in found.cure


@pytest.mark.parametrize("name", CAREFUL)
def test_a_careful_scenario_has_no_finding(name: str) -> None:
    assert labkit.simulate(name).findings == ()


@pytest.mark.parametrize("name", ["retry.guarded", "retry.stall", "retry.rate_limit"])
def test_a_careful_client_has_no_finding_wherever_it_is_cancelled(name: str) -> None:
    for point in labkit.points(name):
        run = labkit.simulate(name, faults=[Fault("cancel", point.number, task=point.task)])
        assert (run.missed, run.findings) == ((), ())


@pytest.mark.parametrize("judged", STREAM_JUDGES)
def test_an_empty_trace_has_no_finding(judged: judge.Judge) -> None:
    assert list(judged(())) == []


# duplicate_text


def test_text_said_twice_in_one_segment_is_a_duplicate_even_in_other_pieces() -> None:
    events = trace(REQUEST, shown("The ref"), shown("und"), REQUEST, shown("The"), shown(" refund"))
    (found,) = judge.duplicate_text(events)
    assert found.event == 5  # only here is it more than a coincidence


def test_an_answer_that_begins_again_is_found_once_however_many_pieces_follow() -> None:
    pieces = [shown(text) for text in ("The ", "refund ", "was ", "sent ", "on Monday.")]
    events = trace(REQUEST, shown("The refund "), REQUEST, *pieces)
    assert [found.event for found in judge.duplicate_text(events)] == [3]


@pytest.mark.parametrize(
    "events",
    [
        trace(REQUEST, shown("The refund"), REQUEST, shown(" was sent")),
        trace(
            REQUEST,
            shown("The refund"),
            (1, "page", "segment_end", {"reason": "stall"}),
            REQUEST,
            shown("The refund was"),
        ),
        trace(REQUEST, shown("The tool is asked"), FINISH, REQUEST, shown("The refund was sent")),
        trace(REQUEST, shown("The refund"), REQUEST, shown("Their")),
        trace((0, "client", "request"), shown("The refund"), shown("The refund")),
    ],
    ids=["goes on", "new segment", "another answer", "three letters", "no request"],
)
def test_text_that_is_no_repetition_is_none(events: Sequence[Event]) -> None:
    assert list(judge.duplicate_text(events)) == []


# lost_tail

CANCEL = (1, "user", "cancel", {"task": "client"})


def test_an_end_that_never_reached_the_page_is_lost() -> None:
    events = trace(REQUEST, said("The "), shown("The "), said("end"), FINISH, RESULT)
    (found,) = judge.lost_tail(events)
    assert events[found.event]["text"] == "end"


@pytest.mark.parametrize(
    "events",
    [
        trace(REQUEST, said("The end"), shown("The end"), FINISH, RESULT),
        trace(REQUEST, said("The "), shown("The "), said("end"), FAILED),
        trace(REQUEST, said("The "), shown("The "), said("end"), (1, "provider", "drop"), RESULT),
        trace(REQUEST, said("a"), shown("a"), FINISH, REQUEST, said("b"), shown("b"), RESULT),
        trace(REQUEST, said("returned, not shown"), FINISH, RESULT),
        trace(REQUEST, said("a"), shown("A, as the client put it"), FINISH, RESULT),
        trace(REQUEST, said("a"), shown(""), FINISH, CANCEL, RESULT),
    ],
    ids=["whole", "failed", "broken off", "two answers", "no page", "other words", "called off"],
)
def test_an_end_that_was_not_lost_is_no_finding(events: Sequence[Event]) -> None:
    assert list(judge.lost_tail(events)) == []


# truncation_accepted


@pytest.mark.parametrize("kind", ["closed", "end", "drop", "error", "stall"])
def test_a_stream_that_broke_off_and_passed_for_an_answer_is_found(kind: str) -> None:
    events = trace(REQUEST, said("The "), (1, "provider", kind), RESULT)
    (found,) = judge.truncation_accepted(events)
    assert events[found.event].kind == kind


@pytest.mark.parametrize(
    "events",
    [
        trace(REQUEST, said("The end"), FINISH, CLOSED, RESULT),
        trace(REQUEST, said("The "), CLOSED, FAILED),
        trace(REQUEST, said("The "), CLOSED, (1, "page", "status", {"text": "cut off"}), RESULT),
        trace(REQUEST, said("T"), CLOSED, (1, "page", "segment_end", {"reason": "x"}), RESULT),
        trace(REQUEST, (1, "provider", "http_error", {"status": 500}), RESULT),
        trace(REQUEST, said("The "), (1, "provider", "left", {"how": "closed"}), RESULT),
        trace(REQUEST, said("T"), (1, "user", "cancel", {"task": "turn"}), CLOSED, RESULT),
        trace(REQUEST, said("T"), CLOSED, REQUEST, said("The end"), FINISH, RESULT),
        trace(REQUEST, RESULT),
        trace(RESULT),
    ],
    ids=[
        "whole", "failed", "reader told", "segment closed", "refused", "left by choice",
        "called off", "tried again", "never read", "no stream",
    ],
)  # fmt: skip
def test_an_end_that_is_no_accepted_truncation_is_no_finding(events: Sequence[Event]) -> None:
    assert list(judge.truncation_accepted(events)) == []


# retry_after_ignored


def refused(time: float, seconds: float) -> Any:
    return (time, "provider", "http_error", {"status": 429, "retry_after": seconds})


def asked(time: float, actor: str = "provider") -> Any:
    return (time, actor, "request")


def test_a_request_before_the_time_asked_for_is_found() -> None:
    events = trace(asked(0), refused(1, 5.0), asked(5.9))
    (found,) = judge.retry_after_ignored(events)
    assert events[found.event].time == 5.9


@pytest.mark.parametrize(
    "events",
    [
        trace(asked(0), refused(1, 5.0), asked(6)),
        trace(asked(0), refused(0.3, 0.1), asked(0.3 + 0.1)),
        trace(asked(0), refused(1, 5.0), asked(2, "client")),
        trace(asked(0), (1, "provider", "http_error", {"retry_after": None}), asked(1)),
        trace(asked(0), refused(0, 5.0), asked(5), refused(5, 1.0), asked(6)),
    ],
)
def test_a_request_after_the_time_asked_for_is_no_finding(events: Sequence[Event]) -> None:
    assert list(judge.retry_after_ignored(events)) == []


# retry_storm


def stormy(gap: float, count: int, kind: str = "http_error", actor: str = "provider") -> Any:
    rows: list[Any] = [asked(0)]
    for number in range(1, count):
        rows += [(number * gap, actor, kind), asked(number * gap)]
    return trace(*rows)


@pytest.mark.parametrize("kind", ["http_error", "error", "drop"])
def test_many_requests_in_a_second_after_failures_are_a_storm(kind: str) -> None:
    (found,) = judge.retry_storm(stormy(0.1, 10, kind))
    assert stormy(0.1, 10, kind)[found.event].time == 0.5


@pytest.mark.parametrize(
    "events",
    [
        stormy(0.5, 20),
        stormy(0.1, 5),
        stormy(0.1, 20, actor="client"),
        stormy(0.1, 20, kind="finish"),
    ],
    ids=["slow", "few", "said by the client", "after answers"],
)
def test_requests_that_are_slow_few_or_no_retries_are_no_storm(events: Sequence[Event]) -> None:
    assert list(judge.retry_storm(events)) == []


# cancel_swallowed and left_over_task

FAULT = (0, "lab", "fault", {"fault": "cancel", "task": "client"})
STOP = (0, "user", "cancel", {"task": "client"})


@pytest.mark.parametrize("told", [FAULT, STOP])
@pytest.mark.parametrize("end", [RESULT, FAILED])
def test_a_task_that_was_told_to_stop_and_ended_otherwise_swallowed_it(told: Any, end: Any) -> None:
    (found,) = judge.cancel_swallowed(trace(told, end))
    assert found.event == 0


@pytest.mark.parametrize(
    "events",
    [
        trace(FAULT, (1, "lab", "end", {"task": "client", "outcome": "cancelled"})),
        trace((0, "user", "cancel", {"task": "turn"}), RESULT),
        trace((0, "lab", "fault", {"fault": "stall", "task": "client"}), RESULT),
        trace(RESULT),
        trace(FAULT),
    ],
)
def test_a_cancel_that_left_or_met_another_task_is_no_finding(events: Sequence[Event]) -> None:
    assert list(judge.cancel_swallowed(events)) == []


def test_each_left_over_task_is_named() -> None:
    rows = [(0, "lab", "left_over", {"task": name}) for name in ("a", "b")]
    found = list(judge.left_over_task(trace(*rows, (0, "client", "left_over", {"task": "c"}))))
    assert ["'a'" in found[0].cure, "'b'" in found[1].cure, len(found)] == [True, True, 2]


def test_a_finding_is_told_in_one_line() -> None:
    (found,) = judge.cancel_swallowed(trace(FAULT, RESULT))
    assert repr(found) == f"cancel_swallowed at event 0: {found.cure}"
    assert names(trace(FAULT, RESULT)) == ["cancel_swallowed"]


def test_a_beginning_that_comes_again_after_a_tool_is_a_duplicate() -> None:
    called = (1, "provider", "finish", {"reason": "tool_calls"})
    events = trace(
        REQUEST, said("One "), shown("One "), called, REQUEST, said("One "), shown("One ")
    )
    assert [finding.name for finding in judge.duplicate_text(events)] == ["duplicate_text"]
