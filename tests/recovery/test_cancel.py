"""A cancel at every point, in both phases: it leaves, nothing is left over, the provider knows.

And the two helpers: `stop`, and `to_the_end` for what must not be left half done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from labkit.recovery.cancel import stop, to_the_end
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError, RecoveryError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.scenarios import clients
from labkit.scenarios.catalogue import catalogue
from labkit.simulation import Fault, Observer, Run, Scenario, points, simulate
from tests.simulation.kit import virtually

from .playing import requests_without_an_end

PHASES = ("waiting", "waking")


def careful_scenarios() -> list[Scenario]:
    safe = (clients.careful, clients.with_segments)
    return [
        scenario
        for scenario in catalogue().values()
        if scenario.client in safe
        or (scenario.name.startswith("interruption.") and "forgetful" not in scenario.name)
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
        (session,) = (e["ann"] for e in run.trace if (e.actor, e.kind) == ("lab", "left"))
        kept = "".join(row[1] for row in dict(session)["messages"] if row[0] == "assistant")
        kept += "".join(dict(session)["drafts"])
        assert kept.startswith(run.text), fault
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


# --- to_the_end and stop


def ended(work: Any) -> tuple[asyncio.Task[Any], float]:
    """The task of `work(task)`, which is given its own task, and when it ended."""

    async def main() -> tuple[asyncio.Task[Any], float]:
        task = asyncio.create_task(work())
        await asyncio.wait([task])
        return task, asyncio.get_running_loop().time()

    return virtually(main())  # type: ignore[no-any-return]


async def takes(seconds: float, done: list[str], error: Exception | None = None) -> str:
    await asyncio.sleep(seconds)
    done.append("done")
    if error:
        raise error
    return "result"


def cancels_at(task: asyncio.Task[Any] | None, *times: float) -> None:
    loop = asyncio.get_running_loop()
    assert task is not None
    for time in times:
        loop.call_at(time, task.cancel)


@pytest.mark.parametrize("times", [(), (0.0,), (1.0,), (1.0, 1.0), (0.0, 0.5, 1.9), (2.0,)])
def test_work_that_must_end_ends_whatever_cancels_arrive_and_then_the_first_leaves(
    times: tuple[float, ...],
) -> None:
    done: list[str] = []

    async def work() -> str:
        cancels_at(asyncio.current_task(), *times)
        return await to_the_end(takes(2, done))

    task, time = ended(work)
    assert (done, time) == (["done"], 2)
    assert task.cancelled() is bool(times)
    if not times:
        assert task.result() == "result"


def test_of_several_cancels_the_first_one_leaves() -> None:
    left: list[asyncio.CancelledError] = []

    async def work() -> None:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        for time, word in ((0.5, "first"), (1, "second")):
            loop.call_at(time, task.cancel, word)
        try:
            await to_the_end(takes(2, []))
        except asyncio.CancelledError as cancel:
            left.append(cancel)
            raise

    ended(work)
    assert [cancel.args for cancel in left] == [("first",)]


def test_an_error_of_that_work_leaves_and_behind_a_cancel_it_is_the_cause() -> None:
    error = OSError("the disk is full")

    async def work() -> None:
        await to_the_end(takes(2, [], error))

    task, _ = ended(work)
    assert task.exception() is error

    async def cancelled_work() -> None:
        cancels_at(asyncio.current_task(), 1)
        await to_the_end(takes(2, [], error))

    caught: list[BaseException | None] = []

    async def outer() -> None:
        try:
            await cancelled_work()
        except asyncio.CancelledError as left:
            caught.append(left.__cause__)
            raise

    task, _ = ended(outer)
    assert task.cancelled()
    assert caught == [error]


def test_a_timeout_around_that_work_is_told_once_it_has_ended() -> None:
    done: list[str] = []

    async def work() -> None:
        async with asyncio.timeout(1):
            await to_the_end(takes(2, done))

    task, time = ended(work)
    assert isinstance(task.exception(), TimeoutError)
    assert (done, time) == (["done"], 2)


@pytest.mark.parametrize("obeys", [True, False])
def test_stop_waits_for_the_clean_up_and_says_whether_the_task_obeyed(obeys: bool) -> None:
    cleaned: list[float] = []

    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            cleaned.append(asyncio.get_running_loop().time())
            if obeys:
                raise

    async def work() -> bool:
        task = asyncio.create_task(stubborn())
        await asyncio.sleep(1)
        return await stop(task)

    task, time = ended(work)
    assert (task.result(), time, cleaned) == (obeys, 2, [2])


def test_a_cancel_of_who_stops_leaves_when_the_task_has_ended() -> None:
    async def work() -> None:
        cancels_at(asyncio.current_task(), 2, 3)
        task = asyncio.create_task(cleans_up())
        await asyncio.sleep(1)
        await stop(task)

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(5)

    task, time = ended(work)
    assert task.cancelled()
    assert time == 6


def test_stop_of_a_finished_task_is_harmless() -> None:
    async def work() -> bool:
        task = asyncio.create_task(asyncio.sleep(0))
        await task
        return await stop(task)

    task, _ = ended(work)
    assert task.result() is False


def test_a_task_that_would_wait_for_its_own_end_is_told_so() -> None:
    async def program() -> None:
        task = asyncio.current_task()
        assert task is not None
        await stop(task)

    with pytest.raises(RecoveryError, match="cannot wait for its own end"):
        virtually(program())
