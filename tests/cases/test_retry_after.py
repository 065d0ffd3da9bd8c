"""Cases 37 to 39: how long a provider asks to be left alone."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import pytest

from labkit.recovery.budget import Budget, BudgetLimits, Spent
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import GIVE_UP, decide, stream_with_retry
from labkit.simulation import Observer
from tests.recovery.playing import calls, play, say, told

from .public import case

FORMATS, PRECEDENCE, RISING = case(37), case(38), case(39)
POLICY = RetryPolicy(retry_on=TRANSIENT, first_wait=2.0, factor=1.0, jitter=0, total=600.0)
NOW = datetime.fromisoformat(FORMATS["input"]["now"]).timestamp()
# Where the case leaves a choice, labkit takes the first value listed, but for these.
OTHER_CHOICES = {"Mon, 02 Mar 2026 12:00:60 GMT": "F"}  # no such second: junk


def waited(headers: dict[str, str]) -> Any:
    """Seconds, "F" for the client's own backoff, or "give_up"."""
    error = ProviderError("too many requests", status=429, headers=headers)
    decision = decide(
        error,
        attempt=1,
        visible=False,
        segments=False,
        remaining=600.0,
        now=NOW,
        policy=replace(POLICY, retry_after_cap=FORMATS["input"]["cap"]),
        random=Random(0),
    )
    if decision.action == GIVE_UP:
        return "give_up"
    return "F" if decision.reason == "backoff" else decision.wait


@pytest.mark.parametrize("value", FORMATS["input"]["values"])
def test_case_37_a_retry_after_of_any_form_gives_a_listed_wait(value: str) -> None:
    accepted = FORMATS["expect"]["wait"][value]
    chosen = OTHER_CHOICES.get(value, accepted[0])
    assert waited({"retry-after": value}) == chosen
    assert chosen in accepted


def test_case_37_the_clients_own_backoff_is_the_one_of_the_case() -> None:
    assert POLICY.first_wait == FORMATS["input"]["F"] == RISING["input"]["F"]


@pytest.mark.parametrize("number", range(len(PRECEDENCE["input"]["headers"])))
def test_case_38_a_usable_value_picks_the_header_and_not_its_presence(number: int) -> None:
    headers = PRECEDENCE["input"]["headers"][number]
    assert waited(headers) == PRECEDENCE["expect"]["wait"][number]


def replies() -> list[list[dict[str, Any]]]:
    """The attempts of case 39, as a script has them."""
    attempts: list[list[dict[str, Any]]] = []
    for status, asked in RISING["input"]["responses"]:
        headers = {} if asked is None else {"retry-after": str(asked)}
        refusal = {"http_error": {"status": status, "headers": headers}}
        attempts.append([refusal] if status != 200 else [say("Hello"), {"finish": "stop"}])
    return attempts


def test_case_39_each_refusal_is_asked_for_its_own_wait() -> None:
    run = play(replies(), policy=replace(POLICY, attempts=5))
    assert told(run, "wait", "seconds") == RISING["expect"]["sleeps"]
    assert (calls(run), run.error) == (RISING["expect"]["requests"], None)
    times = [event.time for event in run.trace if event.kind == "request"]
    assert times == [0, 1, 6, 16, 18]


def test_case_39_two_deployments_of_one_quota_wait_just_as_long() -> None:
    """The router changes the deployment at each attempt; both are one quota group on one budget."""
    made: list[Budget] = []

    async def routed(provider: Any, policy: RetryPolicy, observe: Observer) -> None:
        made.append(Budget(BudgetLimits(), clock=asyncio.get_running_loop().time))
        group = made[0].within("quota group")

        def deployment(attempt: int) -> AsyncGenerator[Delta, None]:
            observe("sent", to="east" if attempt % 2 else "west")
            return provider.stream(attempt)  # type: ignore[no-any-return]  # the fake's

        answer = stream_with_retry(
            deployment,
            policy=policy,
            random=observe.random,
            observe=observe,
            now=observe.now,
            budget=group,
        )
        async for _ in answer:
            pass

    run = play(replies(), routed, policy=replace(POLICY, attempts=5))
    expected = RISING["expect"]["two_deployments_sleeps"]
    assert (told(run, "wait", "seconds"), run.error) == (expected, None)
    assert told(run, "sent", "to") == ["east", "west", "east", "west", "east"]
    waited = Spent(requests=5, retries=4, waited=float(sum(expected)))
    assert made[0].used == {"run": waited, "run/quota group": waited}
