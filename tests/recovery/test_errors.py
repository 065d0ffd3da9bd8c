"""Kinds and the flag that says whether a request surely did nothing.

Outside truth: RFC 9110 section 15, RFC 8470 for 425, and the public error pages of OpenAI and
Anthropic (codes, 529).
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.errors import KINDS, TRANSIENT, ProviderError, classify

# status -> kind, tried again by most callers, surely without effect
STATUSES = {
    400: ("bad_request", False, True),
    401: ("auth", False, True),
    402: ("quota", False, True),
    403: ("permission", False, True),
    404: ("bad_request", False, True),
    405: ("bad_request", False, True),
    407: ("auth", False, True),
    408: ("timeout", True, False),
    409: ("conflict", True, False),
    413: ("bad_request", False, True),
    422: ("bad_request", False, True),
    425: ("rate_limit", True, True),
    429: ("rate_limit", True, True),
    499: ("disconnect", True, False),
    500: ("server", True, False),
    501: ("bad_request", False, True),
    502: ("server", True, False),
    503: ("overloaded", True, False),
    504: ("timeout", True, False),
    505: ("bad_request", False, True),
    520: ("server", True, False),
    529: ("overloaded", True, False),
    302: ("unknown", False, False),
    200: ("unknown", False, False),
    None: ("unknown", False, False),
}

QUOTA_CODES = [
    "insufficient_quota",
    "quota_exceeded",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "insufficient_balance",
    "credit_balance_too_low",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "enforced_spend_limit_reached",
]

CODES_IN_A_STREAM = {
    "overloaded_error": "overloaded",
    "server_is_overloaded": "overloaded",
    "server_error": "server",
    "api_error": "server",
    "timeout_error": "timeout",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "authentication_error": "auth",
    "invalid_api_key": "auth",
    "permission_error": "permission",
    "not_found_error": "bad_request",
    "invalid_request_error": "bad_request",
    "context_length_exceeded": "bad_request",
    "never_heard_of": "unknown",
    "": "unknown",
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_says_the_kind_and_whether_the_request_surely_did_nothing(
    status: int | None,
) -> None:
    error = ProviderError("words", status=status)
    assert (error.kind, error.kind in TRANSIENT, error.definite) == STATUSES[status]


@pytest.mark.parametrize("code", QUOTA_CODES)
@pytest.mark.parametrize("status", [None, 400, 403, 429, 503])
def test_a_quota_code_beats_every_status(status: int | None, code: str) -> None:
    assert classify(status, code) == "quota"
    assert "quota" not in TRANSIENT


@pytest.mark.parametrize("code", CODES_IN_A_STREAM)
def test_a_code_without_a_status_says_the_kind_but_is_never_definite(code: str) -> None:
    error = ProviderError("words", code=code)
    assert (error.kind, error.definite) == (CODES_IN_A_STREAM[code], False)


def test_a_status_beats_every_other_code() -> None:
    assert classify(429, "server_error") == "rate_limit"
    assert classify(500, "rate_limit_error") == "server"
    assert classify(404, "overloaded_error") == "bad_request"


def test_a_kind_that_is_given_beats_the_table_and_brings_its_own_flag() -> None:
    error = ProviderError("no route to host", kind="connect", status=503)
    assert (error.kind, error.definite) == ("connect", True)


def test_only_what_was_refused_or_never_sent_is_definite() -> None:
    surely_nothing = {kind for kind, definite in KINDS.items() if definite}
    assert surely_nothing == {
        "rate_limit",
        "quota",
        "connect",
        "auth",
        "permission",
        "bad_request",
    }


def test_an_unknown_kind_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match=r"unknown kind 'hiccup'; there is: rate_limit, quota"):
        ProviderError("words", kind="hiccup")


def test_header_names_are_lower_case_and_the_given_mapping_is_left_alone() -> None:
    given_headers = {"Retry-After": "7"}
    error = ProviderError("words", status=429, headers=given_headers)
    assert error.headers == {"retry-after": "7"}
    assert given_headers == {"Retry-After": "7"}


@given(
    message=st.text() | st.sampled_from(["429", "connection reset", *QUOTA_CODES]),
    status=st.none() | st.integers(100, 599),
    code=st.none() | st.sampled_from([*QUOTA_CODES, *CODES_IN_A_STREAM]),
)
def test_the_message_changes_neither_kind_nor_flag(
    message: str, status: int | None, code: str | None
) -> None:
    said, silent = (ProviderError(m, status=status, code=code) for m in (message, ""))
    assert (said.kind, said.definite) == (silent.kind, silent.definite)
    assert str(said) == message


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"status": "429"}, "a status is a whole number or None, not '429'"),
        ({"status": True}, "a status is a whole number or None, not True"),
        ({"status": 429.0}, "a status is a whole number or None, not 429.0"),
        ({"code": ["quota"]}, r"a code is a text or None, not \['quota'\]"),
        ({"kind": []}, r"unknown kind \[\]"),  # an empty one is not taken for "not given"
        ({"kind": ["stall"]}, r"unknown kind \['stall'\]"),
    ],
)
def test_an_error_of_nonsense_is_refused_when_made(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ProviderError("x", **given)
