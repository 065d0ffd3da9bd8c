"""The figures of a run with effects."""

from __future__ import annotations

import pytest

from labkit.scenarios.effect_judges import counted
from tests.simulation.kit import trace

from .test_effect_judges import EIGHT, calls, effect


@pytest.mark.parametrize(("sevens", "duplicates"), [(0, 0), (1, 0), (2, 1), (3, 2)])
def test_each_effect_beyond_the_first_of_one_thing_is_a_duplicate(
    sevens: int, duplicates: int
) -> None:
    events = trace(calls(), calls(EIGHT), effect(EIGHT), *[effect()] * sevens)
    assert counted(events)["duplicates"] == duplicates
