"""A script's steps as the bytes of an OpenAI-compatible chat completion, streamed as SSE.

Shared by the server and by the transport under the SDK, so that both send the same. The id and the
time of creation are fixed. Thinking travels as `reasoning_content`, as compatible servers of
reasoning models send it. `[DONE]` comes at a clean end, and only after a finish reason.

    async for piece in answer(player.request()): ...    # Head(200, ...), b'data: {"id": ...', ...

Source: the public reference of OpenAI's chat completion chunk object and error object.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from labkit.recovery.deltas import Delta

from .script import Step

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


class Head(NamedTuple):
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
                yield _encoded({"error": _failure(step)})
                return
            if not begun:
                begun = True
                yield Head(200, _SSE)
            if step.do not in ("stall", "end"):
                yield b"data: " + _encoded(_event(step)) + b"\n\n"
            if step.do == "error":
                return
            finished = finished or step.do == "finish"
    if not begun:
        yield Head(200, _SSE)
    if finished:
        yield DONE


def _event(step: Step) -> Mapping[str, Any]:
    said = step.delta
    if said is None:
        return {"error": step.message if step.plain else _failure(step)}
    if said.kind == "usage":
        sent, got = said.tokens_in, said.tokens_out
        usage = {"prompt_tokens": sent, "completion_tokens": got, "total_tokens": sent + got}
        return {**_CHUNK, "choices": [], "usage": usage}
    told: Mapping[str, Any] = {
        "role": {"role": said.text, "content": ""},
        "text": {"content": said.text},
        "thinking": {"reasoning_content": said.text},
        "tool_call": {"tool_calls": [_called(said)]},
        "finish": {},
    }
    choice = {"index": 0, "delta": told[said.kind], "finish_reason": said.reason or None}
    return {**_CHUNK, "choices": [choice]}


def _called(said: Delta) -> Mapping[str, Any]:
    first = {"id": said.call_id, "type": "function"} if said.call_id else {}
    name = {"name": said.name} if said.name else {}
    return {"index": said.index, **first, "function": {**name, "arguments": said.text}}


def _failure(step: Step) -> Mapping[str, Any]:
    code = step.code or None
    return {"message": str(step.failure()), "type": code, "param": None, "code": code}


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
