"""Events in words, and names as learners type them."""

from __future__ import annotations

import pytest

import labkit
from labkit.simulation import Event, Unknown
from labkit.teaching.said import Told, event_words, pick

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


@pytest.mark.parametrize("name", labkit.names())
def test_every_event_of_every_scenario_is_said_in_one_line(name: str) -> None:
    for event in labkit.simulate(name).trace:
        told = event_words(event)
        assert told.startswith(f"event {event.index} at ")
        assert "\n" not in told
        assert "{" not in told


def test_text_that_would_act_on_a_screen_is_escaped() -> None:
    assert "\x1b" not in event_words(Event(0, 0.0, "provider", "finish", (("reason", "\x1b[2J"),)))


def test_a_told_text_is_plain_text_and_its_repr_one_line() -> None:
    told = Told("<b>one</b>\ntwo")
    assert told._repr_mimebundle_() == {"text/plain": "<b>one</b>\ntwo"}
    assert repr(told) == "<b>one</b>"
