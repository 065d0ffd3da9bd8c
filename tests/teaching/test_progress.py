"""Progress lists what is done, open or blocked, and keeps the learner's own words."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import SimulationError, Unknown
from labkit.teaching.answers import answers


def lines() -> list[str]:
    return list(labkit.progress().text().splitlines())


def test_at_first_everything_is_open() -> None:
    assert {line.split()[0] for line in lines()} == {"open"}


def test_a_table_is_done_when_every_cell_was_answered_and_graded() -> None:
    table = labkit.predict("first_stream")
    for row in table.rows:
        for column in table.columns:
            assert "open     predictions first_stream" in labkit.progress().text()
            table.answer(row, column, table.columns[column]["choices"][0])
    assert "open     predictions first_stream: 6 of 6 answered, 0 graded" in lines()
    table.grade()
    assert "done     predictions first_stream: 6 of 6 answered, 6 graded" in lines()


def test_a_step_is_done_or_blocked_with_the_reason() -> None:
    labkit.progress("retry chain")
    labkit.progress("stream checks", blocked="no Chromium: here")
    assert "done     retry chain drawn" in lines()
    assert "blocked  stream checks run: 'no Chromium: here'" in lines()
    labkit.progress("stream checks")
    assert "done     stream checks run" in lines()


def test_what_is_ticked_by_hand_says_how() -> None:
    told = labkit.progress().text()
    for group in ("retry", "stop", "stream", "budget", "repeat"):
        assert f'then labkit.progress("{group} checks")' in told
        labkit.progress(f"{group} checks")
    assert "open     retry chain drawn: labkit.chain(run) of a run with a failure" in lines()
    assert "open     stream chain drawn: labkit.chain(run) of a run that is served" in told
    assert "done     retry checks run" in lines()


def test_a_chain_that_is_drawn_is_done() -> None:
    labkit.chain("interruption.stop")
    assert "done     stop chain drawn" in lines()
    labkit.chain("retry.guarded")
    assert "done     retry chain drawn" in lines()
    assert "done     stream chain drawn" not in lines()
    labkit.chain("stream.kept")
    assert "done     stream chain drawn" in lines()
    assert "done     repeat chain drawn" not in lines()
    labkit.chain("effects.happened")
    assert "done     repeat chain drawn" in lines()
    assert "done     budget chain drawn" not in lines()
    labkit.chain("budgets.plain_shared")
    assert "done     budget chain drawn" in lines()


def test_a_reason_is_a_text() -> None:
    with pytest.raises(SimulationError, match="texts, not 42"):
        labkit.progress(reason=42)  # type: ignore[arg-type]


def test_an_unknown_step_lists_those_there_are() -> None:
    with pytest.raises(Unknown, match=r"retry checks run.*stop chain drawn.*repeat chain drawn"):
        labkit.progress("lunch")


def test_the_reason_is_kept_in_the_learners_own_words_and_shown_as_text() -> None:
    labkit.progress(reason="<b>somebody</b> has read it\x1b[2J")
    assert lines()[-1].endswith("'<b>somebody</b> has read it\\x1b[2J'")
    assert answers().all()["reason"].latest == "<b>somebody</b> has read it\x1b[2J"


def test_a_blocker_without_its_step_is_refused_with_the_steps() -> None:
    with pytest.raises(Unknown, match="retry checks run"):
        labkit.progress(blocked="no network")
