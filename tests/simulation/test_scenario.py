"""A scenario is a frozen record, and a copy of it may differ."""

from dataclasses import FrozenInstanceError

import pytest

from labkit.simulation import SimulationError

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
    with pytest.raises(SimulationError, match="no field 'colour'; there is: name, claim, script"):
        scenario(pays).but(colour="red")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("client", "a client is an async function, not 3"),
        ("make", "make is a function or a class, not 3"),
        ("script", "test reads a list, and no 3"),
    ],
    ids=["client", "make", "script"],
)
def test_a_value_that_cannot_be_one_is_refused(field: str, said: str) -> None:
    made = scenario(pays, script=[])
    with pytest.raises(SimulationError, match=said):
        made.but(**{field: 3})
    assert made.but(script=3, make=list).script == 3  # another factory may read another script
