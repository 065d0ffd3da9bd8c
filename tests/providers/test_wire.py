"""The bytes are those of the public format, for every step a script can have."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from labkit.providers.script import Step, script
from labkit.providers.wire import DONE, Dropped, Head, answer

SAYING: list[dict[str, Any]] = [
    {"role": "assistant"},
    {"say": "退款 👩‍💻 תשובה\r\n\u2028"},
    {"say": ""},
    {"think": "hm"},
    {"call": {"index": 1, "id": "c", "name": "f", "arguments": "{"}},
    {"call": {"index": 1, "arguments": "}"}},
    {"usage": {"in": 5, "out": 1}},
    {"finish": "stop"},
]


def sent(*steps: dict[str, Any]) -> tuple[Head, list[bytes]]:
    """The head and the pieces of one attempt."""

    async def play() -> AsyncGenerator[Step, None]:
        for step in script({"name": "x", "attempts": [list(steps)]}).attempt(1):
            if step.do != "wait":  # as the player does
                yield step

    async def collect() -> list[Head | bytes]:
        return [piece async for piece in answer(play())]

    head, *pieces = asyncio.run(collect())
    assert isinstance(head, Head)
    return head, [piece for piece in pieces if isinstance(piece, bytes)]


def body(piece: bytes) -> Any:
    assert piece.startswith(b"data: ")
    assert piece.endswith(b"\n\n")
    assert piece.count(b"\n") == 2
    return json.loads(piece[6:])


@pytest.mark.parametrize("step", SAYING, ids=str)
def test_every_saying_step_is_one_event_of_the_public_type(step: dict[str, Any]) -> None:
    _, pieces = sent(step)
    ChatCompletionChunk.model_validate(body(pieces[0]))


def test_text_travels_as_utf_8_and_comes_back_whole() -> None:
    _, pieces = sent({"say": "退款 👩‍💻 תשובה\r\n\u2028"})
    assert "退款 👩‍💻 תשובה".encode() in pieces[0]
    assert body(pieces[0])["choices"][0]["delta"] == {"content": "退款 👩‍💻 תשובה\r\n\u2028"}


def test_thinking_travels_beside_the_content() -> None:
    _, pieces = sent({"think": "hm"})
    assert body(pieces[0])["choices"][0]["delta"] == {"reasoning_content": "hm"}


def test_done_comes_last_and_only_after_a_finish_reason() -> None:
    usage = {"usage": {"in": 1, "out": 1}}
    assert sent({"say": "a"}, {"finish": "stop"}, usage)[1][-1] == DONE
    assert sent({"finish": "stop"}, {"end": True})[1][-1] == DONE
    for steps in ([{"say": "a"}], [{"end": True}], [{"finish": "stop"}, {"error": "x"}]):
        assert DONE not in sent(*steps)[1]


def test_an_error_in_the_stream_is_an_object_or_a_text_and_the_last_event() -> None:
    head, pieces = sent({"say": "a"}, {"error": {"code": "server_error", "message": "broken"}})
    told = {"message": "broken", "type": "server_error", "param": None, "code": "server_error"}
    assert (head.status, body(pieces[-1])) == (200, {"error": told})
    assert body(sent({"error": "words"})[1][-1]) == {"error": "words"}


def test_a_refusal_is_an_error_object_with_status_and_headers() -> None:
    told = {"status": 429, "code": "slow", "message": "no", "headers": {"Retry-After": "2"}}
    head, pieces = sent({"http_error": told})
    assert (head.status, head.headers["retry-after"]) == (429, "2")
    assert head.headers["content-type"] == "application/json"
    assert json.loads(b"".join(pieces))["error"]["code"] == "slow"


def test_a_stream_opens_even_where_nothing_is_ever_said() -> None:
    for steps in ([{"wait": 1}], [{"end": True}], [{"stall": True}]):
        head, pieces = sent(*steps)
        assert (head.status, pieces) == (200, [])
        assert head.headers["content-type"].startswith("text/event-stream")


def test_a_drop_leaves_no_proper_end() -> None:
    with pytest.raises(Dropped):
        sent({"say": "a"}, {"drop": True})
