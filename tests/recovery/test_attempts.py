"""The tries of one operation: what follows each error, and what a service says of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery import outcomes
from labkit.recovery.budget import BudgetExhausted, BudgetLimits
from labkit.recovery.errors import ProviderError
from labkit.recovery.outcomes import Attempt
from labkit.recovery.service import Request
from tests.simulation.kit import virtually

from .executing import (
    BAD_REQUEST,
    BROKE_AFTER,
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

# --- each error, and what the service says of it


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


@pytest.mark.parametrize("answer", [None, "done", ("done", "receipt")])
@pytest.mark.parametrize("cancels", [True, False])
def test_an_answer_that_makes_no_sense_is_no_answer(answer: Any, cancels: bool) -> None:
    assert statuses(Told([LOST_ANSWER], [answer], cancels=cancels)) == (outcomes.MANUAL, 1, 1)


def test_a_definite_second_error_does_not_settle_the_first_ones_doubt() -> None:
    service = Told([LOST_ANSWER, REFUSED], [DOWN], atomic=True)
    outcome = virtually(execute(service))
    assert (outcome.status, len(service.effects)) == (outcomes.UNKNOWN, 1)


def test_a_service_with_a_cancel_call_is_asked_to_call_off_first() -> None:
    service = Told([LOST_REQUEST, OK], [NOT_THERE], cancels=True)
    assert statuses(service) == (outcomes.SUCCEEDED, 2, 1)
    assert service.asked == ["call_off"]


def test_a_service_that_gives_up_by_itself_is_no_cancel_of_ours() -> None:
    service = Told([Step(asyncio.CancelledError())], [DOWN])
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


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


def test_a_result_that_is_no_text_is_kept_as_one() -> None:
    outcome = virtually(execute(Told([Step(7)])))  # type: ignore[arg-type]
    assert (outcome.status, outcome.result) == (outcomes.SUCCEEDED, "7")


def test_every_attempt_is_told_with_its_error_its_times_and_whether_it_went_out() -> None:
    outcome = virtually(execute(Told([REFUSED, LOST_REQUEST, OK], [NOT_THERE])))
    assert [replace(each, elapsed=round(each.elapsed, 3)) for each in outcome.attempts] == [
        Attempt(number=1, error="connect", sent=False, elapsed=0.1),
        Attempt(number=2, error="timeout", sent=True, elapsed=10.0, waited=1.0),
        Attempt(number=3, elapsed=0.1, waited=2.0),
    ]


def test_what_a_service_quotes_of_the_key_is_not_told() -> None:
    refused = Step(ProviderError("no such charge: k-1-secret", status=400), effect=None)
    outcome = virtually(execute(Told([refused]), replace(CHARGE, key="k-1-secret")))
    assert outcome.status == outcomes.FAILED
    assert "k-1-secret" not in outcome.told


def test_a_key_is_one_within_its_tenant_at_the_service_too() -> None:
    async def program() -> list[str]:
        shop, service = Shop(), Told([OK])
        for tenant in ("acme", "globex"):
            operation = replace(CHARGE, key="k-1", tenant=tenant)
            await shop.execute(service, operation, tenant=tenant)
        return [request.tenant for request in service.requests]

    assert virtually(program()) == ["acme", "globex"]


# --- what a service has forgotten


@pytest.mark.parametrize("known", [NOT_THERE, DOWN])
@pytest.mark.parametrize("atomic", [True, False])
def test_what_the_service_has_forgotten_by_now_counts_for_nothing(known: Any, atomic: bool) -> None:
    service = Told([LOST_ANSWER, OK], [known], atomic=atomic, remembers=10.0)
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


def test_a_wait_after_which_the_service_has_forgotten_is_not_slept() -> None:
    policy = replace(POLICY, retry=replace(RETRY, first_wait=20.0))
    service = Told([LOST_ANSWER, OK], [DOWN], atomic=True, remembers=25.0)
    assert statuses(service, policy=policy) == (outcomes.MANUAL, 1, 1)


def test_an_atomic_service_is_not_asked_again_if_it_may_forget_before_it_answers() -> None:
    service = Told([LOST_ANSWER, OK], [DOWN], atomic=True, remembers=20.0)
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


def test_after_a_promised_no_the_memory_counts_anew() -> None:
    service = Told([LOST_REQUEST, LOST_REQUEST, OK], [NOT_THERE], remembers=12.0)
    assert statuses(service) == (outcomes.SUCCEEDED, 3, 1)


@pytest.mark.parametrize("atomic", [True, False])
def test_a_claim_that_is_taken_over_too_late_is_left_to_a_person(atomic: bool) -> None:
    async def program() -> tuple[str, int]:
        shop, service = Shop(), Told([OK], [NOT_THERE], atomic=atomic, remembers=50.0)
        shop.keys.kept[CHARGE.tenant, CHARGE.sent] = claim()
        await asyncio.sleep(60.0)
        return (await shop.execute(service)).status, len(service.requests)

    assert virtually(program()) == (outcomes.MANUAL, 0)


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


def test_a_wait_for_a_try_that_would_cost_too_much_is_not_slept() -> None:
    async def program() -> tuple[str, float]:
        limits = replace(LIMITS, cost=0.25)
        outcome = await execute(Told([REFUSED]), policy=replace(POLICY, cost=0.25), limits=limits)
        return outcome.how.rpartition("; ")[2], asyncio.get_running_loop().time()

    assert virtually(program()) == ("cost", 0.1)


def test_what_is_refused_at_the_door_names_what_ran_out_once() -> None:
    outcome = virtually(execute(Told([OK]), limits=replace(LIMITS, requests=0)))
    assert outcome.how == "budget exhausted: requests"


def test_a_budget_that_runs_out_inside_the_service_says_nothing_of_the_effect() -> None:
    service = Told([Step(BudgetExhausted("requests"))], [DOWN])
    assert statuses(service) == (outcomes.MANUAL, 1, 1)


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
