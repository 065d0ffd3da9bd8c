"""An answer as an OpenAI-shaped stream: what is sent, what is never sent, and how it ends."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from typing import Any

import pytest

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script, script
from labkit.providers.wire import Head, answer
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.scenarios.scripts import load
from labkit.services.chat import steps
from labkit.simulation import Observer
from labkit.simulation.world import World
from tests.simulation.kit import virtually

POLICY = RetryPolicy(retry_on=TRANSIENT, jitter=0, stall=5.0)
HALF = {"call": {"index": 0, "id": "c1", "name": "look_up", "arguments": '{"n'}}
CALL = {"call": {"index": 0, "id": "c2", "name": "look_up", "arguments": '{"n":1}'}}


class Sent:
    """What went out: status, the data of each frame, and what was noted."""

    def __init__(self) -> None:
        self.status = 0
        self.frames: list[Any] = []
        self.noted: list[tuple[str, dict[str, Any]]] = []

    @property
    def text(self) -> str:
        chunks = [frame for frame in self.frames if "choices" in frame]
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        return "".join(delta.get("content") or "" for delta in deltas)

    @property
    def finish(self) -> list[str]:
        chunks = [frame for frame in self.frames if "choices" in frame]
        reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
        return [reason for reason in reasons if reason]

    @property
    def error(self) -> str:
        last = self.frames[-1]
        return str(last["error"]["code"]) if "error" in last else ""


async def sent(told: Script | Any) -> Sent:
    """Play a script, or any `open_stream`, to one client."""
    out = Sent()
    if isinstance(told, Script):
        world = World(time=lambda: 0.0, spend=lambda: True)
        told = FakeProvider(told, Observer(world, "provider")).stream

    def note(kind: str, **data: Any) -> None:
        out.noted.append((kind, data))

    played = steps(told, policy=POLICY, random=Random(1), observe=note)
    async with aclosing(answer(played)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Head):
                out.status = piece.status
            else:
                data = piece.decode().removeprefix("data: ").strip()
                out.frames.append(data if data == "[DONE]" else json.loads(data))
    return out


def of(*attempts: list[dict[str, Any]]) -> Sent:
    return virtually(sent(script({"name": "made up", "attempts": list(attempts)})))


def test_each_delta_is_a_chunk_and_done_follows_the_finish_reason() -> None:
    out = virtually(sent(load("plain-answer")))
    assert (out.status, out.text, out.finish) == (200, "The refund was sent on Monday.", ["stop"])
    assert out.frames[-1] == "[DONE]"
    assert out.frames[-2]["usage"]["total_tokens"] == 18


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("stall-after-text", "stall"),
        ("drop-after-text", "disconnect"),
        ("cut-off", "cut_off"),
        ("error-after-text", "server"),
    ],
)
def test_after_visible_text_a_failure_ends_it_as_unfinished(name: str, kind: str) -> None:
    out = virtually(sent(load(name)))
    assert out.text
    assert (out.status, out.error, out.finish) == (200, kind, [])
    assert "[DONE]" not in out.frames
    assert len([told for told, _ in out.noted if told == "attempt"]) == 1


def test_before_visible_text_a_failure_is_tried_again_and_leaves_no_trace() -> None:
    thinking = [{"think": "hm"}, HALF, {"drop": True}]
    out = of(thinking, [CALL, {"finish": "tool_calls"}])
    calls = [frame["choices"][0]["delta"] for frame in out.frames[:-2]]
    assert [call["tool_calls"][0]["id"] for call in calls] == ["c2"]
    assert (out.finish, out.frames[-1]) == (["tool_calls"], "[DONE]")


def test_the_finish_reason_is_the_providers_own_and_nothing_is_made_up() -> None:
    assert of([{"say": "It was"}, {"finish": "length"}]).finish == ["length"]


@pytest.mark.parametrize(
    ("step", "status", "code"),
    [
        ({"http_error": {"status": 429}}, 429, "rate_limit"),
        ({"http_error": {"status": 503}}, 503, "overloaded"),
        ({"http_error": {"status": 401}}, 502, "auth"),  # our key, not the client's
        ({"stall": True}, 504, "stall"),
        ({"drop": True}, 502, "disconnect"),
    ],
)
def test_a_failure_before_anything_was_sent_is_an_http_error(
    step: dict[str, Any], status: int, code: str
) -> None:
    out = of([step])
    assert (out.status, out.error, len(out.frames)) == (status, code, 1)


def test_neither_a_providers_message_nor_a_bugs_leaves() -> None:
    failing = {"error": {"message": "no funds, key=sk-123", "code": "server_error"}}
    assert "sk-123" not in str(of([{"say": "It "}, failing]).frames)

    async def bug(attempt: int) -> AsyncGenerator[Delta, None]:
        yield Delta("text", "It ")
        raise RuntimeError("key=sk-123")

    out = virtually(sent(bug))
    assert (out.text, out.error, "[DONE]" in out.frames) == ("It ", "server", False)
    assert ("failed", {"error": "RuntimeError"}) in out.noted
    assert "sk-123" not in str(out.frames) + str(out.noted)
