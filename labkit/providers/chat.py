"""What the chunks of an OpenAI-compatible chat completion say, as deltas and errors.

    for delta in deltas({"choices": [{"delta": {"content": "Hel"}}]}): ...     # Delta('text', ...)

An error object is never passed over, no finish reason is invented, and what makes no sense is an
error of kind "protocol". Messages are shown and never read.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from json import loads
from typing import Any

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, classify
from labkit.recovery.sse import SSEDecoder, SSEError
from labkit.simulation import Observer

from .fake import Player
from .script import Script
from .wire import Dropped, Head, answer


class RawProvider:
    """The endpoint without an SDK: the script's bytes, the lab's own decoder, and JSON."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self._player = Player(script, observe)

    async def stream(self, attempt: int = 1) -> AsyncGenerator[Delta, None]:
        """One request's deltas; raises `ProviderError`. A cancel, or leaving early, ends it."""
        pieces = answer(self._player.request())
        async with aclosing(pieces), aclosing(read(pieces)) as found:
            async for delta in found:
                yield delta


async def read(pieces: AsyncGenerator[Head | bytes, None]) -> AsyncGenerator[Delta, None]:
    """The deltas of one answer, until `[DONE]` or the end of its bytes.

    Comments and other events are no deltas. Raises `ProviderError` for a refusal, an error in the
    stream, a reset connection, and bytes that make no sense.
    """
    decoder = SSEDecoder()
    try:
        async for piece in pieces:
            if isinstance(piece, Head):
                if piece.status >= 400:
                    raise await _refusal(piece, pieces)
                continue
            for event in decoder.feed(piece):
                if event.data == "[DONE]":
                    return
                if event.event == "message":
                    for delta in deltas(_parsed(event.data)):
                        yield delta
    except Dropped:
        raise ProviderError("the connection was reset", kind="disconnect") from None
    except SSEError as error:
        raise ProviderError(str(error), kind="protocol") from error


async def _refusal(head: Head, pieces: AsyncGenerator[Head | bytes, None]) -> ProviderError:
    body = b"".join([piece async for piece in pieces if isinstance(piece, bytes)])
    return failure(_parsed(body).get("error"), "refused", head.status, head.headers)


def deltas(chunk: Mapping[str, Any]) -> Iterator[Delta]:
    """What one chunk says; raises the `ProviderError` that stands in its place."""
    try:
        if chunk.get("error") is not None:
            raise failure(chunk["error"], "the stream failed")
        for choice in chunk.get("choices") or ():
            for delta in _said(choice):
                if not isinstance(delta.text, str) or not isinstance(delta.reason, str):
                    raise TypeError("not a text")
                yield delta
        if usage := chunk.get("usage"):
            sent, got = usage.get("prompt_tokens"), usage.get("completion_tokens")
            yield Delta("usage", tokens_in=sent or 0, tokens_out=got or 0)
    except (AttributeError, KeyError, TypeError) as error:
        raise ProviderError("a chunk of an unknown shape", kind="protocol") from error


def _said(choice: Mapping[str, Any]) -> Iterator[Delta]:
    said = choice["delta"]
    if role := said.get("role"):
        yield Delta("role", role)
    if (thought := said.get("reasoning_content")) is not None:
        yield Delta("thinking", thought)
    for text in (said.get("content"), said.get("refusal")):
        if text or (text == "" and not role):
            yield Delta("text", text)
    for call in said.get("tool_calls") or ():
        told = call.get("function") or {}
        arguments, name = told.get("arguments") or "", told.get("name") or ""
        yield Delta("tool_call", arguments, call.get("index"), call.get("id") or "", name)
    if reason := choice.get("finish_reason"):
        yield Delta("finish", reason=reason)


def failure(
    body: Any, message: str, status: int | None = None, headers: Mapping[str, str] | None = None
) -> ProviderError:
    """From an error object, or the text that stands in its place.

    Of `code` and `type` the first that says something known counts. Without `status` the error
    came inside a stream that had been let in: so it is never definite, and a number as code is a
    status.
    """
    told = body if isinstance(body, Mapping) else {"message": body}
    words = [str(told[name]) for name in ("code", "type") if told.get(name)]
    code = next((word for word in words if classify(None, word) != "unknown"), (*words, None)[0])
    said = told.get("message")
    text = said if isinstance(said, str) and said else message
    if status is not None:
        return ProviderError(text, status=status, code=code, headers=headers)
    number = int(code) if code and code.isdecimal() and len(code) == 3 else None
    error = ProviderError(text, kind=classify(number, code), code=code)
    error.definite = False
    return error


def _parsed(text: str | bytes) -> Mapping[str, Any]:
    try:
        found = loads(text)
    except (ValueError, RecursionError) as error:
        raise ProviderError("bytes that are no JSON", kind="protocol") from error
    if not isinstance(found, Mapping):
        raise ProviderError("JSON that is no chunk", kind="protocol")
    return found
