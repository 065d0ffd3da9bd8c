"""A scenario is a frozen record, and a copy of it may differ."""

from dataclasses import FrozenInstanceError

import pytest

from .kit import scenario
from .test_effects import pays


def test_a_copy_differs_in_what_is_named() -> None:
    first = scenario(pays)
    other = first.but(name="other", claim="differs")
    assert (other.name, other.client, first.name) == ("other", pays, "test")
    assert repr(other) == "<scenario other: differs>"


def test_a_scenario_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        scenario(pays).name = "other"  # type: ignore[misc]


def test_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(TypeError, match="colour"):
        scenario(pays).but(colour="red")
