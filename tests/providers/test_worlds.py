"""The same script gives the same events in process, in the SDK and on a socket."""

from typing import Any

import openai
import pytest

from labkit.providers.fake import FakeProvider
from labkit.providers.script import VERBS, Script, Step
from labkit.providers.sdk import HIDDEN, scripted
from labkit.simulation import Fault, Observer, Scenario, simulate

from .worlds import (
    PATIENCE,
    every_script,
    in_process,
    of_sdk,
    on_a_socket,
    run_of,
    sdk_in_virtual_time,
)

SCRIPTS = every_script()
NAMES = [script.name for script in SCRIPTS]


def test_the_scripts_are_all_there() -> None:
    assert len(NAMES) > 20
    verbs = {step.do for script in SCRIPTS for steps in script.attempts for step in steps}
    assert verbs >= {*VERBS} - {"forever"}


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_the_sdk_in_virtual_time_sees_and_causes_what_the_fake_does(script: Script) -> None:
    seen, noted = in_process(script)
    assert sdk_in_virtual_time(script) == (seen, noted)
    assert len(seen) == len(script.attempts)


@pytest.mark.socket
@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_the_sdk_on_a_real_socket_sees_and_causes_what_the_fake_does(script: Script) -> None:
    assert on_a_socket(script) == in_process(script)


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_the_sdk_world_takes_the_virtual_time_that_the_fake_takes(script: Script) -> None:
    fake = [(e.kind, e.time) for e in run_of(script, FakeProvider).trace if e.actor == "provider"]
    run = run_of(script, of_sdk, is_sdk=True)
    assert [(e.kind, e.time) for e in run.trace if e.actor == "provider"] == fake


@pytest.mark.parametrize("kind", ["disconnect", "stall"])
def test_a_fault_at_a_step_strikes_alike_in_both_worlds_of_virtual_time(kind: str) -> None:
    script = next(script for script in SCRIPTS if script.name == "tool-then-answer")
    steps = sum(len(steps) for steps in script.attempts)
    for point in range(steps):
        fault = Fault(kind, point)
        fake = run_of(script, FakeProvider, faults=[fault])
        real = run_of(script, of_sdk, is_sdk=True, faults=[fault])
        assert (real.result, real.struck) == (fake.result, (fault,))


def test_what_the_types_of_the_sdk_hide_is_exactly_the_table() -> None:
    hidden: set[str] = set()
    for script in SCRIPTS:
        for steps, typed in zip(script.attempts, _typed_views(script), strict=True):
            hidden |= _missing(steps, typed)
    assert hidden == set(HIDDEN)


def _typed_views(script: Script) -> list[list[tuple[Any, ...]]]:
    """What each attempt says in the client's typed fields alone."""

    async def client(sdk: openai.AsyncOpenAI, policy: Any, observe: Observer) -> Any:
        return [await _typed_view(sdk) for _ in script.attempts]

    def make(play: Script, observe: Observer) -> openai.AsyncOpenAI:
        return scripted(play, observe, max_retries=0, timeout=PATIENCE)

    run = simulate(
        Scenario(name="typed", claim="", script=script, make=make, client=client, sdk=True)
    )
    assert run.error is None, run.error
    return list(run.result)


async def _typed_view(sdk: openai.AsyncOpenAI) -> list[tuple[Any, ...]]:
    view: list[tuple[Any, ...]] = []
    try:
        stream = await sdk.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "q"}], stream=True
        )
        async for chunk in stream:
            view += _typed_chunk(chunk)
    except openai.APITimeoutError:
        view.append(("stall",))
    except openai.APIStatusError as error:
        view.append(("http_error", error.status_code, error.code, str(error)))
    except openai.APIConnectionError as error:
        view.append(("drop", str(error)))
    except openai.APIError as error:
        view.append(("error", error.code, str(error)))
    return view


def _typed_chunk(chunk: Any) -> list[tuple[Any, ...]]:
    if chunk.usage:
        return [("usage", chunk.usage.prompt_tokens, chunk.usage.completion_tokens)]
    view: list[tuple[Any, ...]] = []
    for choice in chunk.choices or ():
        said = choice.delta
        if said.role:
            view.append(("role", said.role))
        elif said.content is not None:
            view.append(("say", said.content))
        for call in said.tool_calls or ():
            told = call.function
            view.append(("call", call.index, call.id, told.name, told.arguments))
        if choice.finish_reason:
            view.append(("finish", choice.finish_reason))
    return view


def _missing(steps: tuple[Step, ...], typed: list[tuple[Any, ...]]) -> set[str]:
    """The names of the steps that the typed view leaves out or words otherwise."""
    left, missing = list(typed), set()
    for step in steps:
        told = _told(step)
        if told is None:
            continue
        if not left or left[0] != told:
            missing.add(_name(step))
        if left and left[0][0] == told[0]:
            left.pop(0)
    assert left == [], "the SDK said more than the script"
    return missing


def _name(step: Step) -> str:
    if step.do != "error":
        return step.do
    return "plain error" if step.message else "empty error"


def _told(step: Step) -> tuple[Any, ...] | None:
    delta = step.delta
    if step.do in ("end", "wait", "stall"):
        return (step.do,) if step.do == "stall" else None
    if delta is None:
        message, code = str(step.failure()), step.code or None
        if step.do == "http_error":
            return (step.do, step.status, code, f"Error code: {step.status} - {message}")
        return (step.do, message) if step.do == "drop" else (step.do, code, message)
    if step.do == "call":
        name, call_id = delta.name or None, delta.call_id or None
        return (step.do, delta.index, call_id, name, delta.text)
    if step.do == "usage":
        return (step.do, delta.tokens_in, delta.tokens_out)
    return (step.do, delta.reason or delta.text)
