"""The code and the words of an error that ended a run."""

from __future__ import annotations

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.run_states import LeaseLost
from labkit.runs.codes import error_code, message, short


class Loud(Exception):
    """An error of somebody's own."""


class Mute(Exception):
    """One whose words fail."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


CODES = {
    "quota": "QUOTA_EXCEEDED",
    "rate_limit": "RATE_LIMITED",
    "auth": "AUTH",
    "permission": "AUTH",
    "timeout": "TIMEOUT",
    "stall": "TIMEOUT",
    "deadline": "TIMEOUT",
    "connect": "ProviderError",
}


@pytest.mark.parametrize("kind", CODES)
def test_the_code_of_a_providers_error_is_that_of_its_kind(kind: str) -> None:
    assert error_code(ProviderError("timeout: quota", kind=kind)) == CODES[kind]


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "RATE_LIMITED"), (401, "AUTH"), (403, "AUTH"), (503, "ProviderError")],
)
def test_a_status_alone_has_its_code(status: int, code: str) -> None:
    assert error_code(ProviderError("no", status=status)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LeaseLost("gone"), "LEASE_LOST"),
        (TimeoutError(), "TIMEOUT"),
        (ZeroDivisionError("TIMEOUT"), "ZeroDivisionError"),
        (Loud("quota"), "Loud"),
    ],
)
def test_any_other_error_has_a_code_that_its_words_do_not_change(
    error: Exception, code: str
) -> None:
    assert error_code(error) == code


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no such order", "no such order"),
        ("", ""),
        ("sk-abc123def456 is no key", "*** is no key"),
        ("api_key=hunter22 was refused", "api_key=*** was refused"),
        ("postgresql://ann:pa55@host/db is gone", "postgresql://***@host/db is gone"),
        (f"<Thing object at {hex(2**46)}>", "<Thing object>"),
        ("مرحبا \0 \ud800", "مرحبا \0 \ud800"),
    ],
)
def test_what_is_shown_has_no_secret_and_no_address(said: str, shown: str) -> None:
    assert message(Loud(said)) == shown


def test_a_message_is_short_and_no_secret_is_cut_in_half() -> None:
    said = "x" * 290 + " sk-abc123def456ghi789 and more"
    assert message(Loud(said)) == "x" * 290 + " *** and m"
    assert len(message(Loud("é" * 1000))) == 300


def test_an_error_whose_words_fail_has_none() -> None:
    assert (error_code(Mute()), message(Mute())) == ("Mute", "")


def test_no_text_of_an_event_is_long_in_a_list_either() -> None:
    long = "x" * 100_000
    assert short({"text": long, "tools": [long, 7], "n": 7}) == {
        "text": "x" * 300,
        "tools": ["x" * 300, 7],
        "n": 7,
    }
