"""Whatever takes a name says what there is, also for what can be no name."""

from typing import Any

import pytest

import labkit
from labkit.scenarios.scripts import load
from labkit.simulation import Unknown


@pytest.mark.parametrize(
    "name", [[], {}, None, 5, b"retry.naive", "", "retry.no", "a\0b"], ids=repr
)
@pytest.mark.parametrize("ask", [labkit.find, labkit.simulate, labkit.points, load])
def test_what_is_no_name_is_answered_with_what_there_is(ask: Any, name: Any) -> None:
    with pytest.raises(Unknown, match=r"there is no (scenario|script) .*there is: \w"):
        ask(name)


def test_a_script_outside_the_folder_is_no_script_of_that_name() -> None:
    with pytest.raises(Unknown, match=r"no script .\.\./scripts/cut-off"):
        load("../scripts/cut-off")
