"""A cancel at every point, in both phases: it leaves, nothing is left over, the provider knows."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

import pytest

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.scenarios import clients
from labkit.scenarios.catalogue import catalogue
from labkit.simulation import Fault, Observer, Run, Scenario, points, simulate

from .playing import requests_without_an_end

PHASES = ("waiting", "waking")


def careful_scenarios() -> list[Scenario]:
    safe = (clients.careful, clients.with_segments)
    return [
        scenario
        for scenario in catalogue().values()
        if scenario.client in safe or scenario.name.startswith("interruption.")
    ]


def cancelled(scenario: Scenario, task: str) -> Iterator[tuple[Fault, Run]]:
    for point in points(scenario):
        if point.task == task:
            for phase in PHASES:
                fault = Fault("cancel", point.number, task, phase)
                yield fault, simulate(scenario, faults=[fault])


@pytest.mark.parametrize("scenario", careful_scenarios(), ids=lambda scenario: scenario.name)
def test_a_cancel_of_the_client_leaves_wherever_it_strikes(scenario: Scenario) -> None:
    struck = 0
    for fault, run in cancelled(scenario, "client"):
        assert run.missed == (), fault
        assert run.trace[-1]["outcome"] == "cancelled", fault
        assert run.findings == (), fault
        assert requests_without_an_end(run) == 0, fault
        struck += 1
    assert struck >= 2


@pytest.mark.parametrize("name", ["rate_limit", "error", "stop"])
def test_a_cancel_of_the_turn_leaves_and_what_was_shown_is_kept(name: str) -> None:
    scenario = catalogue()[f"interruption.{name}"]
    struck = 0
    for fault, run in cancelled(scenario, "turn"):
        if run.missed:
            continue  # the user's own stop came first and changed what follows
        ends = {e["task"]: e["outcome"] for e in run.trace if e.kind == "end"}
        assert ends["turn"] == "cancelled", fault
        assert run.findings == (), fault
        assert requests_without_an_end(run) == 0, fault
        session = run.result
        assert session.turns == [], fault
        assert [text for text, _ in session.drafts] == ([run.text] if run.text else []), fault
        ran = [effect["name"] for effect in run.effects]
        assert [kind for kind, _ in session.checkpoint] == ["user", *["tool"] * len(ran)], fault
        struck += 1
    assert struck >= 10


@pytest.mark.parametrize("phase", PHASES)
def test_a_cancel_during_the_wait_ends_it_at_once_and_asks_no_more(phase: str) -> None:
    scenario = catalogue()["retry.rate_limit"]
    waits = [p.number for p in points(scenario) if p.function == "stream_with_retry"]
    assert waits
    for number in waits:
        run = simulate(scenario, faults=[Fault("cancel", number, phase=phase)])
        assert [event["attempt"] for event in run.trace if event.kind == "request"] == [1]
        assert run.time == (0.3 if phase == "waiting" else 2.3)


async def turns_a_cancel_into_an_error(attempt: int) -> AsyncGenerator[Delta, None]:
    try:
        yield Delta("role")
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        raise ProviderError("connection lost", kind="disconnect") from None


def test_a_cancel_leaves_even_where_the_provider_makes_an_error_of_it() -> None:
    async def client(provider: object, policy: RetryPolicy, observe: Observer) -> None:
        pieces = stream_with_retry(
            turns_a_cancel_into_an_error, policy=policy, random=observe.random, observe=observe
        )
        async for _ in pieces:
            pass

    scenario = catalogue()["retry.guarded"].but(client=client)
    run = simulate(scenario, faults=[Fault("cancel", points(scenario)[0].number)])
    assert run.struck
    assert run.trace[-1]["outcome"] == "cancelled"
    assert [event.kind for event in run.trace if event.kind == "attempt"] == ["attempt"]
