"""The four cursors as a chart, and the table of injections."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import Unknown
from labkit.teaching.cursors import Gap, gaps

CUT = "stream.kept~cut@3"


def test_the_chart_says_which_cursor_is_ahead_of_which_and_when() -> None:
    lines = labkit.cursors(CUT).text().splitlines()
    assert lines == [
        "cursors of stream.kept~cut@3",
        "  generated  117 characters, the last at 2.1 s",
        "  sent       117 characters, the last at 2.7 s",
        "  seen       117 characters, the last at 2.7 s",
        "  saved      117 characters, the last at 2.7 s",
        "  sent is ahead of seen by 31 characters: 1.7 to 2.7 s",
        "  generated is ahead of sent by 34 characters: 2.1 to 2.7 s",
        "  at 1.7 s: fault: cut",
    ]


def test_a_run_a_scenario_and_a_token_give_the_same_chart() -> None:
    run = labkit.simulate("stream.cut")
    texts = {labkit.cursors(given).text() for given in ("stream.cut", run, run.scenario)}
    assert len(texts) == 1


def test_text_that_was_thrown_away_stays_a_gap() -> None:
    assert "generated is ahead of seen by 13 characters: 3.8 to 4.7 s, and stays" in (
        labkit.cursors("stream.cut").text()
    )


def test_a_gap_that_opens_and_closes_at_one_instant_is_none() -> None:
    found = {"seen": [(1.0, 5), (2.0, 9)], "saved": [(1.0, 5), (2.0, 9)]}
    assert list(gaps(found, 3.0)) == []


def test_text_that_is_seen_and_not_saved_is_a_gap_the_other_way_round() -> None:
    found = {"seen": [(1.0, 5), (2.0, 9)], "saved": [(2.5, 9)]}
    assert list(gaps(found, 3.0)) == [Gap("seen", "saved", 9, 1.0, 2.5, stays=False)]
    late = {"seen": [(2.0, 9)], "saved": [(1.0, 9)]}
    assert list(gaps(late, 3.0)) == [Gap("saved", "seen", 9, 1.0, 2.0, stays=False)]


def test_the_picture_shows_a_line_for_each_cursor() -> None:
    [axes] = labkit.cursors(CUT).figure.axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["generated", "sent", "seen", "saved"]
    assert labkit.cursors(CUT).png.startswith(b"\x89PNG")


def test_the_eight_injections_each_have_a_row_that_opens_its_run() -> None:
    table = labkit.injections()
    assert len(table) == 8
    assert list(table["state"]) == ["done"] * 6 + ["failed", "stopped"]
    assert list(table["twice"]) == [0] * 8
    for token, row in table.iterrows():
        run = labkit.from_token(token)
        assert run.missed == ()
        assert len(run.ledger) == row["tool calls"]


def test_rows_of_ones_own_choice_are_told_by_their_tokens() -> None:
    table = labkit.injections("stream.limit~recoveries=0", "stream.limit~recoveries=3")
    assert list(table["state"]) == ["failed", "done"]
    assert list(table.index) == ["stream.limit~recoveries=0", "stream.limit~recoveries=3"]


def test_a_name_that_is_not_there_is_an_error_that_lists_what_there_is() -> None:
    with pytest.raises((Unknown, ValueError), match=r"stream\.kept"):
        labkit.cursors("stream.keptt")


def test_a_gap_that_is_there_at_the_last_step_lasts_to_the_end_of_the_run() -> None:
    found = {"seen": [(1.0, 5)], "saved": [(0.5, 0)]}
    assert list(gaps(found, 3.0)) == [Gap("seen", "saved", 5, 1.0, 3.0, stays=True)]


def test_a_gap_that_shrinks_is_told_by_its_widest() -> None:
    found = {"seen": [(1.0, 9)], "saved": [(2.0, 5), (3.0, 9)]}
    assert list(gaps(found, 4.0)) == [Gap("seen", "saved", 9, 1.0, 3.0, stays=False)]


def test_the_chart_says_when_the_user_stops() -> None:
    assert "  at 1.5 s: the user stops" in labkit.cursors("stream.stop").text().splitlines()
