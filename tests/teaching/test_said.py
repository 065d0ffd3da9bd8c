"""Texts that show themselves, and names as learners type them."""

from __future__ import annotations

import pytest

from labkit.simulation import Unknown
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


@pytest.mark.parametrize("given", ["i", "", "other", None])
def test_what_names_nothing_or_more_than_one_thing_is_refused(given: object) -> None:
    with pytest.raises(Unknown, match=r"there is no column .*'Is it tried again\?'"):
        pick("column", given, KNOWN)


def test_a_told_text_shows_itself_as_it_is() -> None:
    told = Told("<b>one</b>\ntwo")
    assert repr(told) == told.text() == "<b>one</b>\ntwo"
