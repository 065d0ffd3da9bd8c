"""What a request asks for, and for whom, without a socket."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from labkit.services.asked import model_request, owner_of

SECRET = "the secret of somebody"
MESSAGES = [{"role": "user", "content": "hi"}]


def request(secret: str) -> Request:
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    return Request({"type": "http", "headers": headers})


def test_an_owner_holds_no_secret_and_is_the_same_for_the_same_secret() -> None:
    owner = owner_of(request(SECRET))
    assert SECRET not in owner.user
    assert owner == owner_of(request(SECRET))
    assert owner != owner_of(request(SECRET + "s"))


@pytest.mark.parametrize("size", [16, 200])
def test_a_secret_of_16_to_200_characters_is_good(size: int) -> None:
    assert owner_of(request("x" * size)).tenant == "http"


@pytest.mark.parametrize("size", [15, 201])
def test_a_shorter_and_a_longer_secret_are_refused(size: int) -> None:
    with pytest.raises(HTTPException) as refused:
        owner_of(request("x" * size))
    assert refused.value.status_code == 401


@pytest.mark.parametrize("stream", [None, False, 1, "true"])
def test_only_true_asks_for_a_stream(stream: Any) -> None:
    assert model_request({"stream": True, "messages": MESSAGES}).messages
    with pytest.raises(HTTPException, match='"stream": true'):
        model_request({"stream": stream, "messages": MESSAGES})
