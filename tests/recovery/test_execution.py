"""The executor: the entry order, who comes while it runs, cancels, and the clock of its store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from labkit.recovery import outcomes
from labkit.recovery.cancel import stop
from labkit.recovery.errors import PolicyError, ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import PENDING, BadOperation, Operation, Seen
from labkit.recovery.service import Known
from labkit.stores.memory import MemoryKeyStore
from tests.simulation.kit import virtually

from .executing import (
    CHARGE,
    DOWN,
    FOUND,
    LIMITS,
    LOST_ANSWER,
    LOST_REQUEST,
    NOT_THERE,
    NOT_YET,
    OK,
    POLICY,
    REFUSED,
    RETRY,
    Shop,
    Step,
    Told,
    claim,
    execute,
    statuses,
)


def test_an_executor_needs_a_policy_and_a_name() -> None:
    made: dict[str, Any] = {"keys": MemoryKeyStore(), "owner": "a", "policy": POLICY}
    for wrong in ({"policy": RETRY}, {"owner": ""}, {"owner": None}):
        with pytest.raises(PolicyError, match=next(iter(wrong))):
            Executor(**{**made, **wrong}, random=Random(0))


# --- the door


def test_the_four_outcomes_of_the_source_come_out() -> None:
    async def program() -> list[str]:
        shop = Shop()
        service = Told([REFUSED, OK])
        first, second = await shop.execute(service), await shop.execute(service)
        third = await Shop().execute(Told([LOST_ANSWER], [DOWN]))
        fourth = await shop.execute(service, replace(CHARGE, resource=""))
        assert (len(first.attempts), second.result, len(service.effects)) == (2, "receipt", 1)
        assert "missing_idempotency_key" in fourth.how
        return [each.status for each in (first, second, third, fourth)]

    assert virtually(program()) == [
        outcomes.SUCCEEDED,
        outcomes.REUSED,
        outcomes.MANUAL,
        outcomes.REJECTED,
    ]


REFUSALS: list[tuple[Operation, str, str]] = [
    (replace(CHARGE, resource=""), "acme", "missing_idempotency_key"),
    (replace(CHARGE, key="k" * 256), "acme", "key_too_long"),
    (replace(CHARGE, payload={"amount": float("nan")}), "acme", "payload_not_canonical"),
    (CHARGE, "globex", "another_tenants_key"),
]


@pytest.mark.parametrize(("operation", "tenant", "named"), REFUSALS)
def test_a_bad_call_has_a_named_outcome_and_no_effect(
    operation: Operation, tenant: str, named: str
) -> None:
    service = Told([OK])
    outcome = virtually(execute(service, operation, tenant=tenant))
    assert (outcome.status, len(service.requests)) == (outcomes.REJECTED, 0)
    assert outcome.how.startswith(named)
    assert isinstance(outcome.error, BadOperation)


@pytest.mark.parametrize("field", ["key", "tenant", "name", "resource"])
@pytest.mark.parametrize("value", [b"abc", object(), float("nan"), None])
def test_what_is_no_text_is_refused_and_not_raised(field: str, value: Any) -> None:
    operation = replace(CHARGE, **{field: value})
    assert statuses(Told([OK]), operation=operation) == (outcomes.REJECTED, 0, 0)


def test_an_operation_whose_name_has_a_slash_is_done_like_any_other() -> None:
    assert statuses(Told([OK]), operation=replace(CHARGE, name="pay/charge"))[0] == "succeeded"


def test_two_tenants_with_one_key_do_not_meet() -> None:
    async def program() -> list[str]:
        shop, service = Shop(), Told([OK])
        one = replace(CHARGE, key="k-1")
        other = replace(one, tenant="globex", payload={"amount": 6})
        done = [await shop.execute(service, each, tenant=each.tenant) for each in (one, other)]
        return [outcome.status for outcome in done]

    assert virtually(program()) == [outcomes.SUCCEEDED, outcomes.SUCCEEDED]


def test_another_payload_under_the_key_is_a_conflict_and_no_effect() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([OK])
        await shop.execute(service)
        outcome = await shop.execute(service, replace(CHARGE, payload={"amount": 6}))
        assert outcome.status == outcomes.REJECTED
        assert outcome.how.startswith("key_conflict")
        assert len(service.requests) == 1

    virtually(program())


def test_another_thing_under_the_callers_own_key_is_a_conflict() -> None:
    async def program() -> str:
        shop, service = Shop(), Told([OK])
        for resource in ("order-7", "order-8"):
            operation = replace(CHARGE, key="k-1", resource=resource)
            outcome = await shop.execute(service, operation)
        return outcome.how.partition(":")[0]

    assert virtually(program()) == "key_conflict"


def test_what_waits_for_a_person_is_never_done_by_a_program() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER], [DOWN, DOWN, DOWN, DOWN, NOT_THERE])
        for at in (0.0, 100.0, 1e6):
            outcome = await shop.execute(service, at=at)
            assert outcome.status == outcomes.MANUAL
        assert len(service.requests) == 1
        assert [record.digest for record in await shop.keys.waiting("acme")] == [CHARGE.digest]

    virtually(program())


def test_the_memory_of_a_service_counts_from_before_the_key_was_read() -> None:
    async def program() -> str:
        shop = Shop(replace(POLICY, lease=100.0))
        shop.keys = MemoryKeyStore(shop.clock, writing=10.0)
        shop.keys.kept[CHARGE.tenant, CHARGE.sent] = claim()
        await asyncio.sleep(12.0)
        return (await shop.execute(Told([OK], [NOT_THERE], remembers=20.0))).status

    assert virtually(program()) == outcomes.MANUAL


def test_the_raw_key_is_in_no_event_of_an_executor() -> None:
    async def program() -> str:
        shop = Shop()
        for service in (Told([REFUSED, LOST_ANSWER], [DOWN]), Told([OK])):
            await shop.execute(service, replace(CHARGE, key="k-1-secret"))
        return repr(shop.told)

    told = virtually(program())
    assert "k-1-secret" not in told
    assert "digest" in told


# --- who comes while it runs


def test_a_repeat_joins_the_call_that_is_running_and_gets_its_result() -> None:
    async def program() -> list[tuple[str, str]]:
        shop = Shop(replace(POLICY, join=30.0))
        service = Told([Step(seconds=5.0)])
        calls = [
            asyncio.create_task(shop.execute(service, by=shop.executor(f"worker-{n}"), at=n))
            for n in range(3)
        ]
        found = [await call for call in calls]
        assert len(service.requests) == 1
        return [(outcome.status, outcome.result) for outcome in found]

    same = (outcomes.DEDUPLICATED, "receipt")
    assert virtually(program()) == [(outcomes.SUCCEEDED, "receipt"), same, same]


def test_a_repeat_that_does_not_wait_is_told_that_the_call_is_in_progress() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([Step(seconds=5.0)])
        first = asyncio.create_task(shop.execute(service))
        second = await shop.execute(service, by=shop.executor("worker-2"), at=1.0)
        assert (second.status, second.how[:11]) == (outcomes.DEDUPLICATED, "in_progress")
        assert (await first).status == outcomes.SUCCEEDED

    virtually(program())


def test_whoever_joined_a_call_that_surely_failed_does_it_himself() -> None:
    async def program() -> list[str]:
        shop = Shop(replace(POLICY, join=30.0, retry=replace(RETRY, attempts=1)))
        steps = [Step(ProviderError("no", kind="connect"), seconds=2.0, effect=None), OK]
        service = Told(steps)
        calls = [
            asyncio.create_task(shop.execute(service, by=shop.executor(f"worker-{n}"), at=n))
            for n in range(2)
        ]
        found = [(await call).status for call in calls]
        assert len(service.effects) == 1
        return found

    assert virtually(program()) == [outcomes.EXHAUSTED, outcomes.SUCCEEDED]


def test_who_waited_for_a_call_gets_its_result_however_short_results_are_kept() -> None:
    async def program() -> tuple[list[str], int]:
        shop = Shop(replace(POLICY, join=30.0, ttl=0.0))
        service = Told([Step(seconds=5.0)])
        calls = [
            asyncio.create_task(shop.execute(service, by=shop.executor(f"worker-{number}")))
            for number in range(2)
        ]
        return [(await call).status for call in calls], len(service.effects)

    assert virtually(program()) == ([outcomes.SUCCEEDED, outcomes.DEDUPLICATED], 1)


def test_who_waits_for_a_call_waits_no_longer_than_there_is_time() -> None:
    async def program() -> tuple[str, float]:
        shop = Shop(replace(POLICY, join=30.0))
        service = Told([Step(seconds=9.0)])
        first = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(0.1)
        limits = replace(LIMITS, seconds=2.2, hand_back=1.0)
        second = await shop.execute(service, by=shop.executor("worker-2"), limits=limits)
        ended = shop.clock()
        await first
        return second.status, round(ended, 6)

    assert virtually(program()) == (outcomes.DEDUPLICATED, 1.3)


@pytest.mark.parametrize("writing", [0.0, 0.1])
def test_a_hundred_calls_at_once_have_one_effect(writing: float) -> None:
    async def program() -> None:
        shop, service = Shop(replace(POLICY, join=30.0)), Told([OK])
        shop.keys = MemoryKeyStore(shop.clock, writing=writing)
        workers = [shop.executor(f"worker-{number}") for number in range(100)]
        calls = [asyncio.create_task(shop.execute(service, by=by)) for by in workers]
        found = [(await call).status for call in calls]
        assert (len(service.effects), found.count(outcomes.SUCCEEDED)) == (1, 1)
        assert found.count(outcomes.DEDUPLICATED) == 99

    virtually(program())


# --- cancels


@pytest.mark.parametrize(
    ("steps", "at", "state"),
    [
        ([REFUSED], 0.5, "failed"),
        ([LOST_REQUEST], 5.0, "unknown"),
        ([LOST_ANSWER], 5.0, "unknown"),
        ([LOST_ANSWER], 10.05, "unknown"),
    ],
)
def test_a_cancel_leaves_and_the_key_says_what_is_known(
    steps: list[Step], at: float, state: str
) -> None:
    async def program() -> str:
        shop = Shop()
        work = asyncio.create_task(shop.execute(Told(steps)))
        await asyncio.sleep(at)
        assert await stop(work)
        return shop.kept()

    assert virtually(program()) == state


@pytest.mark.parametrize(("known", "state"), [(NOT_THERE, "failed"), (FOUND, "succeeded")])
def test_a_cancel_awaits_the_far_sides_answer_where_it_can_call_off(
    known: Known, state: str
) -> None:
    async def program() -> tuple[str, list[str]]:
        shop, service = Shop(), Told([LOST_ANSWER], [known], cancels=True)
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(5.0)
        assert await stop(work)
        return shop.kept(), service.asked

    assert virtually(program()) == (state, ["call_off"])


def test_a_result_that_is_being_written_is_written_whatever_cancels_come() -> None:
    async def program() -> str:
        shop = Shop()
        shop.keys = MemoryKeyStore(shop.clock, writing=1.0)
        work = asyncio.create_task(shop.execute(Told([OK])))
        await asyncio.sleep(1.5)  # the claim is written, the answer is there
        work.cancel()
        await asyncio.sleep(0.1)
        assert await stop(work)
        return shop.kept()

    assert virtually(program()) == "succeeded"


@pytest.mark.parametrize(("before", "state"), [(None, "failed"), (True, "unknown")])
def test_a_cancel_while_the_key_is_claimed_gives_it_back_at_once(
    before: bool | None, state: str
) -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK])
        shop.keys = MemoryKeyStore(shop.clock, writing=1.0)
        if before:
            dead = replace(claim(), lease=replace(claim().lease, until=0.0))
            shop.keys.kept[CHARGE.tenant, CHARGE.sent] = dead
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(0.5)
        work.cancel()
        await asyncio.sleep(1.0)  # by now it is given back, which takes a second too
        assert await stop(work)
        return shop.kept(), len(service.requests)

    assert virtually(program()) == (state, 0)


def test_a_cancelled_call_that_was_not_quick_enough_leaves_the_winners_claim_alone() -> None:
    async def program() -> tuple[str, str, int]:
        policy = replace(POLICY, join=30.0, limit=100.0)
        shop, service = Shop(policy), Told([Step(seconds=20.0)])
        shop.keys = MemoryKeyStore(shop.clock, writing=1.0)
        worker = shop.executor()
        winner = asyncio.create_task(shop.execute(service, by=worker))
        second = asyncio.create_task(shop.execute(service, by=worker))
        await asyncio.sleep(0.5)
        second.cancel()
        await asyncio.sleep(5.0)
        state = shop.kept()
        third = await shop.execute(service, by=shop.executor("worker-2"))
        return state, (await winner).status + ", " + third.status, len(service.effects)

    assert virtually(program()) == (PENDING, "succeeded, deduplicated", 1)


# --- the store's clock


@pytest.mark.parametrize("jump", [3_600.0, -3_600.0, 86_400.0])
def test_a_clock_that_jumps_has_a_named_outcome_and_no_effect(jump: float) -> None:
    async def program() -> None:
        shop, service = Shop(), Told([OK])
        worker = shop.executor()
        await shop.execute(service, by=worker)
        shop.jump = jump
        outcome = await shop.execute(service, by=worker)
        assert outcome.status == outcomes.REJECTED
        assert outcome.how.startswith("clock_jumped")
        assert len(service.requests) == 1
        shop.jump = 0.0
        assert (await shop.execute(service, by=worker)).status == outcomes.REUSED

    virtually(program())


def test_after_somebody_has_looked_at_the_clock_it_goes_on() -> None:
    async def program() -> str:
        shop, service = Shop(), Told([OK])
        worker = shop.executor()
        await shop.execute(service, by=worker)
        shop.jump = 50.0
        worker.trust_clock()
        return (await shop.execute(service, by=worker)).status

    assert virtually(program()) == outcomes.REUSED


def test_a_clock_that_drifts_a_little_is_no_jump() -> None:
    async def program() -> str:
        shop, service = Shop(), Told([OK])
        worker = shop.executor()
        await shop.execute(service, by=worker)
        shop.jump = 4.9
        return (await shop.execute(service, by=worker)).status

    assert virtually(program()) == outcomes.REUSED


def test_a_slow_answer_of_the_store_is_no_jump_of_its_clock() -> None:
    async def program() -> list[str]:
        class Slow(MemoryKeyStore):
            async def read(self, tenant: str, key: str) -> Seen:
                await asyncio.sleep(8.0 if not self.kept else 0.0)
                return await super().read(tenant, key)

        shop, service = Shop(), Told([OK])
        shop.keys = Slow(shop.clock)
        worker = shop.executor()
        return [(await shop.execute(service, by=worker)).status for _ in range(2)]

    assert virtually(program()) == [outcomes.SUCCEEDED, outcomes.REUSED]


@pytest.mark.parametrize(
    ("steps", "state", "status"),
    [
        ([REFUSED, REFUSED, REFUSED, OK], "failed", outcomes.SUCCEEDED),
        ([LOST_ANSWER], "unknown", outcomes.RECONCILED),
    ],
)
def test_a_clock_that_goes_back_a_little_keeps_nobody_from_what_has_ended(
    steps: list[Step], state: str, status: str
) -> None:
    async def program() -> tuple[str, str]:
        shop = Shop()
        worker = shop.executor("worker-2")  # which has seen the clock as it was
        await shop.execute(Told([OK]), replace(CHARGE, resource="other"), by=worker)
        service = Told(steps, [NOT_YET] * POLICY.look_ups + [FOUND])
        await shop.execute(service)
        kept = shop.kept()
        shop.jump = -4.0
        return kept, (await shop.execute(service, by=worker)).status

    assert virtually(program()) == (state, status)


def test_a_clock_that_was_set_back_does_not_make_a_dead_claim_last() -> None:
    async def program() -> str:
        shop, service = Shop(replace(POLICY, join=5.0)), Told([LOST_ANSWER], [FOUND])
        shop.jump = 3_600.0
        await shop.crash(service, at=1.0)
        shop.jump = 0.0
        await shop.execute(service, by=shop.executor("worker-2"))
        outcome = await shop.execute(service, by=shop.executor("worker-3"), at=20.0)
        return outcome.status

    assert virtually(program()) == outcomes.RECONCILED
