"""What a picture, a grade, a symptom and a saved answer must not lose unnoticed."""

from __future__ import annotations

import pathlib
from types import SimpleNamespace
from typing import Any

import pytest

import labkit
from labkit.teaching.answers import Answer, Answers
from labkit.teaching.chart import Chart
from labkit.teaching.diagnosis import symptoms
from labkit.teaching.timeline import story, timeline
from tests.simulation.kit import trace

WAIT = (1.0, "client", "wait", {"seconds": 10.0, "reason": "backoff"})


def test_answers_are_kept_in_a_folder_whose_parents_are_not_there_yet(home: pathlib.Path) -> None:
    Answers(home / "a" / "b").put("q", "yes")
    assert Answers(home / "a" / "b").all() == {"q": Answer("yes")}


def test_a_printed_grade_says_right_wrong_and_no_answer_yet() -> None:
    table = labkit.predict("first_stream")
    table.answer("retry.naive", "requests", "2")
    table.answer("retry.naive", "outcome", "error")
    told = table.grade().text().splitlines()
    said = [line.partition("?")[2].strip() for line in told if "?" in line]
    assert said == ["right", "no answer yet", "wrong", *["no answer yet"] * 3]
    assert "1 right, 4 no answer yet, 1 wrong" in told


@pytest.mark.parametrize(("seconds", "found"), [(1.0, {"silent_wait": 0}), (0.99, {})])
def test_a_wait_is_silent_from_one_second_on(seconds: float, found: dict[str, int]) -> None:
    events = trace((0, "client", "wait", {"seconds": seconds, "reason": "backoff"}))
    assert symptoms(events) == found


# the timeline's picture


def bars(chart: Chart) -> set[tuple[float, float, str]]:
    """Start, end and hatch of each bar; the lanes' backgrounds are taller."""
    (axes,) = chart.figure.axes
    drawn: list[Any] = [patch for patch in axes.patches if round(patch.get_height(), 3) == 0.6]
    return {
        (round(bar.get_x(), 2), round(bar.get_x() + bar.get_width(), 2), bar.get_hatch() or "")
        for bar in drawn
    }


def test_the_bars_of_the_picture_stand_where_the_run_was_and_their_hatch_says_what_it_was() -> None:
    assert bars(timeline(labkit.simulate("retry.stall"))) == {
        (0.0, 5.7, ""),  # the request that stalls,
        (0.9, 5.7, "---"),  # silent from here
        (5.7, 6.28, "///"),  # the wait
        (6.28, 7.28, ""),  # the request that finishes
        (0.7, 5.7, ""),  # the segments
        (6.98, 7.18, ""),
    }
    assert (0.0, 1.2, "xxx") in bars(timeline(labkit.simulate("retry.guarded")))


def test_bars_and_marks_of_the_picture_carry_the_labels_of_the_story() -> None:
    run = labkit.simulate("retry.stall")
    (axes,) = timeline(run).figure.axes
    labels = [text.get_text() for text in axes.texts]
    assert len(labels) == len(story(run))
    assert "request 1: stalled at 0.9 s" in labels
    assert "client ends: result" in labels
    signs = [(line.get_marker(), line.get_xdata()[0]) for line in axes.lines]  # type: ignore[index]
    assert signs == [("|", run.time)]


@pytest.mark.parametrize(
    ("cut", "over"),
    [
        ([(3.0, "user", "cancel", {"task": "client"}), (5.0, "lab", "end")], 3.0),
        ([(5.0, "lab", "end")], 5.0),
        ([(20.0, "lab", "end")], 11.0),
    ],
    ids=["by the user's cancel", "by the end", "not at all"],
)
def test_a_wait_is_drawn_only_until_it_is_cut_short(cut: list[Any], over: float) -> None:
    run: Any = SimpleNamespace(trace=trace(WAIT, *cut), findings=())
    (wait,) = [item for item in story(run) if item.lane == "waits"]
    assert (wait.start, wait.end, "cut short" in wait.more) == (1.0, over, over < 11)
