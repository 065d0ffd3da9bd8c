"""The real `openai` client, unmodified: on a script in virtual time, or on any address.

    client = scripted(script, observe)                   # as it is, with its own two retries
    provider = SDKProvider(scripted(script, observe, max_retries=0))   # looks like the fake
    provider = SDKProvider(connected("http://127.0.0.1:8000"))

Rules: the transport plays the script, takes no time to connect, and enforces the client's read
timeout in virtual time (a real transport does it on the socket). A scenario sets `sdk=True`. The
client compares a Retry-After that is a date with the machine's clock, which virtual time does not
move: use seconds in scripts. What its types hide of a script is listed in `HIDDEN`.
Needs the extra `sdk`, as `adapter` does; no other module imports it.
"""

import asyncio
import platform
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import httpx2
import openai

from labkit.simulation import Observer

from .adapter import SDKProvider
from .player import Player
from .steps import Script
from .wire import Dropped, Head, answer

__all__ = ["HIDDEN", "SDKProvider", "ScriptTransport", "connected", "scripted"]

HIDDEN: Final[Mapping[str, str]] = {
    "think": "no field of the type: only in model_extra['reasoning_content']",
    "plain error": "the text that stands in place of an error object: only in body",
    "empty error": "passes for a chunk that says nothing: only in model_extra['error']",
    "drop": "said as 'Connection error.' whatever happened: only in __cause__",
}

Body = AsyncGenerator[Head | bytes, None]


# The client's first request names this system. Python asks a process for it, which a simulation
# refuses, and keeps the answer: so it is asked for here.
platform.platform()


def scripted(script: Script, observe: Observer, **options: Any) -> openai.AsyncOpenAI:
    """An unmodified client whose every request plays the next attempt of `script`.

    `options` are the client's own, such as `max_retries` and `timeout`.
    """
    http = openai.DefaultAsyncHttpxClient(transport=ScriptTransport(script, observe))
    given: dict[str, Any] = {"api_key": "none", **options}
    return openai.AsyncOpenAI(base_url="http://labkit.invalid/v1", http_client=http, **given)


def connected(address: str, **options: Any) -> openai.AsyncOpenAI:
    """An unmodified client of a provider on a socket, by default without retries of its own."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)  # no proxy stands before this machine
    given: dict[str, Any] = {"api_key": "none", "max_retries": 0, **options}
    return openai.AsyncOpenAI(base_url=f"{address}/v1", http_client=http, **given)


class ScriptTransport(httpx2.AsyncBaseTransport):
    """Stands where the client's network would be."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self._player = Player(script, observe)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The next attempt's answer, as soon as its first step is due."""
        patience = request.extensions.get("timeout", {}).get("read")
        body = answer(self._player.request())
        try:
            head = await _next(body, patience, request)
        except BaseException:
            await body.aclose()
            raise
        assert isinstance(head, Head)
        return httpx2.Response(
            head.status, headers=dict(head.headers), stream=_Stream(body, patience, request)
        )


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, body: Body, patience: float | None, request: httpx2.Request) -> None:
        self._body, self._patience, self._request = body, patience, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await _next(self._body, self._patience, self._request)) is not None:
            assert isinstance(piece, bytes)
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


async def _next(
    body: Body, patience: float | None, request: httpx2.Request
) -> Head | bytes | None:
    """The next piece within `patience` seconds, None at the end; else the transport's errors."""
    try:
        async with asyncio.timeout(patience) as scope:
            return await anext(body, None)
    except TimeoutError:
        if not scope.expired():
            raise
        raise httpx2.ReadTimeout("nothing came", request=request) from None
    except Dropped:
        raise httpx2.ReadError("connection reset", request=request) from None
