"""Cases 57 to 59: the life of a claim, what becomes of a doubt, and the key that never changes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery import outcomes
from labkit.recovery.idempotency import enter
from labkit.recovery.outcomes import Outcome
from labkit.recovery.service import DONE, NOT_DONE, Known, Request
from tests.recovery.executing import (
    BROKE_AFTER,
    CHARGE,
    DOWN,
    LOST_ANSWER,
    LOST_REQUEST,
    NOT_YET,
    OK,
    POLICY,
    REFUSED,
    RETRY,
    Shop,
    Step,
    Told,
    execute,
)
from tests.simulation.kit import virtually

from .public import case

LIFE, DOUBT, KEY = case(57), case(58), case(59)
LEASE, TTL = LIFE["input"]["claim_lease"], LIFE["input"]["result_ttl"]
ONE_TRY = replace(
    POLICY, lease=LEASE, ttl=TTL, limit=200.0, look_ups=1, retry=replace(RETRY, attempts=1)
)

# --- 57


def test_case_57_a_claim_of_a_crashed_process_is_in_progress_while_its_lease_lasts() -> None:
    async def program() -> tuple[Outcome, int]:
        shop, service = Shop(ONE_TRY), Told([LOST_REQUEST])
        await shop.crash(service, at=1.0)
        return await shop.execute(service, at=2.0), len(service.requests)

    outcome, executions = virtually(program())
    assert outcome.how.startswith(LIFE["expect"]["a"])
    assert executions == 1


def test_case_57_b_after_the_lease_it_is_in_doubt_and_not_done_again() -> None:
    async def program() -> tuple[Outcome, str, list[str], int]:
        shop, service = Shop(ONE_TRY), Told([LOST_ANSWER], [NOT_YET])
        await shop.crash(service, at=1.0)
        outcome = await shop.execute(service, at=12.0)
        return outcome, shop.kept(), service.asked, len(service.requests)

    outcome, state, asked, executions = virtually(program())
    assert outcome.status == state == LIFE["expect"]["b"]
    assert (asked, executions) == (["look_up"], 1)


def test_case_57_c_a_live_call_is_never_taken_however_long_it_takes() -> None:
    async def program() -> tuple[Outcome, Outcome, int]:
        shop, service = Shop(ONE_TRY), Told([Step(seconds=90.0)])
        live = asyncio.create_task(shop.execute(service, by=shop.executor("worker-0")))
        second = await shop.execute(service, at=60.0)
        return second, await live, len(service.requests)

    second, first, executions = virtually(program())
    assert second.how.startswith(LIFE["expect"]["c"]["answer"])
    assert (first.status, executions) == (outcomes.SUCCEEDED, LIFE["expect"]["c"]["executions"])


def test_case_57_d_what_failed_before_its_effect_is_done_at_the_next_call() -> None:
    async def program() -> dict[str, int]:
        shop, service = Shop(ONE_TRY), Told([replace(REFUSED, seconds=1.0), OK])
        await shop.execute(service)
        await shop.execute(service, at=2.0)
        return {"executions": len(service.requests), "effects": len(service.effects)}

    assert virtually(program()) == LIFE["expect"]["d"]


def test_case_57_e_what_broke_after_its_effect_is_unknown_and_not_done_again() -> None:
    async def program() -> tuple[list[str], str, int]:
        shop, service = Shop(ONE_TRY), Told([replace(BROKE_AFTER, seconds=1.0)], [NOT_YET])
        told = [(await shop.execute(service, at=at)).status for at in (0.0, 2.0)]
        return told, shop.kept(), len(service.requests)

    told, state, executions = virtually(program())
    assert {*told, state} == {LIFE["expect"]["e"]}
    assert executions == 1


def test_case_57_f_a_result_is_replayed_until_its_own_time_is_over() -> None:
    async def program() -> list[str]:
        shop, service = Shop(ONE_TRY), Told([Step(seconds=1.0)])
        await shop.execute(service)
        told = []
        for at in (99.0, 102.0):
            before = len(service.requests)
            await shop.execute(service, at=at)
            told.append("run" if len(service.requests) > before else "replay")
        return told

    assert virtually(program()) == LIFE["expect"]["f"]


# --- 58

PERMANENT = replace(POLICY, retry=replace(RETRY, attempts=2))
SERVICES: dict[str, tuple[str, Told]] = {
    "reply_lost": ("a", Told([LOST_ANSWER], [Known(DONE, "accepted")])),
    "request_lost": ("b", Told([LOST_REQUEST, OK], [Known(NOT_DONE)])),
    "lookup_down": ("c", Told([LOST_ANSWER], [DOWN])),
    "eventual": ("e", Told([LOST_ANSWER], [NOT_YET] * 2 + [Known(DONE, "accepted")])),
}


@pytest.mark.parametrize("name", SERVICES)
def test_case_58_a_doubt_is_settled_by_the_service_or_by_a_person(name: str) -> None:
    letter, service = SERVICES[name]
    expect: dict[str, Any] = DOUBT["expect"][letter]
    outcome = virtually(execute(service, policy=PERMANENT))
    done = outcome.status in outcomes.DONE
    assert ("succeeded" if done else outcome.status.replace(" ", "_")) == expect["state"]
    assert len(service.effects) == expect["sends"]
    assert len(outcome.attempts) == expect.get("attempts", 1)


def test_case_58_d_a_refusal_before_dispatch_is_a_plain_failure_that_may_be_tried_again() -> None:
    assert DOUBT["expect"]["d"]["retry_allowed"]

    async def program() -> tuple[str, str, int]:
        shop, service = Shop(replace(PERMANENT, retry=replace(RETRY, attempts=1))), Told([REFUSED])
        await shop.execute(service)
        seen, now = await shop.keys.read(CHARGE.tenant, CHARGE.sent)
        assert seen is not None
        return seen.state, enter(seen, seen.fingerprint, now=now), len(service.effects)

    assert virtually(program()) == ("failed", "execute", 0)


def test_case_58_names_every_kind_that_is_tried_here() -> None:
    assert {*SERVICES, "refused"} == set(DOUBT["input"]["cases"])


# --- 59


class WithTokens(Told):
    """Each request takes a new one-time token; the key has nothing to do with it."""

    tokens: tuple[str, ...] = ()

    async def perform(self, request: Request) -> str:
        """Take a token, and go."""
        self.tokens += (KEY["input"]["tokens"][len(self.requests)],)
        return await super().perform(request)


def told(service: WithTokens, key: str = "") -> None:
    """The lost answer, then a second try at a service that keeps repeats apart."""
    assert service.tokens == tuple(KEY["input"]["tokens"])
    sent = [request.key for request in service.requests]
    assert len(set(sent)) == KEY["expect"]["distinct_keys"]
    assert len(service.effects) == KEY["expect"]["charges"]
    if key:
        assert sent == KEY["expect"]["caller_key_sent"]


@pytest.mark.parametrize("key", ["", "k-1"])
def test_case_59_every_try_carries_the_key_of_the_first(key: str) -> None:
    service = WithTokens([LOST_ANSWER, OK], [DOWN], atomic=True)
    outcome = virtually(execute(service, replace(CHARGE, key=key)))
    assert outcome.status == outcomes.SUCCEEDED
    told(service, key)


def test_case_59_so_does_a_try_after_a_crash_and_a_restart() -> None:
    async def program() -> WithTokens:
        shop, service = Shop(), WithTokens([LOST_ANSWER, OK], [DOWN], atomic=True)
        await shop.crash(service, at=1.0)
        outcome = await shop.execute(service, at=12.0, by=shop.executor("restarted"))
        assert outcome.status == outcomes.SUCCEEDED
        return service

    told(virtually(program()))
