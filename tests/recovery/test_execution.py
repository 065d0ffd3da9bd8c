"""The executor: the entry order, what follows each error, and what a claim is worth."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from labkit.recovery import outcomes
from labkit.recovery.budget import BudgetExhausted, BudgetLimits
from labkit.recovery.cancel import stop
from labkit.recovery.errors import PolicyError, ProviderError, RecoveryError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import (
    PENDING,
    BadOperation,
    KeyRecord,
    Operation,
    Seen,
    claimed,
    resolved,
)
from labkit.recovery.outcomes import Attempt
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.stores.memory import MemoryKeyStore
from tests.simulation.kit import virtually

from .executing import (
    BAD_REQUEST,
    BROKE_AFTER,
    CHARGE,
    LIMITS,
    LOST_ANSWER,
    LOST_REQUEST,
    OK,
    POLICY,
    REFUSED,
    RETRY,
    Shop,
    Step,
    Told,
    execute,
)

FOUND, NOT_THERE, NOT_YET = Known(DONE, "receipt 1"), Known(NOT_DONE), Known(IN_FLIGHT)
DOWN = ProviderError("down", status=503)

# --- each error, and what the service says of it


def statuses(service: Told, **how: Any) -> tuple[str, int, int]:
    """Status, requests and effects of one call."""
    outcome = virtually(execute(service, **how))
    return outcome.status, len(service.requests), len(service.effects)


def test_an_answer_is_the_end() -> None:
    assert statuses(Told([OK])) == (outcomes.SUCCEEDED, 1, 1)


def test_what_surely_did_not_happen_is_tried_again_without_asking() -> None:
    service = Told([REFUSED, OK])
    assert statuses(service) == (outcomes.SUCCEEDED, 2, 1)
    assert service.asked == []


def test_an_error_that_waiting_does_not_mend_is_not_tried_again() -> None:
    assert statuses(Told([BAD_REQUEST])) == (outcomes.FAILED, 1, 0)


def test_a_lost_answer_is_found_and_nothing_is_sent_again() -> None:
    assert statuses(Told([LOST_ANSWER], [FOUND])) == (outcomes.RECONCILED, 1, 1)


def test_a_lost_request_is_sent_again_once_the_service_has_said_no() -> None:
    assert statuses(Told([LOST_REQUEST, OK], [NOT_THERE])) == (outcomes.SUCCEEDED, 2, 1)


@pytest.mark.parametrize("step", [LOST_ANSWER, BROKE_AFTER, Step(DOWN)])
def test_a_service_that_cannot_be_asked_leaves_it_to_a_person(step: Step) -> None:
    assert statuses(Told([step], [DOWN])) == (outcomes.MANUAL, 1, 1)


def test_a_service_that_keeps_repeats_apart_may_be_asked_again_in_doubt() -> None:
    service = Told([LOST_ANSWER, OK], [DOWN], atomic=True)
    assert statuses(service) == (outcomes.SUCCEEDED, 2, 1)
    assert len({request.key for request in service.requests}) == 1


def test_while_the_service_says_not_yet_it_is_asked_and_not_sent() -> None:
    service = Told([LOST_ANSWER], [NOT_YET, NOT_YET, FOUND])
    assert statuses(service) == (outcomes.RECONCILED, 1, 1)
    assert len(service.asked) == 3


def test_a_request_that_stays_in_flight_is_unknown_and_not_handed_over() -> None:
    async def program() -> list[str]:
        shop = Shop()
        service = Told([LOST_ANSWER], [*[NOT_YET] * POLICY.look_ups, FOUND])
        first = await shop.execute(service)
        state = shop.kept()
        second = await shop.execute(service, by=shop.executor("worker-2"))
        return [first.status, state, second.status, str(len(service.requests))]

    assert virtually(program()) == [outcomes.UNKNOWN, "unknown", outcomes.RECONCILED, "1"]


def test_a_look_up_that_fails_is_asked_again() -> None:
    assert statuses(Told([LOST_ANSWER], [DOWN, FOUND])) == (outcomes.RECONCILED, 1, 1)


def test_a_definite_second_error_does_not_settle_the_first_ones_doubt() -> None:
    service = Told([LOST_ANSWER, REFUSED], [DOWN], atomic=True)
    outcome = virtually(execute(service))
    assert (outcome.status, len(service.effects)) == (outcomes.UNKNOWN, 1)


def test_a_service_with_a_cancel_call_is_asked_to_call_off_first() -> None:
    service = Told([LOST_REQUEST, OK], [NOT_THERE], cancels=True)
    assert statuses(service) == (outcomes.SUCCEEDED, 2, 1)
    assert service.asked == ["call_off"]


@pytest.mark.parametrize("known", [NOT_THERE, DOWN])
@pytest.mark.parametrize("atomic", [True, False])
def test_what_the_service_has_forgotten_by_now_counts_for_nothing(known: Any, atomic: bool) -> None:
    service = Told([LOST_ANSWER, OK], [known], atomic=atomic, remembers=10.0)
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


def test_a_wait_after_which_the_service_has_forgotten_is_not_slept() -> None:
    policy = replace(POLICY, retry=replace(RETRY, first_wait=20.0))
    service = Told([LOST_ANSWER, OK], [DOWN], atomic=True, remembers=25.0)
    assert statuses(service, policy=policy) == (outcomes.MANUAL, 1, 1)


def test_after_a_promised_no_the_memory_counts_anew() -> None:
    service = Told([LOST_REQUEST, LOST_REQUEST, OK], [NOT_THERE], remembers=12.0)
    assert statuses(service) == (outcomes.SUCCEEDED, 3, 1)


@pytest.mark.parametrize("atomic", [True, False])
def test_a_claim_that_is_taken_over_too_late_is_left_to_a_person(atomic: bool) -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK], [NOT_THERE], atomic=atomic, remembers=50.0)
        shop.keys.kept[CHARGE.tenant, CHARGE.sent] = _claimed_at_0()
        await asyncio.sleep(60.0)
        return (await shop.execute(service)).status, len(service.requests)

    assert virtually(program()) == (outcomes.MANUAL, 0)


def _claimed_at_0() -> KeyRecord:
    mine = claimed(None, CHARGE, "worker-0", now=0.0, length=10.0)
    assert mine is not None
    return mine


def test_a_service_that_gives_up_by_itself_is_no_cancel_of_ours() -> None:
    service = Told([Step(asyncio.CancelledError())], [DOWN])
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


# --- budgets and deadlines


def test_the_attempts_of_the_policy_are_an_end_with_the_last_error_and_a_note() -> None:
    service = Told([REFUSED])
    outcome = virtually(execute(service))
    assert (outcome.status, len(service.requests)) == (outcomes.EXHAUSTED, RETRY.attempts)
    assert outcome.error is not None
    assert outcome.error.__notes__[-1] == "gave up after attempt 3: attempts"
    assert str(outcome.error) == "connection refused"


@pytest.mark.parametrize(
    ("limits", "requests", "ran_out"),
    [
        (replace(LIMITS, requests=2), 2, "requests"),
        (replace(LIMITS, retries=1), 2, "retries"),
        (replace(LIMITS, per_tool=1), 1, "per_tool"),
        (replace(LIMITS, requests=0), 0, "requests"),
    ],
)
def test_the_shared_budget_is_an_end_too(limits: BudgetLimits, requests: int, ran_out: str) -> None:
    service = Told([REFUSED])
    outcome = virtually(execute(service, limits=limits))
    assert (outcome.status, len(service.requests)) == (outcomes.EXHAUSTED, requests)
    assert outcome.how.endswith(ran_out)


def test_each_try_costs_what_the_policy_says() -> None:
    service = Told([REFUSED])
    policy = replace(POLICY, cost=0.25)
    outcome = virtually(execute(service, policy=policy, limits=replace(LIMITS, cost=0.5)))
    assert (outcome.status, len(service.requests)) == (outcomes.EXHAUSTED, 2)
    assert outcome.how.endswith("cost")


def test_what_is_refused_at_the_door_names_what_ran_out_once() -> None:
    outcome = virtually(execute(Told([OK]), limits=replace(LIMITS, requests=0)))
    assert outcome.how == "budget exhausted: requests"


def test_a_try_ends_with_the_runs_deadline_less_the_part_for_handing_back() -> None:
    async def program() -> tuple[str, float]:
        outcome = await execute(
            Told([LOST_REQUEST], [NOT_THERE]), limits=replace(LIMITS, seconds=5.0, hand_back=1.0)
        )
        return outcome.status, asyncio.get_running_loop().time()

    assert virtually(program()) == (outcomes.UNKNOWN, 4.0)


def test_a_wait_past_the_deadline_is_not_slept() -> None:
    async def program() -> tuple[str, float]:
        policy = replace(POLICY, retry=replace(RETRY, first_wait=5.0))
        limits = replace(LIMITS, seconds=5.0, hand_back=1.0)
        outcome = await execute(Told([REFUSED]), policy=policy, limits=limits)
        return outcome.status, asyncio.get_running_loop().time()

    assert virtually(program()) == (outcomes.TIMED_OUT, 0.1)


def test_out_of_tries_and_in_doubt_is_unknown_and_never_failed() -> None:
    service = Told([LOST_ANSWER], [DOWN], atomic=True)
    outcome = virtually(execute(service))
    assert (outcome.status, len(service.requests)) == (outcomes.UNKNOWN, RETRY.attempts)


def test_every_attempt_is_told_with_its_error_its_times_and_whether_it_went_out() -> None:
    outcome = virtually(execute(Told([REFUSED, LOST_REQUEST, OK], [NOT_THERE])))
    assert [replace(each, elapsed=round(each.elapsed, 3)) for each in outcome.attempts] == [
        Attempt(number=1, error="connect", sent=False, elapsed=0.1),
        Attempt(number=2, error="timeout", sent=True, elapsed=10.0, waited=1.0),
        Attempt(number=3, elapsed=0.1, waited=2.0),
    ]


def test_an_executor_needs_a_policy_and_a_name() -> None:
    made: dict[str, Any] = {"keys": MemoryKeyStore(), "owner": "a", "policy": POLICY}
    for wrong in ({"policy": RETRY}, {"owner": ""}, {"owner": None}):
        with pytest.raises(PolicyError, match=next(iter(wrong))):
            Executor(**{**made, **wrong}, random=Random(0))


def test_an_outcome_has_one_of_the_ten_statuses() -> None:
    with pytest.raises(RecoveryError, match="no outcome has the status 'nonsense'; there is: "):
        outcomes.Outcome(status="nonsense")


def test_an_operation_whose_name_has_a_slash_is_done_like_any_other() -> None:
    assert statuses(Told([OK]), operation=replace(CHARGE, name="pay/charge"))[0] == "succeeded"


BAD_POLICIES: list[dict[str, Any]] = [
    {"limit": 0.0},
    {"limit": float("nan")},
    {"lease": -1.0},
    {"look_ups": 0},
    {"look_ups": 1.5},
    {"look_up_wait": 0.0},
    {"ttl": -1.0},
    {"cost": True},
    {"join": "long"},
]


@pytest.mark.parametrize("wrong", BAD_POLICIES, ids=str)
def test_a_policy_names_what_is_wrong_with_it(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(PolicyError, match=f"^{name} is "):
        replace(POLICY, **wrong)


def test_a_policy_may_wait_for_nobody_keep_nothing_and_cost_nothing() -> None:
    assert replace(POLICY, join=0.0, ttl=0, cost=0.0)


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


def test_what_waits_for_a_person_is_never_done_by_a_program() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER], [DOWN, DOWN, DOWN, DOWN, NOT_THERE])
        for at in (0.0, 100.0, 1e6):
            outcome = await shop.execute(service, at=at)
            assert outcome.status == outcomes.MANUAL
        assert len(service.requests) == 1
        assert [record.digest for record in await shop.keys.waiting("acme")] == [CHARGE.digest]

    virtually(program())


# --- claims


def test_a_key_is_claimed_before_anything_is_sent() -> None:
    async def program() -> None:
        shop = Shop()

        class Looks(Told):
            async def perform(self, request: Any) -> str:
                assert shop.kept() == PENDING
                return await super().perform(request)

        assert (await shop.execute(Looks([OK]))).status == outcomes.SUCCEEDED

    virtually(program())


def test_a_claim_lasts_as_long_as_its_work_however_long_that_is() -> None:
    async def program() -> None:
        shop = Shop(replace(POLICY, limit=100.0))
        service = Told([Step(seconds=90.0)])
        first = asyncio.create_task(shop.execute(service))
        second = await shop.execute(service, by=shop.executor("worker-2"), at=60.0)
        assert second.status == outcomes.DEDUPLICATED
        assert (await first).status == outcomes.SUCCEEDED
        assert len(service.requests) == 1

    virtually(program())


def claims_it(shop: Shop) -> KeyRecord:
    """Another claims the key, as if the first one had slept past its lease."""
    before = shop.keys.kept[CHARGE.tenant, CHARGE.sent]
    lease = replace(before.lease, owner="worker-2", fence=before.lease.fence + 1, until=1e6)
    taken = replace(before, lease=lease, version=before.version + 1)
    shop.keys.kept[CHARGE.tenant, CHARGE.sent] = taken
    return taken


def test_a_claim_that_is_lost_ends_the_work_at_its_next_renewal() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        taken = claims_it(shop)
        outcome = await work
        assert (outcome.status, shop.clock()) == (outcomes.UNKNOWN, pytest.approx(10 / 3))
        assert shop.keys.kept[CHARGE.tenant, CHARGE.sent] == taken
        assert service.asked == []

    virtually(program())


def test_a_late_write_is_refused_and_seen() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([Step(seconds=2.0)])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        taken = claims_it(shop)
        assert (await work).status == outcomes.SUCCEEDED
        assert shop.keys.kept[CHARGE.tenant, CHARGE.sent] == taken
        assert "late_write" in [kind for kind, _ in shop.told]

    virtually(program())


def test_a_lost_claim_calls_nothing_off_since_another_works_on_it() -> None:
    async def program() -> None:
        shop, service = Shop(), Told([LOST_ANSWER], [NOT_THERE], cancels=True)
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        claims_it(shop)
        await work
        assert service.asked == []

    virtually(program())


class Gone(MemoryKeyStore):
    """A store that cannot be reached for a while."""

    until = 0.0

    async def read(self, tenant: str, key: str) -> Seen:
        """Read, or raise."""
        seen = await super().read(tenant, key)
        if seen.now < self.until and seen.record is not None:
            raise OSError("gone")
        return seen


def with_a_store_that_is_gone(until: float) -> tuple[str, float]:
    """How a call of a minute ends, and when."""

    async def program() -> tuple[str, float]:
        shop = Shop(replace(POLICY, limit=100.0))
        shop.keys = store = Gone(shop.clock)
        store.until = until
        try:
            told = (await shop.execute(Told([Step(seconds=60.0)]))).status
        except OSError as error:
            told = str(error)
        return told, round(shop.clock(), 3)

    found: tuple[str, float] = virtually(program())
    return found


def test_a_store_that_is_gone_for_a_moment_costs_no_claim() -> None:
    assert with_a_store_that_is_gone(5.0) == (outcomes.SUCCEEDED, 60.0)


def test_a_store_that_is_gone_too_long_ends_the_work() -> None:
    assert with_a_store_that_is_gone(1e6) == ("gone", 19.167)


class Hangs(MemoryKeyStore):
    """A store whose reads hang from the second on."""

    reads = 0

    async def read(self, tenant: str, key: str) -> Seen:
        """Read once."""
        self.reads += 1
        if self.reads > 1:
            await asyncio.sleep(40.0)
        return await super().read(tenant, key)


def test_a_renewal_that_hangs_loses_the_claim_before_its_lease_has_ended() -> None:
    async def program() -> tuple[str, float, int]:
        shop, service = Shop(replace(POLICY, limit=100.0)), Told([Step(seconds=60.0, effect=30.0)])
        shop.keys = Hangs(shop.clock)
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(11.0)
        ended = [kind for kind, _ in shop.told if kind in ("tried", "claim_lost")]
        outcome = await work
        return outcome.status, len(ended), len(service.requests)

    assert virtually(program()) == (outcomes.UNKNOWN, 2, 1)


def test_what_a_successor_may_have_done_is_never_told_as_not_done() -> None:
    async def program() -> str:
        shop = Shop()
        late = Step(ProviderError("an older claim", kind="permission"), seconds=2.0, effect=None)
        work = asyncio.create_task(shop.execute(Told([late])))
        await asyncio.sleep(1.0)
        claims_it(shop)
        return (await work).status

    assert virtually(program()) == outcomes.UNKNOWN


def test_a_result_waits_for_a_store_that_is_gone_for_a_moment() -> None:
    async def program() -> tuple[str, str]:
        shop = Shop()
        shop.keys = store = Gone(shop.clock)
        store.until = 5.0
        outcome = await shop.execute(Told([OK]))
        return outcome.status, shop.kept()

    assert virtually(program()) == (outcomes.SUCCEEDED, "succeeded")


def test_an_error_of_the_store_says_what_is_known_of_the_operation() -> None:
    async def program() -> list[str]:
        shop = Shop()
        shop.keys = store = Gone(shop.clock)
        store.until = 1e6
        with pytest.raises(OSError, match="gone") as raised:
            await shop.execute(Told([OK]))
        return raised.value.__notes__

    assert virtually(program()) == ["of the operation itself is known: succeeded"]


@pytest.mark.parametrize("state", ["failed", "unknown"])
def test_a_clock_that_goes_back_a_little_keeps_nobody_from_what_has_ended(state: str) -> None:
    async def program() -> str:
        shop = Shop()
        steps = [REFUSED, REFUSED, REFUSED, OK] if state == "failed" else [LOST_ANSWER]
        service = Told(steps, [NOT_YET] * POLICY.look_ups + [FOUND])
        worker = shop.executor("worker-2")
        assert (await shop.execute(service, replace(CHARGE, resource="other"), by=worker)).status
        service = Told(steps, [NOT_YET] * POLICY.look_ups + [FOUND])
        await shop.execute(service)
        assert shop.kept() == state
        shop.jump = -4.0
        return (await shop.execute(service, by=worker)).status

    assert virtually(program()) in (outcomes.SUCCEEDED, outcomes.RECONCILED)


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


def test_a_key_is_one_within_its_tenant_at_the_service_too() -> None:
    async def program() -> list[str]:
        shop, service = Shop(), Told([OK])
        for tenant in ("acme", "globex"):
            operation = replace(CHARGE, key="k-1", tenant=tenant)
            await shop.execute(service, operation, tenant=tenant)
        return [request.tenant for request in service.requests]

    assert virtually(program()) == ["acme", "globex"]


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
            dead = replace(_claimed_at_0(), lease=replace(_claimed_at_0().lease, until=0.0))
            shop.keys.kept[CHARGE.tenant, CHARGE.sent] = dead
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(0.5)
        work.cancel()
        await asyncio.sleep(1.0)  # by now it is given back, which takes a second too
        assert await stop(work)
        return shop.kept(), len(service.requests)

    assert virtually(program()) == (state, 0)


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


def test_a_clock_that_was_set_back_does_not_make_a_dead_claim_last() -> None:
    async def program() -> str:
        shop, service = Shop(replace(POLICY, join=5.0)), Told([LOST_ANSWER], [FOUND])
        shop.jump = 3_600.0
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        shop.keys.kept = dict(shop.keys.kept)
        dead = shop.keys.kept[CHARGE.tenant, CHARGE.sent]
        await stop(work)
        shop.keys.kept[CHARGE.tenant, CHARGE.sent] = dead
        shop.jump = 0.0
        await shop.execute(service, by=shop.executor("worker-2"))
        outcome = await shop.execute(service, by=shop.executor("worker-3"), at=20.0)
        return outcome.status

    assert virtually(program()) == outcomes.RECONCILED


# --- what is told


@pytest.mark.parametrize("status", outcomes.STATUSES)
def test_each_outcome_is_told_to_the_model_in_words_of_its_own(status: str) -> None:
    told = {outcomes.Outcome(status=each).told for each in outcomes.STATUSES}
    assert len(told) == len(outcomes.STATUSES) == 10
    assert outcomes.Outcome(status=status, how="why", result="receipt").told


def test_the_raw_key_is_in_no_event_of_an_executor() -> None:
    async def program() -> str:
        shop = Shop()
        for service in (Told([REFUSED, LOST_ANSWER], [DOWN]), Told([OK])):
            await shop.execute(service, replace(CHARGE, key="k-1-secret"))
        return repr(shop.told)

    told = virtually(program())
    assert "k-1-secret" not in told
    assert "digest" in told


# --- two calls in one process, and a process that stands still


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


class Stands(Told):
    """A service during whose first refusal the whole process stands still, past its lease."""

    async def perform(self, request: Request) -> str:
        """Refuse the first one, and let another executor do it meanwhile."""
        self.requests.append(request)
        if request.attempt == 1 and request.fence == 1:
            raise ProviderError("connection refused", kind="connect")
        self.effects.append(asyncio.get_running_loop().time())
        return "receipt"


def test_before_each_further_try_it_is_asked_whether_the_claim_lasts() -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(replace(POLICY, retry=replace(RETRY, first_wait=2.0))), Stands([OK])
        work = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(1.0)
        claims_it(shop)
        return (await work).status, len(service.effects)

    assert virtually(program()) == (outcomes.UNKNOWN, 0)


@pytest.mark.parametrize(("reading", "writing"), [(0.0, 12.0), (9.0, 0.5)])
def test_a_claim_whose_writing_took_longer_than_it_lasts_is_asked_before_the_first_try(
    reading: float, writing: float
) -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK], [NOT_THERE])

        class Slow(MemoryKeyStore):
            async def read(self, tenant: str, key: str) -> Seen:
                seen = await super().read(tenant, key)
                await asyncio.sleep(0.0 if self.kept else reading)
                return seen

            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                await asyncio.sleep(0.0 if old else writing)
                if old is None:
                    claims_it(shop)
                return written

        shop.keys = Slow(shop.clock)
        first = asyncio.create_task(shop.execute(service))
        await asyncio.sleep(20.0)
        return (await first).status, len(service.requests)

    assert virtually(program()) == (outcomes.UNKNOWN, 0)


def test_the_memory_of_a_service_counts_from_before_the_key_was_read() -> None:
    async def program() -> str:
        shop = Shop(replace(POLICY, lease=100.0))
        shop.keys = MemoryKeyStore(shop.clock, writing=10.0)
        shop.keys.kept[CHARGE.tenant, CHARGE.sent] = _claimed_at_0()
        await asyncio.sleep(12.0)
        return (await shop.execute(Told([OK], [NOT_THERE], remembers=20.0))).status

    assert virtually(program()) == outcomes.MANUAL


def test_an_atomic_service_is_not_asked_again_if_it_may_forget_before_it_answers() -> None:
    service = Told([LOST_ANSWER, OK], [DOWN], atomic=True, remembers=20.0)
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


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


def test_a_budget_that_runs_out_inside_the_service_says_nothing_of_the_effect() -> None:
    service = Told([Step(BudgetExhausted("requests"))], [DOWN])
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


def test_another_thing_under_the_callers_own_key_is_a_conflict() -> None:
    async def program() -> str:
        shop, service = Shop(), Told([OK])
        for resource in ("order-7", "order-8"):
            operation = replace(CHARGE, key="k-1", resource=resource)
            outcome = await shop.execute(service, operation)
        return outcome.how.partition(":")[0]

    assert virtually(program()) == "key_conflict"


def test_a_persons_word_is_not_written_over() -> None:
    async def program() -> tuple[str, str]:
        shop = Shop()

        class LostAnswer(MemoryKeyStore):
            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                if new.handed_over:
                    said = resolved(new, True, "seen in the books", now=0.0, ttl=1e6)
                    assert await super().swap(new, said)
                    raise OSError("the answer was lost")
                return written

        shop.keys = LostAnswer(shop.clock)
        outcome = await shop.execute(Told([LOST_ANSWER], [DOWN]))
        return outcome.status, shop.kept()

    assert virtually(program()) == (outcomes.MANUAL, "succeeded")


def test_a_wait_for_a_try_that_would_cost_too_much_is_not_slept() -> None:
    async def program() -> tuple[str, float]:
        limits = replace(LIMITS, cost=0.25)
        outcome = await execute(Told([REFUSED]), policy=replace(POLICY, cost=0.25), limits=limits)
        return outcome.how.rpartition("; ")[2], asyncio.get_running_loop().time()

    assert virtually(program()) == ("cost", 0.1)


class Deaf(Told):
    """A service that heeds no cancel."""

    async def perform(self, request: Request) -> str:
        """Go on for ever."""
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1_000.0)
            if asyncio.get_running_loop().time() > 5_000.0:
                return "late"


def test_a_service_that_heeds_no_cancel_is_left_to_itself() -> None:
    async def program() -> tuple[str, float]:
        outcome = await execute(Deaf([OK], [DOWN]), policy=replace(POLICY, look_ups=1))
        return outcome.status, asyncio.get_running_loop().time()

    assert virtually(program()) == (outcomes.MANUAL, 15.1)


def test_a_result_that_is_there_when_its_time_is_over_is_taken() -> None:
    class Hurries(Told):
        async def perform(self, request: Request) -> str:
            try:
                await asyncio.sleep(1_000.0)
            except asyncio.CancelledError:
                return "just in time"
            return ""

    outcome = virtually(execute(Hurries([OK])))
    assert (outcome.status, outcome.result) == (outcomes.SUCCEEDED, "just in time")


@pytest.mark.parametrize("answer", [None, "done", ("done", "receipt")])
@pytest.mark.parametrize("cancels", [True, False])
def test_an_answer_that_makes_no_sense_is_no_answer(answer: Any, cancels: bool) -> None:
    assert statuses(Told([LOST_ANSWER], [answer], cancels=cancels)) == (outcomes.MANUAL, 1, 1)


def test_a_result_that_is_no_text_is_kept_as_one() -> None:
    outcome = virtually(execute(Told([Step(7)])))  # type: ignore[arg-type]
    assert (outcome.status, outcome.result) == (outcomes.SUCCEEDED, "7")


@pytest.mark.parametrize("field", ["key", "tenant", "name", "resource"])
@pytest.mark.parametrize("value", [b"abc", object(), float("nan"), None])
def test_what_is_no_text_is_refused_and_not_raised(field: str, value: Any) -> None:
    operation = replace(CHARGE, **{field: value})
    assert statuses(Told([OK]), operation=operation) == (outcomes.REJECTED, 0, 0)


def test_a_cancel_out_of_the_store_is_none_of_the_callers() -> None:
    async def program() -> str:
        shop = Shop()

        class Cancels(MemoryKeyStore):
            async def read(self, tenant: str, key: str) -> Seen:
                if asyncio.current_task().get_name().startswith("renew"):  # type: ignore[union-attr]
                    raise asyncio.CancelledError
                return await super().read(tenant, key)

        shop.keys = Cancels(shop.clock)
        return (await shop.execute(Told([Step(seconds=8.0)]))).status

    assert virtually(program()) == outcomes.UNKNOWN


def test_a_claim_that_was_written_and_raised_is_given_back() -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK])

        class Raises(MemoryKeyStore):
            async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
                written = await super().swap(old, new)
                if old is None:
                    raise OSError("the answer was lost")
                return written

        shop.keys = Raises(shop.clock)
        with pytest.raises(OSError, match="lost"):
            await shop.execute(service)
        return shop.kept(), len(service.requests)

    assert virtually(program()) == ("failed", 0)


def test_what_a_service_quotes_of_the_key_is_not_told() -> None:
    refused = Step(ProviderError("no such charge: k-1-secret", status=400), effect=None)
    outcome = virtually(execute(Told([refused]), replace(CHARGE, key="k-1-secret")))
    assert outcome.status == outcomes.FAILED
    assert "k-1-secret" not in outcome.told


def test_no_repr_shows_a_key() -> None:
    operation = replace(CHARGE, key="k-1-secret")
    mine = claimed(None, operation, "worker-1", now=0.0, length=10.0)
    request = Request(operation.sent, {}, 1, 1, "acme")
    assert "k-1-secret" not in repr((operation, mine, request))
