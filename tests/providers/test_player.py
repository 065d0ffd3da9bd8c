"""The player gives the loop its turns, notes what it plays, and lets faults strike at steps."""

import asyncio
import time
from contextlib import aclosing
from typing import Any

import pytest

from labkit.providers.fake import FakeProvider
from labkit.providers.script import script
from labkit.recovery.errors import ProviderError
from labkit.simulation import Fault, Livelock, Observer, Run, Scenario, points, simulate

TWO = ({"wait": 0.5, "role": "assistant"}, {"say": "a"}, {"say": "b"}, {"finish": "stop"})


async def reads(provider: Any, policy: Any, observe: Observer) -> list[str]:
    """Reads one answer whole."""
    async with aclosing(provider.stream()) as stream:
        return [delta.text async for delta in stream]


async def reads_one(provider: Any, policy: Any, observe: Observer) -> str:
    """Leaves after the first delta."""
    async with aclosing(provider.stream()) as stream:
        async for delta in stream:
            return str(delta.text)
    return ""


def playing(*steps: Any, client: Any = reads) -> Scenario:
    made = script({"name": "x", "attempts": [list(steps)]})
    return Scenario(name="x", claim="", script=made, make=FakeProvider, client=client)


def kinds(run: Run) -> list[str]:
    return [event.kind for event in run.trace if event.actor == "provider"]


@pytest.mark.parametrize("step", [{"say": "x"}, {"usage": {"in": 1, "out": 1}}, {"wait": 0}])
def test_an_endless_stream_with_a_client_that_never_waits_is_a_livelock(step: Any) -> None:
    start = time.perf_counter()
    run = simulate(playing({"forever": [step]}))
    assert isinstance(run.error, Livelock)
    assert time.perf_counter() - start < 2


def test_another_task_has_its_turn_between_any_two_steps() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        async def ticks() -> None:
            for _ in range(3):
                observe("tick")
                await asyncio.sleep(0)

        task = asyncio.create_task(ticks())
        await reads(provider, policy, observe)
        await task

    run = simulate(playing({"say": "a"}, {"say": "b"}, {"say": "c"}, client=client))
    kinds = [event.kind for event in run.trace if event.kind in ("say", "tick")]
    assert kinds == ["tick", "say"] * 3


def test_an_endless_stream_that_takes_its_time_is_a_livelock_too() -> None:
    start = time.perf_counter()
    assert isinstance(simulate(playing({"forever": [{"wait": 1, "say": "x"}]})).error, Livelock)
    assert time.perf_counter() - start < 2


def test_an_endless_stream_is_noted_as_one_stream_that_never_closes() -> None:
    run = simulate(playing({"wait": 1, "forever": [{"wait": 1, "say": "x"}]}, client=reads_one))
    assert kinds(run) == ["request", "say", "left"]
    assert run.time == 2.0


def test_waits_add_up_and_what_is_said_comes_in_order() -> None:
    run = simulate(playing({"wait": 1}, {"wait": 0.25, "say": "a"}, {"say": "b"}))
    assert run.result == ["a", "b"]
    assert [(e.kind, e.time) for e in run.trace if e.actor == "provider"] == [
        ("request", 0.0),
        ("say", 1.25),
        ("say", 1.25),
        ("closed", 1.25),
    ]


@pytest.mark.parametrize(
    ("last", "noted"),
    [
        ({"finish": "stop"}, "closed"),
        ({"end": True}, "end"),
        ({"drop": True}, "drop"),
        ({"error": "x"}, "error"),
    ],
)
def test_a_client_that_hears_the_end_has_not_left(last: Any, noted: str) -> None:
    assert kinds(simulate(playing({"say": "a"}, last)))[-1] == noted


def test_a_refused_client_has_not_left() -> None:
    run = simulate(playing({"http_error": {"status": 503}}))
    assert kinds(run) == ["request", "http_error"]
    assert isinstance(run.error, ProviderError)


def test_a_client_that_goes_early_has_left() -> None:
    run = simulate(playing(*TWO, client=reads_one))
    assert kinds(run) == ["request", "role", "left"]
    assert run.trace[-2]["how"] == "closed"


def test_a_stall_says_nothing_more_until_a_cancel_ends_it() -> None:
    scenario = playing({"say": "a"}, {"stall": True})
    run = simulate(scenario, faults=[Fault("cancel", 2)])
    assert kinds(run) == ["request", "say", "stall", "left"]
    assert run.missed == ()


@pytest.mark.parametrize(("kind", "noted"), [("disconnect", "drop"), ("stall", "stall")])
def test_a_fault_at_a_step_strikes_in_its_place(kind: str, noted: str) -> None:
    scenario = playing(*TWO)
    found = points(scenario, kind)
    assert [point.number for point in found] == [0, 1, 2, 3]
    for point in found:
        run = simulate(scenario, faults=[Fault(kind, point.number)])
        struck = [event for event in run.trace if event.kind == noted]
        assert run.struck == run.faults
        assert [event["step"] for event in struck] == [point.number]
        assert len([e for e in run.trace if e.kind in ("role", "say", "finish")]) == point.number


def test_steps_are_numbered_through_all_attempts() -> None:
    made = script({"name": "x", "attempts": [[{"say": "a"}, {"drop": True}], [{"say": "b"}]]})

    async def twice(provider: Any, policy: Any, observe: Observer) -> None:
        with pytest.raises(ProviderError):
            await reads(provider, policy, observe)
        await reads(provider, policy, observe)

    run = simulate(Scenario(name="x", claim="", script=made, make=FakeProvider, client=twice))
    steps = [event["step"] for event in run.trace if event.get("step") is not None]
    assert steps == [0, 1, 2]
    assert [event["attempt"] for event in run.trace if event.kind == "request"] == [1, 2]


def test_what_a_refusal_asks_for_is_noted_in_seconds() -> None:
    told = {"status": 429, "headers": {"Retry-After-Ms": "1500"}}
    run = simulate(playing({"http_error": told}))
    assert run.trace[1]["retry_after"] == 1.5
