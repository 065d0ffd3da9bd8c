"""One account for all layers: what it refuses, what it counts, when, and for whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.budget import (
    NOTHING,
    Budget,
    BudgetExhausted,
    BudgetLimits,
    Spent,
    exhausted,
)
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, PolicyError, ProviderError
from labkit.recovery.policy import MOST, RetryPolicy
from labkit.recovery.retry import (
    GIVE_UP,
    NEW_SEGMENT,
    RETRY,
    Decision,
    agreed,
    stream_with_retry,
)
from tests.simulation.kit import virtually

LIMITS = BudgetLimits(requests=10, retries=5, per_tool=4, seconds=60.0, hand_back=2.0, cost=1.0)
POLICY = RetryPolicy(retry_on=TRANSIENT, attempts=4, jitter=0, stall=5.0, total=100.0)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def budget(clock: Any = None, told: list[Any] | None = None, **limits: Any) -> Budget:
    """A budget with these limits, and those of `LIMITS`."""
    given = {name: getattr(LIMITS, name) for name in LIMITS.__slots__} | limits
    seen = [] if told is None else told
    observe = lambda kind, **details: seen.append((kind, details))  # noqa: E731 - short
    return Budget(BudgetLimits(**given), clock=clock or Clock(), observe=observe)


def refusal(made: Budget, cost: float = 0.0) -> str:
    """What ran out, or "" where a request may go out."""
    try:
        made.request(cost)
    except BudgetExhausted as error:
        return error.what
    return ""


# --- limits


@pytest.mark.parametrize("name", LIMITS.__slots__)
@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), 1e10, "5", None, True, b"1"])
def test_a_limit_that_is_no_finite_number_is_refused_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(PolicyError, match=f"^{name} is "):
        BudgetLimits(**{name: wrong})


@pytest.mark.parametrize("name", ["requests", "retries", "per_tool"])
def test_what_is_counted_has_a_whole_number_as_its_limit(name: str) -> None:
    with pytest.raises(PolicyError, match=f"{name} is 1.5"):
        BudgetLimits(**{name: 1.5})


def test_every_wrong_limit_is_named_at_once() -> None:
    with pytest.raises(PolicyError, match=r"requests is -1, .*; cost is nan, "):
        BudgetLimits(requests=-1, cost=float("nan"))


@pytest.mark.parametrize("seconds", [1.0, 0.5, 0])
def test_time_for_handing_back_must_leave_some_for_the_work(seconds: float) -> None:
    with pytest.raises(PolicyError, match=r"hand_back is 1\.0, and must be below seconds"):
        BudgetLimits(seconds=seconds, hand_back=1.0)


def test_limits_may_be_as_large_as_those_of_a_policy() -> None:
    whole = int(MOST)
    assert BudgetLimits(requests=whole, retries=whole, per_tool=whole, seconds=MOST, cost=MOST)


# --- the decision


@pytest.mark.parametrize(
    ("asked", "short"),
    [
        ({}, ""),
        ({"remaining": 0.0}, "seconds"),
        ({"wait": 9.9}, ""),
        ({"wait": 10.0}, "seconds"),
        ({"spent": Spent(requests=10)}, "requests"),
        ({"spent": Spent(requests=9)}, ""),
        ({"spent": Spent(retries=5)}, ""),
        ({"spent": Spent(retries=5), "retry": True}, "retries"),
        ({"spent": Spent(retries=4), "retry": True}, ""),
        ({"of_tool": 4}, "per_tool"),
        ({"of_tool": 3}, ""),
        ({"spent": Spent(cost=0.5), "cost": 0.5}, ""),
        ({"spent": Spent(cost=0.5), "cost": 0.6}, "cost"),
        ({"spent": Spent(cost=0.1 + 0.1 + 0.7), "cost": 0.1}, ""),
        ({"spent": Spent(cost=0.5), "cost": 0.5001}, "cost"),
        ({"spent": Spent(requests=10, retries=5), "retry": True, "remaining": 0.0}, "seconds"),
        ({"spent": Spent(requests=10, retries=5), "retry": True}, "requests"),
    ],
)
def test_one_more_request_is_refused_by_the_first_limit_that_it_would_pass(
    asked: dict[str, Any], short: str
) -> None:
    usual: dict[str, Any] = {"spent": NOTHING, "of_tool": 0, "remaining": 10.0}
    given = usual | asked
    assert exhausted(given.pop("spent"), LIMITS, **given) == short


# --- the account


def test_requests_are_counted_one_by_one_and_the_next_one_is_refused_by_name() -> None:
    made = budget(requests=2)
    assert [refusal(made) for _ in range(4)] == ["", "", "requests", "requests"]
    assert made.used == {"run": Spent(requests=2)}


def test_a_refusal_is_definite_since_nothing_was_sent() -> None:
    with pytest.raises(BudgetExhausted, match="budget exhausted: requests") as caught:
        budget(requests=0).request()
    assert isinstance(caught.value, ProviderError)
    assert (caught.value.kind, caught.value.definite) == ("limit", True)


def test_a_retry_is_counted_before_its_wait_so_that_those_who_wait_count_too() -> None:
    made = budget(retries=2)
    assert [made.retry(1.0), made.retry(2.5), made.retry(0.5)] == ["", "", "retries"]
    assert made.used == {"run": Spent(retries=2, waited=3.5)}


def test_a_retry_is_refused_when_there_is_no_request_left_for_it() -> None:
    made = budget(requests=1)
    made.request()
    assert made.retry() == "requests"


def test_a_budget_refuses_what_makes_no_sense_by_name() -> None:
    with pytest.raises(PolicyError, match="a budget is made from BudgetLimits"):
        Budget(5, clock=lambda: 0.0)  # type: ignore[arg-type]
    made = budget()
    for wrong in ("x", float("nan"), -1.0, True):
        with pytest.raises(PolicyError, match="wait is a number from 0"):
            made.retry(wrong)  # type: ignore[arg-type]
        with pytest.raises(PolicyError, match="cost is a number from 0"):
            made.request(wrong)  # type: ignore[arg-type]
    for name in ("", "a/b", None):
        with pytest.raises(PolicyError, match="a layer has a name without '/'"):
            made.within(name)  # type: ignore[arg-type]
    assert made.used == {}


def test_what_costs_more_than_is_left_is_refused_and_not_charged() -> None:
    made = budget(cost=1.0)
    assert [refusal(made, 0.6), refusal(made, 0.5), refusal(made, 0.4)] == ["", "cost", ""]
    assert made.retry(0.0, 0.1) == "cost"
    assert made.used["run"].cost == 1.0


def test_each_payment_is_told_with_its_layer() -> None:
    told: list[Any] = []
    made = budget(told=told)
    made.within("node").request()
    made.retry(1.0)
    assert told == [
        ("spent", {"layer": "run/node", "what": "request"}),
        ("spent", {"layer": "run", "what": "retry"}),
    ]


# --- layers


def test_layers_draw_on_one_account_and_each_can_say_what_it_used() -> None:
    made = budget(requests=3)
    node = made.within("node")
    charge, mail = node.within("charge", tool="charge"), node.within("mail", tool="mail")
    short = [refusal(layer) for layer in (charge, mail, charge, mail, node, made)]
    assert short == ["", "", "", *["requests"] * 3]
    assert mail.used == {
        "run": Spent(requests=3),
        "run/node": Spent(requests=3),
        "run/node/charge": Spent(requests=2),
        "run/node/mail": Spent(requests=1),
    }


def test_a_report_is_a_copy_that_nobody_can_change_the_account_by() -> None:
    made = budget()
    made.request()
    made.used.clear()
    assert made.used == {"run": Spent(requests=1)}


def test_one_tool_has_its_own_limit_and_others_are_not_charged_for_it() -> None:
    made = budget(per_tool=1)
    charge, mail = made.within("tool", tool="charge"), made.within("tool", tool="mail")
    assert [refusal(charge), refusal(charge), charge.retry()] == ["", "per_tool", "per_tool"]
    assert [refusal(mail), refusal(made), refusal(made)] == ["", "", ""]
    assert refusal(made.within("node").within("again", tool="charge")) == "per_tool"


def test_what_a_tool_asks_through_inner_layers_counts_for_the_tool() -> None:
    made = budget(per_tool=2)
    inner = made.within("tool", tool="charge").within("sdk")
    assert [refusal(inner), refusal(inner), refusal(inner)] == ["", "", "per_tool"]


def test_a_tool_within_a_tool_belongs_to_the_outer_one_and_hands_back_once() -> None:
    outer = budget(per_tool=1).within("tool", tool="charge")
    inner = outer.within("again", tool="mail")
    assert (inner.tool, inner.deadline) == ("charge", outer.deadline)
    assert [refusal(inner), refusal(outer)] == ["", "per_tool"]


# --- time


def test_the_deadline_counts_from_the_moment_when_the_run_was_accepted() -> None:
    clock = Clock()
    clock.now = 100.0
    made = budget(clock)
    clock.now = 150.0  # it has stood in a queue
    assert (made.deadline, made.remaining) == (160.0, 10.0)
    assert [made.retry(10.0), made.retry(9.0), refusal(made)] == ["seconds", "", ""]
    clock.now = 160.0
    assert (made.remaining, refusal(made), made.retry()) == (0.0, "seconds", "seconds")
    clock.now = 1000.0
    assert made.remaining == 0.0


def test_a_tool_ends_early_enough_to_hand_its_result_back() -> None:
    clock = Clock()
    made = budget(clock)
    tool = made.within("tool", tool="charge")
    assert (made.deadline, made.within("node").deadline, tool.deadline) == (60.0, 60.0, 58.0)
    clock.now = 58.0
    assert (refusal(tool), refusal(made)) == ("seconds", "")


def test_a_wait_that_is_refused_is_not_counted() -> None:
    made = budget()
    assert made.retry(60.0) == "seconds"
    assert made.used == {}


PAYMENTS = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "b"]),
        st.sampled_from(["request", "retry"]),
        st.floats(0, 3),
        st.floats(0, 0.4),
    ),
    max_size=60,
)


@given(PAYMENTS)
def test_no_order_of_payments_passes_a_limit_and_the_run_is_the_sum_of_all(payments: Any) -> None:
    made = budget()
    layers = {name: made.within(name or "model", tool=name) for name in ("", "a", "b")}
    for name, kind, wait, cost in payments:
        if kind == "retry":
            layers[name].retry(wait, cost)
        else:
            refusal(layers[name], cost)
    used = made.used
    run = used.get("run", NOTHING)
    assert (run.requests <= 10, run.retries <= 5, run.cost <= 1.0) == (True, True, True)
    assert all(used.get(f"run/{name}", NOTHING).requests <= 4 for name in "ab")
    inner = [spent for path, spent in used.items() if path != "run"]
    assert run.requests == sum(spent.requests for spent in inner)
    assert run.retries == sum(spent.retries for spent in inner)
    assert run.waited == pytest.approx(sum(spent.waited for spent in inner))


# --- a stream that is tried again on it


class Played:
    """What came of `streams` at once, on one budget, against a provider that says `script`."""

    def __init__(self, *script: Any, streams: int = 1, policy: RetryPolicy = POLICY, **limits: Any):
        self.script, self.requests = list(script), list[float]()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.errors: list[Any] = virtually(self._all(streams, policy, limits))

    async def _all(self, streams: int, policy: RetryPolicy, limits: Any) -> list[Any]:
        self.clock = asyncio.get_running_loop().time
        self.budget = budget(self.clock, **limits)
        work = (self._one(policy) for _ in range(streams))
        return await asyncio.gather(*work, return_exceptions=True)

    async def _one(self, policy: RetryPolicy) -> None:
        pieces = stream_with_retry(
            self.open,
            policy=policy,
            random=Random(0),
            observe=lambda kind, **details: self.told.append((kind, details)),
            budget=self.budget.within("model"),
        )
        async with aclosing(pieces):
            async for _ in pieces:
                pass

    async def open(self, attempt: int) -> AsyncGenerator[Delta, None]:
        self.requests.append(self.clock())
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(answer, float):
            await asyncio.sleep(answer)
        elif isinstance(answer, Exception):
            raise answer
        yield Delta("finish", reason="stop")

    def kinds(self, kind: str) -> list[dict[str, Any]]:
        return [details for told, details in self.told if told == kind]


def down() -> ProviderError:
    return ProviderError("down", status=503)


def notes(error: Any) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_each_attempt_pays_at_the_door_and_each_retry_before_its_wait() -> None:
    played = Played(down(), down(), 0.5)
    assert (played.errors, len(played.requests)) == ([None], 3)
    assert played.budget.used["run/model"] == Spent(requests=3, retries=2, waited=3.0)


@pytest.mark.parametrize(
    ("limits", "requests", "short"),
    [({"requests": 2}, 2, "requests"), ({"retries": 2}, 3, "retries"), ({"retries": 0}, 1, "")],
)
def test_the_last_error_leaves_unwrapped_with_a_note_of_what_ran_out(
    limits: Any, requests: int, short: str
) -> None:
    last = down()
    played = Played(*(down() for _ in range(requests - 1)), last, **limits)
    assert played.errors == [last]
    assert notes(last) == [f"gave up after attempt {requests} of 4: {short or 'retries'}"]
    assert last.__cause__ is None
    assert played.kinds("decision")[-1]["reason"] == (short or "retries")


def test_nothing_is_sent_where_not_even_the_first_request_is_allowed() -> None:
    played = Played(down(), requests=0)
    assert (played.requests, played.kinds("attempt")) == ([], [])
    assert [type(error) for error in played.errors] == [BudgetExhausted]
    assert notes(played.errors[0]) == ["gave up before attempt 1 of 4: requests"]


def test_whoever_waited_while_others_used_up_the_requests_leaves_with_its_own_last_error() -> None:
    played = Played(down(), streams=3, requests=4)
    assert len(played.requests) == 4
    assert [(error.status, error.kind) for error in played.errors] == [(503, "overloaded")] * 3
    told = [line for error in played.errors for line in notes(error)]
    assert "gave up before attempt 2 of 4: requests" in told


def test_a_refusal_from_a_layer_inside_leaves_as_the_last_real_error() -> None:
    last = down()
    played = Played(last, BudgetExhausted("cost"))
    assert played.errors == [last]
    assert notes(last) == ["gave up before attempt 2 of 4: cost"]


def test_the_nearer_deadline_is_the_one_that_counts() -> None:
    near = Played(50.0, policy=POLICY, seconds=4.0)
    assert (near.errors[0].kind, near.kinds("decision")[0]["reason"]) == ("deadline", "deadline")
    far = Played(50.0, policy=RetryPolicy(retry_on=TRANSIENT, stall=3.0, total=3.0), seconds=60.0)
    assert far.errors[0].kind == "deadline"


def test_a_backoff_that_would_pass_the_budgets_deadline_is_not_slept() -> None:
    played = Played(down(), seconds=3.0)
    assert played.requests == [0.0, 1.0]  # the next would wait until 3.0
    assert notes(played.errors[0]) == ["gave up after attempt 2 of 4: deadline"]


def test_without_a_budget_nothing_is_counted_and_the_policy_alone_decides() -> None:
    error = down()

    async def alone() -> None:
        async def fails(attempt: int) -> AsyncGenerator[Delta, None]:
            raise error
            yield

        async for _ in stream_with_retry(fails, policy=POLICY, random=Random(0)):
            pass

    with pytest.raises(ProviderError):
        virtually(alone())
    assert notes(error) == ["gave up after attempt 4 of 4: attempts"]


def test_three_requests_of_a_tenth_fit_into_three_tenths_and_a_fourth_does_not() -> None:
    made = budget(cost=0.3)  # 0.1 + 0.1 + 0.1 is 0.30000000000000004
    assert [refusal(made, 0.1) for _ in range(4)] == ["", "", "", "cost"]


@pytest.mark.parametrize("action", [RETRY, NEW_SEGMENT])
def test_whatever_a_retry_begins_with_it_is_paid_for(action: str) -> None:
    made = budget(retries=1)
    again = Decision(action=action, reason="backoff", wait=2.0)
    assert agreed(again, made) is again
    assert made.used["run"] == Spent(retries=1, waited=2.0)
    assert agreed(again, made) == Decision(action=GIVE_UP, reason="retries")
    assert made.used["run"].retries == 1
