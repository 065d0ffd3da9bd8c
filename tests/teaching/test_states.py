"""The state machine of a run: picture and words hold what the table holds, and nothing else."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import labkit
from labkit.recovery.run_states import MOVES, OWNER, QUEUED, RUNNING, STATES, TIME, WORKER, Move
from labkit.simulation import SimulationError
from labkit.teaching.states import LOOKS, states
from tests.teaching.test_views import pictures

PAUSED = MOVES | {"pause": Move((RUNNING,), "paused", WORKER, "run_paused")}
Moves = dict[str, Move]


def words(moves: Moves) -> list[str]:
    return [text.get_text() for text in states(moves).figure.axes[0].texts]


def arrows(moves: Moves) -> list[FancyArrowPatch]:
    patches = states(moves).figure.axes[0].patches
    return [each for each in patches if isinstance(each, FancyArrowPatch)]


def test_every_state_has_a_box_and_every_way_of_every_move_an_arrow_with_who_makes_it() -> None:
    told = words(dict(MOVES))
    assert {word.partition("\n")[0] for word in told} == {*STATES, *MOVES}
    ways = [(name, move.by) for name, move in MOVES.items() for _ in move.sources or ("",)]
    assert sorted(word for word in told if word.endswith(("owner)", "worker)", "time)"))) == sorted(
        f"{name}\n({by})" for name, by in ways
    )
    assert len(arrows(dict(MOVES))) == len(ways)


def test_a_changed_table_changes_the_picture_and_the_words() -> None:
    assert "paused\n(final)" in words(PAUSED)
    assert "pause\n(worker)" in words(PAUSED)
    assert "pause, by a worker: paused; event run_paused" in states(PAUSED).text()
    without = {name: move for name, move in MOVES.items() if name != "expire"}
    assert not any("expire" in word for word in (*words(without), states(without).text()))
    assert len(arrows(without)) == len(arrows(dict(MOVES))) - 1
    other = MOVES | {"expire": Move((RUNNING,), QUEUED, OWNER)}
    assert "expire\n(owner)" in words(other)
    assert "expire, by its owner: queued" in states(other).text()


def test_a_state_that_no_move_leaves_is_final_and_has_two_borders() -> None:
    def borders(moves: Moves) -> int:
        patches = states(moves).figure.axes[0].patches
        return sum(isinstance(each, FancyBboxPatch) for each in patches)

    assert states().text().splitlines()[-1] == "  final: completed, cancelled"
    assert {word for word in words(dict(MOVES)) if "final" in word} == {
        "completed\n(final)",
        "cancelled\n(final)",
    }
    assert borders(dict(MOVES)) == len(STATES) + 2
    stuck = {name: move for name, move in MOVES.items() if name != "retry"}
    assert states(stuck).text().splitlines()[-1] == "  final: completed, failed, cancelled"
    assert borders(stuck) == len(STATES) + 3


def test_the_words_go_through_the_table_state_by_state() -> None:
    text = states().text().splitlines()
    assert text[1] == "  nothing yet     submit, by its owner: queued; event run_created"
    assert "  failed          retry, by its owner: queued" in text
    assert "                  expire, by time alone: queued" in text


def test_who_makes_a_move_is_told_by_the_line_too_and_the_legend_says_how() -> None:
    assert len({line for _, line, _ in LOOKS.values()}) == len(LOOKS) == 3
    lines = {
        name: arrow.get_linestyle()
        for name, arrow in zip(
            (name for name, move in MOVES.items() for _ in move.sources or ("",)),
            arrows(dict(MOVES)),
            strict=True,
        )
    }
    assert {lines["claim"], lines["step"]} == {"-"}
    assert {lines["submit"], lines["retry"], lines["cancel"]} == {"--"}
    assert lines["expire"] == ":"
    legend = [text.get_text() for text in states().figure.legends[0].get_texts()]
    assert legend == ["made by a worker", "made by its owner", "made by time alone"]
    assert list(LOOKS) == [WORKER, OWNER, TIME]


@pytest.mark.parametrize("moves", [dict(MOVES), PAUSED], ids=["as it is", "one more"])
def test_no_two_labels_meet(moves: Moves) -> None:
    figure = states(moves).figure
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]


def test_a_move_of_somebody_else_is_named_and_has_a_line_of_its_own() -> None:
    moves = MOVES | {"seize": Move((RUNNING,), QUEUED, "an operator")}
    assert "seize\n(an operator)" in words(moves)
    assert "seize, by an operator: queued" in states(moves).text()
    assert "-." in {arrow.get_linestyle() for arrow in arrows(moves)}


def test_an_empty_table_has_no_state() -> None:
    assert states({}).text().splitlines()[1:] == ["  final: none"]
    assert states({}).png


def test_its_picture_has_its_text_form_and_is_the_same_twice() -> None:
    one, two = labkit.states(), labkit.states()
    (image,) = pictures(one._repr_mimebundle_()["text/markdown"])
    assert image["alt"] == one.text()
    assert one.png == two.png
    assert repr(one) == "<states of a run>"


@pytest.mark.parametrize("wrong", ["x", None, {"claim": "queued"}])
def test_what_is_no_table_of_moves_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(SimulationError, match="give it a table of moves, as MOVES is one, not"):
        states(wrong)
