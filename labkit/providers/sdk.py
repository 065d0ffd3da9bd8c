"""The real `openai` client, unmodified: on a script in virtual time, or on any address.

    client = scripted(script, observe)                   # as it is, with its own two retries
    client = scripted(script, observe, budget=budget)    # its retries draw on a shared budget
    provider = SDKProvider(scripted(script, observe, max_retries=0))   # looks like the fake
    provider = SDKProvider(connected("http://127.0.0.1:8000"))

Time: a script takes none to connect, and the client's read timeout passes in virtual time (a real
transport watches it on the socket). The client compares a Retry-After that is a date with the
machine's clock, which virtual time does not move: use seconds in scripts.
Errors: read by type, status, code and place, never by message; an error object is never passed
over, and no finish reason is invented; what makes no sense is of kind "protocol".
Needs the extra `sdk`; no other module imports it. A scenario sets `sdk=True`.
"""

import asyncio
import platform
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx2
import openai

from labkit.recovery.budget import Budget
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.simulation import Observer

from .chat import deltas, failure
from .fake import Player
from .paying import Paying
from .script import Script
from .wire import Dropped, Head, answer

_ASKED: Final[Any] = ({"role": "user", "content": "Where is my refund?"},)

# What the client's types hide of a script, and where it is.
HIDDEN: Final[Mapping[str, str]] = {
    "think": "no field of the type: only in model_extra['reasoning_content']",
    "plain error": "the text that stands in place of an error object: only in body",
    "empty error": "passes for a chunk that says nothing: only in model_extra['error']",
    "drop": "said as 'Connection error.' whatever happened: only in __cause__",
}

# The client's first request names this system. Python asks a process for it, which a simulation
# refuses, and keeps the answer: so it is asked for here.
platform.platform()


def scripted(
    script: Script, observe: Observer, *, budget: Budget | None = None, **options: Any
) -> openai.AsyncOpenAI:
    """An unmodified client whose every request plays the next attempt of `script`.

    `budget` pays for its requests and retries. `options` are the client's own, such as
    `max_retries` and `timeout`.
    """
    player = Player(script, observe)

    async def network(request: httpx2.Request) -> httpx2.Response:
        body = _Body(answer(player.request()), request)
        head = await body.next()  # as soon as the first step is due
        assert isinstance(head, Head)
        return httpx2.Response(head.status, headers=dict(head.headers), stream=body)

    played = httpx2.MockTransport(network)
    retries = options.get("max_retries", openai.DEFAULT_MAX_RETRIES)
    transport = Paying(played, budget, retries) if budget else played
    http = openai.DefaultAsyncHttpxClient(transport=transport)
    return _client("http://labkit.invalid", http, options)


def connected(address: str, **options: Any) -> openai.AsyncOpenAI:
    """An unmodified client of a provider on a socket, by default without retries of its own."""
    http = openai.DefaultAsyncHttpxClient(trust_env=False)  # no proxy stands before this machine
    return _client(address, http, {"max_retries": 0, **options})


def _client(address: str, http: httpx2.AsyncClient, options: dict[str, Any]) -> openai.AsyncOpenAI:
    given = {"api_key": "none", "base_url": f"{address}/v1", "http_client": http, **options}
    return openai.AsyncOpenAI(**given)


@dataclass
class _Body(httpx2.AsyncByteStream):
    """An answer's pieces, each within the read timeout that its request names."""

    pieces: AsyncGenerator[Head | bytes, None]
    request: httpx2.Request

    async def next(self) -> Head | bytes | None:
        """The next piece, None at the end; raises what a real transport would."""
        patience = self.request.extensions.get("timeout", {}).get("read")
        try:
            async with asyncio.timeout(patience):
                return await anext(self.pieces, None)
        except TimeoutError:
            raise httpx2.ReadTimeout("nothing came", request=self.request) from None
        except Dropped:
            raise httpx2.ReadError("connection reset", request=self.request) from None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(piece := await self.next(), bytes):
            yield piece

    async def aclose(self) -> None:
        await self.pieces.aclose()


class SDKProvider:
    """A client, asked one fixed question at each `stream`."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        self._client = client

    async def stream(self, attempt: int = 1) -> AsyncGenerator[Delta, None]:
        """One request's deltas; raises `ProviderError`, read from type and status alone.

        The client's own retries are inside one request: give it `max_retries=0`. A cancel, or
        leaving early, closes the connection.
        """
        opened = False
        ask = self._client.chat.completions.create
        try:
            async with await ask(model="labkit", messages=_ASKED, stream=True) as stream:
                opened = True
                async for chunk in stream:
                    for delta in deltas(_plain(chunk)):
                        yield delta
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise provider_error(error, opened=opened) from error


def _plain(chunk: Any) -> Any:
    """As it came: the client takes JSON of any shape for a chunk."""
    return chunk.to_dict(warnings=False) if isinstance(chunk, openai.BaseModel) else chunk


def provider_error(error: Exception, *, opened: bool) -> ProviderError:
    """The `ProviderError` of what the client raised; `opened`: the stream had begun."""
    message, cause = str(error), error.__cause__
    if isinstance(error, openai.APIStatusError):
        return failure(error.body, message, error.status_code, error.response.headers)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ProviderError(message, kind="connect")
    if isinstance(error, openai.APITimeoutError):
        return ProviderError(message, kind="stall" if opened else "timeout")
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return ProviderError(message, kind="disconnect")
    if isinstance(error, openai.APIResponseValidationError | ValueError):
        return ProviderError(message, kind="protocol")
    return failure(getattr(error, "body", None), message)
