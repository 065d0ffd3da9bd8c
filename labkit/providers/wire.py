"""A script's steps as the bytes of an OpenAI-compatible chat completion, streamed as SSE.

Shared by the server and by the transport under the SDK, so that both send the same. The id and the
time of creation are fixed. Thinking travels as `reasoning_content`, as compatible servers of
reasoning models send it. `[DONE]` comes at a clean end, and only after a finish reason.

    frame(Step("say", delta=Delta("text", "Hel")))
    # b'data: {"id": ..., "choices": [{"index": 0, "delta": {"content": "Hel"}, ...}]}\\n\\n'

Source: the public reference of OpenAI's chat completion chunk object and error object.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

from labkit.recovery.deltas import Delta

from .steps import Step

DONE: Final = b"data: [DONE]\n\n"
_JSON: Final = {"content-type": "application/json"}
_SSE: Final = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
_CHUNK: Final[Mapping[str, Any]] = {
    "id": "chatcmpl-labkit",
    "object": "chat.completion.chunk",
    "created": 1_772_452_800,
    "model": "labkit",
}


class Dropped(Exception):
    """The script wants the connection reset here: end it without a proper close."""


@dataclass(frozen=True, slots=True)
class Head:
    """How an answer begins: HTTP status and headers (names in lower case)."""

    status: int
    headers: Mapping[str, str]


async def answer(steps: AsyncGenerator[Step, None]) -> AsyncGenerator[Head | bytes, None]:
    """One request's answer: a `Head` when the first step is due, then the body, piece by piece.

    Raises `Dropped` where the connection is to be reset. Closes `steps` when it is closed.
    """
    begun = finished = False
    async with aclosing(steps):
        async for step in steps:
            if step.do == "drop":
                raise Dropped
            if step.do == "http_error":
                yield Head(step.status or 500, _JSON | {n.lower(): v for n, v in step.headers})
                yield encoded({"error": _failure(step)})
                return
            if not begun:
                begun = True
                yield Head(200, _SSE)
            if step.do not in ("stall", "end"):
                yield frame(step)
            if step.do == "error":
                return
            finished = finished or step.do == "finish"
    if not begun:
        yield Head(200, _SSE)
    if finished:
        yield DONE


def frame(step: Step) -> bytes:
    """The SSE event of a step that says something, or that fails inside the stream."""
    if step.delta is None:
        body: Mapping[str, Any] = {"error": step.message if step.plain else _failure(step)}
    else:
        body = {**_CHUNK, **_said(step.delta)}
    return b"data: " + encoded(body) + b"\n\n"


def encoded(value: Mapping[str, Any]) -> bytes:
    """JSON in UTF-8, with every letter as it is."""
    return json.dumps(value, ensure_ascii=False).encode()


def _said(delta: Delta) -> Mapping[str, Any]:
    if delta.kind == "usage":
        tokens_in, tokens_out = delta.tokens_in, delta.tokens_out
        usage = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out}
        return {"choices": [], "usage": usage | {"total_tokens": tokens_in + tokens_out}}
    told: dict[str, Any] = {
        "role": {"role": delta.text, "content": ""},
        "text": {"content": delta.text},
        "thinking": {"reasoning_content": delta.text},
        "tool_call": {"tool_calls": [_called(delta)]},
        "finish": {},
    }
    choice = {"index": 0, "delta": told[delta.kind], "finish_reason": delta.reason or None}
    return {"choices": [choice]}


def _called(delta: Delta) -> Mapping[str, Any]:
    first = {"id": delta.call_id, "type": "function"} if delta.call_id else {}
    function = {"name": delta.name} if delta.name else {}
    return {"index": delta.index, **first, "function": {**function, "arguments": delta.text}}


def _failure(step: Step) -> Mapping[str, Any]:
    code = step.code or None
    return {"message": str(step.failure()), "type": code, "param": None, "code": code}
