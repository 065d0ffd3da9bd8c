"""The exercises of durable runs: a typical wrong answer is told its case.

That each is open as handed out and solved by its solution stands in `test_exercises`.
"""

from __future__ import annotations

from typing import Any

import pytest

import labkit

from .checking import is_told_its_case


def newest(named: Any, checkpoints: list[str], fence: int) -> tuple[Any, str]:
    return (checkpoints[-1] if checkpoints else None), f"run-1/{fence}"


def one_thread(named: Any, checkpoints: list[str], fence: int) -> tuple[Any, str]:
    return named, "run-1"


def no_digest(call: Any, word: Any, now: float, digest: Any) -> bool:
    return bool(word["answer"] == "approve" and now < call["until"])


def for_ever(call: Any, word: Any, now: float, digest: Any) -> bool:
    return bool(word["answer"] == "approve" and word["digest"] == digest(call))


def not_no(call: Any, word: Any, now: float, digest: Any) -> bool:
    return bool(
        word["answer"] != "reject" and word["digest"] == digest(call) and now < call["until"]
    )


def a_moment_too_long(call: Any, word: Any, now: float, digest: Any) -> bool:
    return bool(
        word["answer"] == "approve" and word["digest"] == digest(call) and now <= call["until"]
    )


def whoever_kept_it(thread: str, row: Any) -> bool:
    return bool(row["status"] == "completed")


def any_end(thread: str, row: Any) -> bool:
    return row["status"] in ("completed", "failed") and thread == row["thread"]


def as_an_object(call: Any, word: Any, now: float, digest: Any) -> bool:
    return bool(word["answer"] == "approve" and now < call.until)


def test_a_call_is_a_dict_as_in_labkit_and_its_case_shows_all_of_it() -> None:
    checked = labkit.check("10.may_run", as_an_object).text()
    shown = "'call': {'tool': 'refund', 'arguments': {'amount': 10}, 'until': 100.0}, 'word': {"
    assert shown in checked
    assert "'dict' object has no attribute 'until'" in checked


@pytest.mark.parametrize(
    ("name", "wrong", "case", "words"),
    [
        ("10.go_on", newest, "'run-1/1 step 5'], 'fence': 2", "It gives ('run-1/1 step 5', 'run-1"),
        (
            "10.go_on",
            one_thread,
            "{'named': None, 'checkpoints': []",
            "(None, 'run-1/1') is expected",
        ),
        ("10.may_run", no_digest, "{'amount': 10}}}, 'now': 5.0", "It gives True"),
        ("10.may_run", for_ever, "'now': 100.0", "It gives True; False is expected."),
        ("10.may_run", not_no, "'answer': 'yes, but less'", "It gives True; False is expected."),
        ("10.may_run", a_moment_too_long, "'now': 100.0", "It gives True; False is expected."),
        ("10.counts", whoever_kept_it, "'completed', 'thread': 'run-1/2'}", "It gives True; False"),
        ("10.counts", any_end, "'row': {'status': 'failed'", "It gives True; False is expected."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_typical_wrong_answer_is_told_its_case(
    name: str, wrong: Any, case: str, words: str
) -> None:
    is_told_its_case(name, wrong, case, words)
