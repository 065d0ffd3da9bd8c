"""Makes the real `openai` client look like the fake provider: deltas and `ProviderError`s.

Rules: an error is read by its type, status, code and place, never by its message; an error object
is never passed over, and no finish reason is invented; what makes no sense is of kind "protocol".

    async for delta in SDKProvider(openai.AsyncOpenAI(max_retries=0)).stream(): ...
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, Final

import httpx2
import openai
from openai.types.chat import ChatCompletionChunk

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, classify

ASKED: Final[Any] = ({"role": "user", "content": "Where is my refund?"},)
MODEL: Final = "labkit"
_STATUSES: Final = frozenset(map(str, range(400, 600)))


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
        try:
            stream = await self._client.chat.completions.create(
                model=MODEL, messages=list(ASKED), stream=True
            )
            opened = True
            async with stream:
                async for chunk in stream:
                    for delta in deltas(chunk):
                        yield delta
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise provider_error(error, opened=opened) from error


def deltas(chunk: ChatCompletionChunk) -> Iterator[Delta]:
    """What one chunk says. Raises `ProviderError` for an error object that the client let pass,
    and for a chunk of another shape."""
    try:
        failed = (chunk.model_extra or {}).get("error")
        if failed is not None:
            raise _told(failed, "the stream failed")
        for choice in chunk.choices or ():
            for delta in _said(choice):
                if not isinstance(delta.text, str) or not isinstance(delta.reason, str):
                    raise TypeError("not a text")
                yield delta
        if chunk.usage:
            yield Delta(
                "usage",
                tokens_in=chunk.usage.prompt_tokens or 0,
                tokens_out=chunk.usage.completion_tokens or 0,
            )
    except (AttributeError, TypeError) as error:
        raise ProviderError("a chunk of an unknown shape", kind="protocol") from error


def _said(choice: Any) -> Iterator[Delta]:
    said = choice.delta
    if said.role:
        yield Delta("role", said.role)
    thought = (said.model_extra or {}).get("reasoning_content")
    if thought is not None:
        yield Delta("thinking", thought)
    for text in (said.content, said.refusal):
        if text or (text == "" and not said.role):
            yield Delta("text", text)
    for call in said.tool_calls or ():
        told = call.function
        name, arguments = (told.name, told.arguments) if told else ("", "")
        yield Delta("tool_call", arguments or "", call.index, call.id or "", name or "")
    if choice.finish_reason:
        yield Delta("finish", reason=choice.finish_reason)


def provider_error(error: Exception, *, opened: bool) -> ProviderError:
    """The `ProviderError` of what the client raised; `opened`: the stream had begun."""
    message, cause = str(error), error.__cause__
    if isinstance(error, openai.APIStatusError):
        return _told(error.body, message, error.status_code, error.response.headers)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return ProviderError(message, kind="connect")
    if isinstance(error, openai.APITimeoutError):
        return ProviderError(message, kind="stall" if opened else "timeout")
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return ProviderError(message, kind="disconnect")
    if isinstance(error, openai.APIResponseValidationError | ValueError):
        return ProviderError(message, kind="protocol")
    return _told(getattr(error, "body", None), message)


def _told(
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
    kind = classify(int(code) if code in _STATUSES else None, code)
    error = ProviderError(text, kind=kind, code=code)
    error.definite = False
    return error
