"""Whose a token and a cookie are, without a request."""

from __future__ import annotations

import pytest

from labkit.recovery.stream.record import Owner
from labkit.runs.api.access import Access, BadTokens, users_of

ANN, BOB = "the-token-of-ann-1", "the-token-of-bob:1"
ACCESS = Access(users_of(f"ann:{ANN} acme/bob:{BOB}"))


def test_a_user_has_the_tenant_that_is_named_or_the_usual_one() -> None:
    assert ACCESS.by_token(ANN) == Owner(user="ann", tenant="lab")
    assert ACCESS.by_token(BOB) == Owner(user="bob", tenant="acme")


@pytest.mark.parametrize("token", ["", "x", ANN[:-1], ANN + "1", BOB[4:], "猫" * 20, "\ud800" * 16])
def test_any_other_token_is_nobodys(token: str) -> None:
    assert ACCESS.by_token(token) is None


def test_a_cookie_is_its_users_and_is_not_the_token() -> None:
    cookie = ACCESS.cookie(ANN)
    assert ACCESS.by_cookie(cookie) == Owner(user="ann", tenant="lab")
    assert ANN not in cookie
    assert ACCESS.by_token(cookie) is None
    assert ACCESS.by_cookie(ANN) is None
    assert ACCESS.by_cookie("") is None


def test_a_cookie_outlives_a_restart_and_dies_with_its_token() -> None:
    cookie = ACCESS.cookie(ANN)
    again = Access(users_of(f"ann:{ANN}"))
    assert again.by_cookie(cookie) == Owner(user="ann", tenant="lab")
    other = Access(users_of("ann:another-token-of-ann"))
    assert other.by_cookie(cookie) is None


def test_no_token_stands_in_what_is_kept() -> None:
    kept = repr(vars(ACCESS))
    assert ANN not in kept
    assert ACCESS.cookie(ANN) not in kept


@pytest.mark.parametrize("size", [16, 200])
def test_a_token_of_16_to_200_characters_is_good(size: int) -> None:
    assert users_of(f"ann:{'x' * size}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the tokens are empty"),
        (f"ann:{'s' * 15}", "entry 1 of the tokens is no good"),
        (f"ann:{'s' * 201}", "entry 1 of the tokens is no good"),
        (f"ann:{ANN} bob", "entry 2 of the tokens is no good"),
        (f":{ANN}", "entry 1 of the tokens is no good"),
        (f"a/b/c:{ANN}", "entry 1 of the tokens is no good"),
        (f"ann:{'猫' * 16}", "entry 1 of the tokens is no good"),
        (f"ann:{ANN} bob:{ANN}", "entry 2 of the tokens has the token of another"),
    ],
)
def test_an_entry_that_is_no_good_is_counted_and_never_shown(text: str, said: str) -> None:
    with pytest.raises(BadTokens, match=said) as refused:
        users_of(text)
    for secret in (ANN, "sss", "猫"):
        assert secret not in str(refused.value)
