"""Each stored case says what it is, where it comes from, and what is expected."""

import json

import pytest

from .public import FOLDER, case

NUMBERS = sorted(int(path.stem) for path in FOLDER.glob("*.json"))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_case_names_its_source_and_what_is_expected(number: int) -> None:
    found = case(number)
    assert found["case"] == number
    assert all(found[field] for field in ("title", "source", "input", "expect"))


def test_the_cases_of_this_lesson_are_there() -> None:
    assert {22, 26, 37, 38, 39, 71, 74, 75, 76} <= set(NUMBERS)


def test_a_case_is_stored_as_data_alone() -> None:
    for number in NUMBERS:
        json.dumps(case(number), allow_nan=False)
