"""The grid of ways and cues: each figure is that of its cell's run, and each cell opens it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from matplotlib.colors import to_rgb

import labkit
from labkit.scenarios.effects import CUES, KINDS, WAYS, figures
from labkit.simulation import SimulationError, Unknown
from labkit.teaching.grid import FIGURES, Grid, grid
from labkit.teaching.stepper import decided_at


def table(shown: Grid) -> list[list[str]]:
    """The figures of the text form, row by row."""
    return [re.split(r"\s{2,}", line)[1:] for line in shown.text().splitlines()[2 : 2 + len(WAYS)]]


def contrast(one: Any, other: Any) -> float:
    """The contrast of two colours, as the guidelines for accessible pages count it."""

    def light(colour: Any) -> float:
        parts = [
            v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, bright = sorted((light(one), light(other)))
    return (bright + 0.05) / (dark + 0.05)


def test_rows_are_ways_and_columns_cues_and_each_figure_is_that_of_its_run() -> None:
    shown = grid("ticket", "cost")
    title, head, *rows = shown.text().splitlines()[: -len(CUES)]
    last = rows.pop()
    assert title == "cost (requests and questions to the service, at 1 each), ticket"
    assert head.split() == list(CUES)
    assert [re.split(r"\s{2,}", row)[0] for row in rows] == list(WAYS)
    told = [[f"{figures(shown[way, cue])['cost']:g}" for cue in CUES] for way in WAYS]
    assert table(shown) == told
    assert last == "0 in every cell: no way"


def test_only_the_key_of_the_order_has_neither_duplicates_nor_losses() -> None:
    clean = [set(WAYS), set(WAYS)]
    for which, show in enumerate(("duplicates", "losses")):
        for kind in KINDS:
            told = grid(kind, show).text().partition("0 in every cell: ")[2].partition("\n")[0]
            clean[which] &= set(told.split(", "))
    assert clean[0] & clean[1] == {"key of the order"}
    assert "key of the amount" in clean[0]


@pytest.mark.parametrize("cue", CUES)
def test_a_row_is_clean_only_if_the_figure_is_0_for_every_cue(
    cue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = grid()
    values = {(way, each): float(each == cue) for way in WAYS for each in CUES}
    values["hopes", cue] = 0.0
    monkeypatch.setattr(type(shown), "values", values)
    assert "0 in every cell: hopes\n" in shown.text()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("show", FIGURES)
def test_every_figure_is_drawn_with_its_numbers_in_the_cells(kind: str, show: str) -> None:
    shown = grid(kind, show)
    (axes,) = shown.chart.figure.axes
    drawn = [text.get_text() for text in axes.texts]
    assert drawn == [number for row in table(shown) for number in row]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(CUES)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(WAYS)
    assert axes.yaxis_inverted()
    assert axes.get_title(loc="left") == shown.heading
    assert shown.chart.text() == shown.text()


def test_a_cell_is_a_run_that_is_made_once() -> None:
    shown = labkit.grid()
    run = shown["tries again", "lose_answer"]
    assert run is shown["tries", "lose_answer"]
    assert [found.name for found in run.findings] == ["effect_repeated"]
    assert run.scenario.claim == "tries again, lose_answer, payment"
    shown.kind = "mail"
    assert shown["tries again", "lose_answer"].scenario.claim == "tries again, lose_answer, mail"
    shown.kind = "payment"
    assert shown["tries again", "lose_answer"] is run
    with pytest.raises(Unknown, match="there is no cue 'hail'; there is: 'ok'"):
        shown["tries again", "hail"]


def test_the_whole_grid_is_quick() -> None:
    grid().text()  # what is loaded once
    started = time.process_time()
    grid("mail").text()
    assert time.process_time() - started < 1.5  # about 0.4 s on an idle machine


def test_what_a_cue_does_stands_under_the_grid_in_both_forms() -> None:
    shown = grid()
    told = shown.text().splitlines()[-len(CUES) :]
    assert [line.split(maxsplit=1) for line in told] == [[*each] for each in CUES.items()]
    assert "\n".join(told) in shown.widget.children[3].value
    assert "  late          it happens after 12 s, and its answer comes" in told


@pytest.mark.parametrize("given", ["gives up", None, 3, ("gives up",), ("a", "b", "c"), "ab"])
def test_what_is_no_way_and_cue_is_refused_in_words(given: Any) -> None:
    with pytest.raises(SimulationError, match=r"like grid\['tries again', 'lose_answer'\], not"):
        grid()[given]


def test_a_call_stays_open_though_its_order_was_done_by_another_call() -> None:
    shown = grid("mail", "open")
    assert shown["key of the call", "lose_answer"].result["c1"] == "manual intervention"
    assert shown.values["key of the call", "lose_answer"] == 1
    assert shown.values["key of the order", "lose_answer"] == 2


def cells(shown: Grid) -> dict[tuple[str, str], Any]:
    _, _, boxes, *_ = shown.widget.children
    buttons = [each for each in boxes.children if hasattr(each, "click")]
    return dict(zip(((way, cue) for way in WAYS for cue in CUES), buttons, strict=True))


def test_each_cell_is_a_button_with_the_figure_and_a_tooltip_that_names_it() -> None:
    shown = grid()
    for (way, cue), button in cells(shown).items():
        number = f"{shown.values[way, cue]:g}"
        assert button.description == number
        assert button.tooltip == f"{way}, {cue}: {number} duplicates; opens the run"


@pytest.mark.parametrize("show", FIGURES)
def test_the_figures_are_easy_to_read_on_their_shade_and_more_is_darker(show: str) -> None:
    shown = grid("mail", show)
    shades = {}
    for place, button in cells(shown).items():
        assert contrast(button.style.button_color, button.style.text_color) > 7
        shades[shown.values[place]] = sum(to_rgb(button.style.button_color))
    inked = [shades[value] for value in sorted(shades)]
    assert inked == sorted(inked, reverse=True)
    assert len(set(inked)) == len(inked)


def test_a_cell_opens_its_run_and_another_choice_closes_it() -> None:
    shown = grid()
    chosen, title, _, _, _, told, opened = shown.widget.children
    cells(shown)["hopes", "fail_after"].click()
    assert "effects.grid: hopes, fail_after, payment" in told.value
    assert "findings  effect_repeated" in told.value
    (stepper,) = opened.children
    assert len(stepper.children) == 4
    place = decided_at(shown["hopes", "fail_after"]).place.index
    assert stepper.children[1].children[0].value == place > 0
    kind, figure = chosen.children
    assert [kind.description, figure.description] == ["service", "figure"]
    figure.value = "waiting"
    assert "waiting (seconds that the three calls took together), payment" in title.value
    assert (told.value, opened.children) == ("", ())
    assert cells(shown)["key of the order", "late"].description == "13"
    kind.value = "mail"
    assert cells(shown)["key of the order", "late"].tooltip.startswith(
        "key of the order, late: 14.2"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_cell_opens_the_run_of_the_service_that_is_chosen(kind: str) -> None:
    shown = grid(next(other for other in KINDS if other != kind))
    button = cells(shown)["tries again", "lose_answer"]
    button.click()
    shown.kind = kind
    button.click()
    *_, told, opened = shown.widget.children
    assert f"effects.grid: tries again, lose_answer, {kind}" in told.value
    assert len(opened.children) == 1


def test_it_has_two_forms_and_names_what_it_does_not_know() -> None:
    shown = grid("mail", "open")
    told = shown._repr_mimebundle_()
    assert told["text/plain"] == shown.text() == grid("mail", "open").text()
    assert "application/vnd.jupyter.widget-view+json" in told
    assert repr(shown) == "<grid of ways and cues>"
    with pytest.raises(Unknown, match="there is no figure 'joy'; there is: 'duplicates'"):
        grid(show="joy")
