"""Chat chunks without an SDK: the same as the fake, and the public captures as expected."""

import json
from pathlib import Path
from typing import Any

import pytest

from labkit.providers.chat import RawProvider, deltas
from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery.errors import ProviderError
from labkit.recovery.sse import SSEDecoder
from labkit.simulation import Fault

from .worlds import every_script, in_process, run_of, simulated

SCRIPTS = every_script()
NAMES = [script.name for script in SCRIPTS]
GOLDEN = Path(__file__).parents[2] / "data" / "golden"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_bytes_and_our_own_decoder_give_what_the_fake_gives(script: Script) -> None:
    assert simulated(script, RawProvider) == in_process(script)


@pytest.mark.parametrize("kind", ["disconnect", "stall"])
def test_a_fault_at_a_step_strikes_alike_over_bytes(kind: str) -> None:
    script = next(script for script in SCRIPTS if script.name == "tool-then-answer")
    for point in range(sum(len(steps) for steps in script.attempts)):
        fault = Fault(kind, point)
        raw = run_of(script, RawProvider, faults=[fault])
        fake = run_of(script, FakeProvider, faults=[fault])
        assert (raw.result, raw.struck) == (fake.result, (fault,))


@pytest.mark.parametrize("kind", ["text", "tool", "error"])
def test_a_capture_says_what_is_expected_of_it(kind: str) -> None:
    name = f"openai-chat-{kind}.sse"
    told: dict[str, Any] = {"text": "", "thinking": "", "arguments": "", "tool": ""}
    failed = False
    try:
        for event in SSEDecoder().feed((GOLDEN / name).read_bytes()):
            for delta in deltas(json.loads(event.data)) if event.data != "[DONE]" else ():
                if delta.kind in ("text", "thinking"):
                    told[delta.kind] += delta.text
                elif delta.kind == "tool_call":
                    told["arguments"] += delta.text
                    told["tool"] += delta.name
                elif delta.kind == "finish":
                    told["finish"] = delta.reason
    except ProviderError:
        failed = True
    expect = dict(EXPECTED[name])
    assert failed == expect.pop("error", False)
    if told["arguments"]:
        told["arguments"] = json.loads(told["arguments"])
    assert {key: value for key, value in told.items() if value} == expect


JUNK: list[Any] = [
    *(5, "text", [1], {"choices": [{}]}, {"choices": [{"delta": None}]}, {"choices": [5]}),
    *({"choices": [{"delta": {"content": 5}}]}, {"choices": 5}, {"usage": 5, "choices": []}),
    {"choices": [{"delta": {"tool_calls": [5]}}]},
]


@pytest.mark.parametrize("chunk", JUNK, ids=str)
def test_a_chunk_of_an_unknown_shape_is_an_error_of_the_protocol(chunk: Any) -> None:
    with pytest.raises(ProviderError) as caught:
        list(deltas(chunk))
    assert caught.value.kind == "protocol"
