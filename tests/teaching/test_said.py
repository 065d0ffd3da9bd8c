"""Texts that show themselves, and names as learners type them."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import SimulationError, Unknown
from labkit.teaching.said import Told, pick

KNOWN = {"retried": "Is it tried again?", "kept": "Where is the text kept?"}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("retried", "retried"),
        ("retried?", "retried"),
        ("RETRIED", "retried"),
        ("tried again", "retried"),
        (" Is it tried again? ", "retried"),
        ("text kept", "kept"),
    ],
)
def test_a_key_its_words_or_a_part_of_them_names_it(given: str, key: str) -> None:
    assert pick("column", given, KNOWN) == key


def test_an_exact_name_beats_a_part_of_another() -> None:
    assert pick("choice", "1", {"1": "1", "10": "10"}) == "1"


@pytest.mark.parametrize("given", ["", "other", None])
def test_what_names_nothing_is_refused(given: object) -> None:
    with pytest.raises(Unknown, match=r"there is no column .*'Is it tried again\?'"):
        pick("column", given, KNOWN)


def test_a_number_is_a_row_or_a_column_of_a_table_and_no_name() -> None:
    assert pick("row", 2, KNOWN) == pick("column", 2, KNOWN) == "kept"
    with pytest.raises(Unknown, match="there is no way 2"):
        pick("way", 2, KNOWN)


def test_what_fits_more_than_one_thing_is_refused_with_those() -> None:
    known = {**KNOWN, "shown": "Which text is seen?"}
    with pytest.raises(Unknown, match=r"^column 'text' fits several: 'Where.*', 'Which[^']*'$"):
        pick("column", "text", known)


@pytest.mark.parametrize("name", ["timeline", "chain", "stepper"])
def test_a_view_takes_a_run_or_a_scenario_and_refuses_the_rest_in_words(name: str) -> None:
    view = getattr(labkit, name)
    one, other = view("retry.guarded"), view(labkit.find("retry.guarded"))
    assert one.title == other.title == view(labkit.simulate("retry.guarded")).title
    with pytest.raises(Unknown, match=r"retry\.guarded, .*more: labkit\.names\(\)"):
        view("retry.guardd")
    with pytest.raises(SimulationError, match="give it a run or a scenario's name, not 42"):
        view(42)


@pytest.mark.parametrize("name", ["source", "reading"])
@pytest.mark.parametrize("given", [42, None, "retry.guarded", print, labkit])
def test_what_is_no_function_has_no_source(name: str, given: object) -> None:
    with pytest.raises(SimulationError, match="give it a function written in Python"):
        getattr(labkit, name)(given)


def test_a_told_text_shows_itself_as_it_is() -> None:
    told = Told("<b>one</b>\ntwo")
    assert repr(told) == told.text() == "<b>one</b>\ntwo"
