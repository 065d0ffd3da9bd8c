"""Case 40 and what the budget does around it; case 48 once more, through the executor."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from typing import Any

import openai
import pytest

from labkit.providers.script import script
from labkit.providers.sdk import scripted
from labkit.recovery import outcomes
from labkit.recovery.budget import Budget, BudgetLimits, Spent
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import Operation
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.recovery.session import NOT_STARTED, UNKNOWN
from labkit.simulation import Observer, Run, simulate
from labkit.stores.memory import MemoryKeyStore
from tests.recovery.charging import ORDER_8, Desk, charge
from tests.recovery.turns import say
from tests.simulation.kit import scenario, virtually

from .public import case

NESTED, STORM = case(40)["input"]["a"], case(40)["input"]["b"]
EXPECT = case(40)["expect"]
FAR: Any = {"requests": 1000, "retries": 1000, "per_tool": 1000, "seconds": 1e6}


def policy(attempts: int) -> RetryPolicy:
    return RetryPolicy(retry_on=TRANSIENT, attempts=attempts, jitter=0, stall=5.0, total=100.0)


class Down:
    """A provider that refuses each request with 503, and counts them."""

    def __init__(self) -> None:
        self.errors: list[ProviderError] = []

    async def stream(self, attempt: int = 1) -> AsyncGenerator[Delta, None]:
        self.errors.append(ProviderError("down", status=503))
        raise self.errors[-1]
        yield


async def asked(open_stream: Any, attempts: int, budget: Budget) -> None:
    pieces = stream_with_retry(
        open_stream, policy=policy(attempts), random=Random(0), budget=budget
    )
    async with aclosing(pieces):
        async for _ in pieces:
            pass


def nested(limits: BudgetLimits) -> tuple[Down, Any, dict[str, Spent]]:
    """An outer loop around an inner one, each with its own number of attempts."""

    async def work() -> tuple[Down, Any, dict[str, Spent]]:
        down = Down()
        budget = Budget(limits, clock=asyncio.get_running_loop().time)
        outer = budget.within("outer")
        inner = outer.within("inner")
        error: Any = None
        for attempt in range(1, NESTED["outer"] + 1):
            try:
                await asked(down.stream, NESTED["inner"] + 1, inner)
            except ProviderError as failed:
                error = failed
                if attempt == NESTED["outer"] or outer.retry(1.0):
                    break
                await asyncio.sleep(1.0)
        return down, error, budget.used

    done: tuple[Down, Any, dict[str, Spent]] = virtually(work())
    return done


def test_case_40a_nested_loops_multiply_without_a_common_limit() -> None:
    down, _, used = nested(BudgetLimits(**FAR))
    assert len(down.errors) == 12 == (NESTED["inner"] + 1) * NESTED["outer"]
    assert used["run"].requests == 12


def test_case_40a_one_budget_for_both_loops_sends_what_it_allows() -> None:
    down, error, used = nested(BudgetLimits(**FAR | {"requests": NESTED["budget"]}))
    assert len(down.errors) == EXPECT["a"]["requests"]
    assert error is down.errors[-1]
    assert error.__notes__ == ["gave up after attempt 1 of 3: requests"]
    assert used["run/outer/inner"] == Spent(requests=4, retries=2, waited=3.0)
    assert (used["run/outer"].retries, used["run"]) == (3, used["run/outer"])


def test_case_40b_runs_that_share_a_retry_budget_end_at_once_with_their_last_503() -> None:
    async def work() -> tuple[Down, list[Any], list[float], Budget]:
        down, clock = Down(), asyncio.get_running_loop().time
        limits = BudgetLimits(**FAR | {"retries": STORM["shared"]})
        shared, ends = Budget(limits, clock=clock), []

        async def one(number: int) -> None:
            try:
                await asked(down.stream, STORM["retries_each"] + 1, shared.within(f"run {number}"))
            finally:
                ends.append(clock())

        runs = (one(number) for number in range(STORM["runs"]))
        return down, await asyncio.gather(*runs, return_exceptions=True), ends, shared

    down, errors, ends, shared = virtually(work())
    assert len(down.errors) == EXPECT["b"]["requests"]
    assert {(type(error), error.status) for error in errors} == {(ProviderError, 503)}
    assert all(error in down.errors and error.__cause__ is None for error in errors)
    assert [error.__notes__[-1].endswith(": retries") for error in errors] == [True] * 10
    at_once = STORM["runs"] - STORM["shared"]
    assert ends.count(0.0) == at_once
    assert shared.used["run"] == Spent(requests=15, retries=5, waited=5.0)


# --- an unmodified client inside a tool that is tried again


def client_in_a_tool(limits: BudgetLimits) -> Run:
    """A tool, tried up to four times, which asks a model by a client with its own two retries."""

    async def client(provider: Any, policy: Any, observe: Observer) -> tuple[Any, Any]:
        budget = Budget(limits, clock=asyncio.get_running_loop().time)
        tool = budget.within("tool", tool="ask")
        down = script({"name": "down", "attempts": [[{"http_error": {"status": 503}}]]})
        sdk = scripted(down, observe.of("provider"), budget=tool.within("sdk"))
        for attempt in range(1, 5):
            try:
                question: Any = [{"role": "user", "content": "Hi"}]
                await sdk.chat.completions.create(model="any", messages=question)
            except openai.OpenAIError as failed:
                if attempt == 4 or tool.retry(1.0):
                    return failed, budget.used
                await asyncio.sleep(1.0)
        raise AssertionError

    run = simulate(scenario(client, sdk=True))
    assert run.error is None
    return run


@pytest.mark.parametrize(("limits", "requests"), [({}, 12), ({"requests": 4}, 4)])
def test_the_retries_of_a_client_in_a_tool_are_those_of_the_tool(
    limits: dict[str, int], requests: int
) -> None:
    run = client_in_a_tool(BudgetLimits(**FAR | limits))
    error, used = run.result
    assert sum(event.kind == "request" for event in run.trace) == requests
    assert used["run/tool/sdk"].requests == requests
    assert isinstance(error, openai.InternalServerError)


# --- 48, through the executor


class Thread:
    """A service whose work goes on when nobody waits for it, as in a thread; it can be asked."""

    atomic, cancels = False, False

    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self.started: list[float] = []
        self.written: list[float] = []
        self.working: list[asyncio.Task[None]] = []

    async def _write(self) -> None:
        await asyncio.sleep(case(48)["input"]["effect_at"])
        self.written.append(self.clock())

    async def perform(self, request: Request) -> str:
        self.started.append(self.clock())
        self.working.append(asyncio.create_task(self._write(), name="thread"))
        await asyncio.shield(self.working[-1])
        return "written"

    async def look_up(self, request: Request) -> Known:
        if self.written:
            return Known(DONE, "written")
        return Known(IN_FLIGHT if self.started else NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        return await self.look_up(request)


ONCE = ExecutionPolicy(
    retry=policy(3), limit=case(48)["input"]["timeout"], look_ups=1, look_up_wait=0.01
)
WRITE = Operation(tenant="acme", name="write", resource="file-1")


def test_case_48_a_timeout_is_unknown_until_it_is_asked_and_nothing_starts_twice() -> None:
    async def work() -> tuple[Thread, list[outcomes.Outcome], list[float]]:
        thread = Thread()
        keys = MemoryKeyStore(thread.clock)
        executor = Executor(keys, owner="worker-1", policy=ONCE, random=Random(0))
        budget = Budget(BudgetLimits(), clock=thread.clock)
        ended, times = [], []
        for at in (0.0, 0.5, 0.6):
            await asyncio.sleep(max(0.0, at - thread.clock()))
            ended.append(await executor.execute(WRITE, thread, budget, tenant="acme"))
            times.append(thread.clock())
        return thread, ended, times

    thread, ended, times = virtually(work())
    told, expect = [outcome.status for outcome in ended], case(48)["expect"]
    assert (told[0], times[0] <= 0.06) == (expect["at_0.06"], True)
    assert told[1:] == [outcomes.RECONCILED, outcomes.REUSED]
    assert (len(thread.started), len(thread.written)) == (expect["starts"], expect["writes"])
    assert sum(len(outcome.attempts) for outcome in ended) == 1


def test_case_48_a_call_that_is_stopped_while_it_is_queued_never_starts() -> None:
    async def work() -> tuple[Desk, asyncio.Task[Any]]:
        desk = Desk(Thread(), policy=ONCE)
        both = [charge("c1"), charge("c2", ORDER_8, index=1)]
        turn = asyncio.create_task(desk.turn(both, [say("done")]))
        await asyncio.sleep(0.01)
        turn.cancel()
        await asyncio.sleep(1.0)
        return desk, turn

    expect = case(48)["expect"]["queued_variant"]
    desk, turn = virtually(work())
    assert desk.statuses == {"c1": UNKNOWN, "c2": NOT_STARTED}
    assert (turn.cancelled(), expect["outcome"]) == (True, "cancelled")
    assert len(desk.service.written) - 1 == expect["writes"] == len(desk.service.started) - 1
    assert [record.key for record in desk.keys.kept.values()] == ["acme/charge/order-7"]
