"""The exercises of the service: a typical wrong answer is told its case.

That each is open as handed out and solved by its solution stands in `test_exercises`.
"""

from __future__ import annotations

from typing import Any

import pytest

from .checking import is_told_its_case


def by_the_state_alone(run: Any, event: Any) -> bool:
    return bool(run["status"] == "awaiting_input" and event["type"] == "awaiting_input")


def by_the_number_alone(run: Any, event: Any) -> bool:
    return bool(run["status"] == "awaiting_input" and event["seq"] >= run["seq"] - 1)


def with_the_last_one(status: str, events: list[int], cursor: int) -> tuple[list[int], bool]:
    return [n for n in events if n >= cursor], status in ("completed", "failed", "cancelled")


def a_failure_is_no_end(status: str, events: list[int], cursor: int) -> tuple[list[int], bool]:
    return [n for n in events if n > cursor], status in ("completed", "cancelled")


def nothing_new_is_the_end(status: str, events: list[int], cursor: int) -> tuple[list[int], bool]:
    new = [number for number in events if number > cursor]
    return new, status in ("completed", "failed", "cancelled") or not new


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("11.box", by_the_state_alone, "'awaiting_input', 'seq': 12}, 'event': {'seq': 5", "True"),
        ("11.box", by_the_number_alone, "'event': {'seq': 11, 'type': 'node_finished'", "True"),
        ("11.goes_on", with_the_last_one, "'cursor': 2", "It gives ([2, 3], False)"),
        ("11.goes_on", a_failure_is_no_end, "'failed'", "([2, 3], True) is expected"),
        ("11.goes_on", nothing_new_is_the_end, "'awaiting_input'", "It gives ([], True)"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)
