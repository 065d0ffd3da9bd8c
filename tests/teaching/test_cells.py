"""What a cell of the grid opens, which rows are told as clean, and what heads a world."""

from __future__ import annotations

import pytest

from labkit.scenarios.effects import CUES, KINDS, WAYS
from labkit.simulation import Finding
from labkit.teaching.grid import grid
from labkit.teaching.worlds import worlds

from .test_grid import cells


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


@pytest.mark.parametrize("cue", CUES)
def test_a_row_is_clean_only_if_the_figure_is_0_for_every_cue(
    cue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = grid()
    values = {(way, each): float(each == cue) for way in WAYS for each in CUES}
    values["hopes", cue] = 0.0
    monkeypatch.setattr(type(shown), "values", values)
    assert "0 in every cell: hopes\n" in shown.text()


def test_a_world_is_headed_and_judged_by_all_that_was_found() -> None:
    shown = worlds("tries again")
    (first,) = shown.runs["happened"].findings
    found = (first, Finding("key_stuck", first.event, "give a claim a lease that ends"))
    shown.runs["happened"].findings = found  # as if its judges had said so
    verdict, _, happened = shown.text().split("\n\n")
    assert happened.splitlines()[0].endswith("; found: effect_repeated, key_stuck")
    assert "where it happened (effect_repeated, key_stuck)." in verdict
