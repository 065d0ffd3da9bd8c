"""Makes the golden captures beside it: one answer, in each provider's public streaming format.

    python data/golden/make.py [FOLDER]

The chat completion captures come from labkit's own wire code. The others are written down here from
the public API references (see data/README.md), with fixed ids and times. Every format says the same
text, calls the same tool and breaks at the same place; `expected.json` says what is in each file.
"""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from labkit.providers.script import Script, Step, script
from labkit.providers.wire import Head, answer

TEXT: Final = ("退款已于", "周一发出 👩‍", "💻 ", "תשובה: הסתיים ", '& "ok"\nсделано')
THOUGHT: Final = ("The user asks ", "about a refund.")
TOOL: Final = "look_up"
ARGUMENTS: Final = ("", '{"order":', ' "订单 17"}')
WHOLE: Final = "".join(ARGUMENTS)
TIME: Final = 1_772_452_800

Json = dict[str, Any]


def sse(events: Sequence[tuple[str, Json]], *, end: str = "\n") -> bytes:
    """Events as bytes; a name is left out where it is empty."""
    blocks = []
    for name, data in events:
        first = f"event: {name}{end}" if name else ""
        blocks.append(f"{first}data: {json.dumps(data, ensure_ascii=False)}{end}{end}")
    return "".join(blocks).encode()


# OpenAI chat completions: through the provider's own code


def chat(*steps: Json) -> bytes:
    """What labkit's provider sends for these steps."""
    return asyncio.run(_sent(script({"name": "golden", "attempts": [list(steps)]})))


async def _sent(made: Script) -> bytes:
    async def play() -> AsyncGenerator[Step, None]:
        for step in made.attempt(1):
            yield step

    return b"".join([piece async for piece in answer(play()) if not isinstance(piece, Head)])


def openai_chat() -> Iterator[tuple[str, bytes]]:
    role: Json = {"role": "assistant"}
    usage: Json = {"usage": {"in": 12, "out": 9}}
    said = [{"say": text} for text in TEXT]
    calls = [{"call": {"index": 0, "id": "call_1", "name": TOOL, "arguments": ARGUMENTS[0]}}]
    calls += [{"call": {"index": 0, "arguments": piece}} for piece in ARGUMENTS[1:]]
    error = {"error": {"code": "server_error", "message": "internal error"}}
    thought = [{"think": text} for text in THOUGHT]
    yield "text", chat(role, *thought, *said, {"finish": "stop"}, usage)
    yield "tool", chat(role, *calls, {"finish": "tool_calls"}, usage)
    yield "error", chat(role, *said[:2], error)


# OpenAI responses


def openai_responses() -> Iterator[tuple[str, bytes]]:
    said = _responses_said(TEXT)
    yield "text", _responses(*said, status="completed", output=[_message("".join(TEXT))])
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": TOOL}
    begun = {**call, "arguments": "", "status": "in_progress"}
    whole = {**call, "arguments": WHOLE, "status": "completed"}
    at = {"item_id": "fc_1", "output_index": 0}
    pieces: list[tuple[str, Json]] = [
        ("response.function_call_arguments.delta", {**at, "delta": piece}) for piece in ARGUMENTS
    ]
    tool = [
        ("response.output_item.added", {"output_index": 0, "item": begun}),
        *pieces,
        ("response.function_call_arguments.done", {**at, "name": TOOL, "arguments": WHOLE}),
        ("response.output_item.done", {"output_index": 0, "item": whole}),
    ]
    yield "tool", _responses(*tool, status="completed", output=[whole])
    yield "error", _responses(*_responses_said(TEXT[:2])[:4], status="failed", output=[])


def _responses_said(texts: Sequence[str]) -> list[tuple[str, Json]]:
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    whole = "".join(texts)
    return [
        ("response.output_item.added", {"output_index": 0, "item": _message(None)}),
        ("response.content_part.added", {**at, "part": part}),
        *[("response.output_text.delta", {**at, "delta": t, "logprobs": []}) for t in texts],
        ("response.output_text.done", {**at, "text": whole, "logprobs": []}),
        ("response.content_part.done", {**at, "part": {**part, "text": whole}}),
        ("response.output_item.done", {"output_index": 0, "item": _message(whole)}),
    ]


def _message(text: str | None) -> Json:
    part: Json = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "in_progress" if text is None else "completed",
        "content": [] if text is None else [part],
    }


def _responses(*events: tuple[str, Json], status: str, output: list[Json]) -> bytes:
    made: Json = {"id": "resp_1", "object": "response", "created_at": TIME, "model": "example"}
    made |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None}
    started = {**made, "status": "in_progress", "output": []}
    ended = {**made, "status": status, "output": output}
    if status == "failed":
        ended["error"] = {"code": "server_error", "message": "internal error"}
    every: list[tuple[str, Json]] = [
        ("response.created", {"response": started}),
        ("response.in_progress", {"response": started}),
        *events,
        (f"response.{status}", {"response": ended}),
    ]
    numbered = enumerate(every)
    return sse([(name, {"type": name, "sequence_number": n, **d}) for n, (name, d) in numbered])


# Anthropic messages


def anthropic() -> Iterator[tuple[str, bytes]]:
    thinking = [{"type": "thinking_delta", "thinking": text} for text in THOUGHT]
    signed = {"type": "signature_delta", "signature": "c2lnbmVk"}
    said = [{"type": "text_delta", "text": text} for text in TEXT]
    arguments = [{"type": "input_json_delta", "partial_json": piece} for piece in ARGUMENTS]
    think = _block(0, {"type": "thinking", "thinking": "", "signature": ""}, [*thinking, signed])
    text: Json = {"type": "text", "text": ""}
    tool = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {}}
    failure = {"type": "overloaded_error", "message": "Overloaded"}
    yield "text", _anthropic(*think, *_block(1, text, said), *_anthropic_end("end_turn"))
    yield "tool", _anthropic(*_block(0, tool, arguments), *_anthropic_end("tool_use"))
    yield "error", _anthropic(*_block(0, text, said[:2])[:-1], {"type": "error", "error": failure})


def _block(index: int, block: Json, deltas: Sequence[Json]) -> list[Json]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *[{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": index},
    ]


def _anthropic_end(reason: str) -> list[Json]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def _anthropic(*events: Json) -> bytes:
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "model": "example"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None}
    message |= {"usage": {"input_tokens": 12, "output_tokens": 1}}
    every: list[Json] = [{"type": "message_start", "message": message}, {"type": "ping"}, *events]
    return sse([(event["type"], event) for event in every])


# Gemini streamGenerateContent?alt=sse: lines end in CR LF, and no event has a name


def gemini() -> Iterator[tuple[str, bytes]]:
    thinking: list[Json] = [{"text": text, "thought": True} for text in THOUGHT]
    said: list[Json] = [{"text": text} for text in TEXT]
    called: Json = {"functionCall": {"name": TOOL, "args": json.loads(WHOLE)}}
    failure = {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
    yield "text", sse(_gemini([*thinking, *said], "STOP"), end="\r\n")
    yield "tool", sse(_gemini([called], "STOP"), end="\r\n")
    yield "error", sse([*_gemini(said[:2], None), ("", {"error": failure})], end="\r\n")


def _gemini(parts: Sequence[Json], reason: str | None) -> list[tuple[str, Json]]:
    usage = {"promptTokenCount": 12, "candidatesTokenCount": 9, "totalTokenCount": 21}
    chunks = []
    for number, part in enumerate(parts, start=1):
        candidate: Json = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if reason and number == len(parts):
            candidate["finishReason"] = reason
        told = {"usageMetadata": usage, "modelVersion": "example", "responseId": "r1"}
        chunks.append(("", {"candidates": [candidate], **told}))
    return chunks


FORMATS: Final = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic-messages": anthropic,
    "gemini": gemini,
}
THINKING: Final = ("openai-chat", "anthropic-messages", "gemini")
FINISH: Final[Mapping[str, tuple[str, str]]] = {  # of the text, of the tool call
    "openai-chat": ("stop", "tool_calls"),
    "openai-responses": ("completed", "completed"),
    "anthropic-messages": ("end_turn", "tool_use"),
    "gemini": ("STOP", "STOP"),
}


def expected(name: str, case: str) -> Json:
    """What a reader of the capture must find: nothing more, and nothing else."""
    if case == "tool":
        return {"tool": TOOL, "arguments": json.loads(WHOLE), "finish": FINISH[name][1]}
    if case == "error":
        return {"text": "".join(TEXT[:2]), "error": True}
    thought = {"thinking": "".join(THOUGHT)} if name in THINKING else {}
    return {**thought, "text": "".join(TEXT), "finish": FINISH[name][0]}


def main(folder: Path) -> None:
    """Write every capture, and `expected.json`, into `folder`."""
    told: Json = {}
    for name, make in FORMATS.items():
        for case, capture in make():
            told[f"{name}-{case}.sse"] = expected(name, case)
            (folder / f"{name}-{case}.sse").write_bytes(capture)
    text = json.dumps(told, ensure_ascii=False, indent=2) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
