"""The decision after a failure: a table by kind, then each rule on its own."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labkit.recovery.errors import KINDS, TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import Decision, backoff, decide

POLICY = RetryPolicy(retry_on=TRANSIENT, jitter=0)


def decided(error: ProviderError, **but: Any) -> Decision:
    inputs: dict[str, Any] = {
        "attempt": 1,
        "visible": False,
        "segments": False,
        "remaining": 300.0,
        "now": 0.0,
        "policy": POLICY,
        "random": Random(0),
    }
    return decide(error, **inputs | but)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("visible", [False, True])
def test_what_is_done_hangs_on_the_kind_and_on_what_was_seen(
    kind: str, segments: bool, visible: bool
) -> None:
    decision = decided(ProviderError("words", kind=kind), visible=visible, segments=segments)
    if visible:
        expected = "new_segment" if (kind, segments) == ("stall", True) else "give_up"
    else:
        expected = "retry" if kind in TRANSIENT else "give_up"
    assert decision.action == expected


@pytest.mark.parametrize("kind", sorted(TRANSIENT))
def test_only_what_the_caller_chose_is_tried_again(kind: str) -> None:
    error = ProviderError("words", kind=kind)
    only = replace(POLICY, retry_on=frozenset({kind}))
    but = replace(POLICY, retry_on=TRANSIENT - {kind})
    assert decided(error, policy=only).action == "retry"
    assert decided(error, policy=but) == Decision(
        action="give_up", reason=f"{kind} is not in retry_on"
    )


def test_a_stall_that_the_caller_left_out_opens_no_segment() -> None:
    policy = replace(POLICY, retry_on=TRANSIENT - {"stall"})
    stall = ProviderError("words", kind="stall")
    assert decided(stall, visible=True, segments=True, policy=policy).action == "give_up"


def test_the_last_attempt_opens_no_segment() -> None:
    stall = ProviderError("words", kind="stall")
    decision = decided(stall, visible=True, segments=True, attempt=4)
    assert decision == Decision(action="give_up", reason="attempts")


def test_the_deadline_gives_up_even_where_every_kind_is_tried_again() -> None:
    policy = replace(POLICY, retry_on=frozenset(KINDS) - {"deadline"})
    error = ProviderError("words", kind="deadline")
    assert decided(error, policy=policy) == Decision(action="give_up", reason="deadline")


@pytest.mark.parametrize(("attempt", "action"), [(1, "retry"), (3, "retry"), (4, "give_up")])
def test_the_first_attempt_counts_as_one(attempt: int, action: str) -> None:
    assert decided(ProviderError("words", status=503), attempt=attempt).action == action


def test_retry_after_beats_the_backoff_whether_it_is_longer_or_shorter() -> None:
    for asked in (0.0, 0.25, 119.5, 120.0):
        error = ProviderError("words", status=429, headers={"retry-after": str(asked)})
        expected = Decision(action="retry", reason="retry-after", wait=asked)
        assert decided(error) == expected


def test_above_the_cap_it_is_given_up_and_never_tried_earlier_than_asked() -> None:
    error = ProviderError("words", status=429, headers={"retry-after": "120.5"})
    assert decided(error) == Decision(action="give_up", reason="retry-after above the cap")


@pytest.mark.parametrize(
    ("remaining", "action"), [(1.001, "retry"), (1.0, "give_up"), (0.0, "give_up")]
)
def test_a_wait_that_reaches_the_deadline_is_not_slept(remaining: float, action: str) -> None:
    assert decided(ProviderError("words", status=503), remaining=remaining).action == action


def test_a_date_in_the_header_is_counted_from_now() -> None:
    error = ProviderError(
        "words", status=429, headers={"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}
    )
    assert decided(error, now=20.0).wait == 40


@example(
    message="connection timeout",
    kind="auth",
    visible=False,
    segments=False,
    attempt=1,
    remaining=99.0,
    seed=0,
)
@given(
    message=st.text() | st.sampled_from(["429", "quota", "connection timeout", "retry after 3s"]),
    kind=st.sampled_from(sorted(KINDS)),
    visible=st.booleans(),
    segments=st.booleans(),
    attempt=st.integers(1, 5),
    remaining=st.floats(0, 400),
    seed=st.integers(),
)
def test_the_decision_is_the_same_whatever_the_message_says(
    message: str, kind: str, seed: int, **inputs: Any
) -> None:
    said, silent = (
        decided(ProviderError(text, kind=kind), random=Random(seed), **inputs)
        for text in (message, "")
    )
    assert said == silent


def test_the_backoff_doubles_and_stops_at_its_cap() -> None:
    waits = [backoff(n, policy=POLICY, random=Random(0)) for n in range(1, 8)]
    assert waits == [1, 2, 4, 8, 16, 30, 30]


@given(
    attempt=st.integers(1, 10**400),
    first_wait=st.floats(0, 30) | st.integers(0, 30),
    factor=st.floats(1, 1e9) | st.integers(1, 10**9),
    jitter=st.floats(0, 1),
    seed=st.integers(),
)
def test_a_backoff_stays_inside_its_bounds_however_many_attempts_there_were(
    attempt: int, first_wait: float, factor: float, jitter: float, seed: int
) -> None:
    policy = replace(POLICY, first_wait=first_wait, factor=factor, jitter=jitter)
    whole = backoff(attempt, policy=replace(policy, jitter=0), random=Random(seed))
    wait = backoff(attempt, policy=policy, random=Random(seed))
    assert whole * (1 - jitter) <= wait <= whole <= 30
    assert whole >= first_wait


def test_jitter_spreads_the_waits_and_the_same_seed_gives_the_same_ones() -> None:
    policy = replace(POLICY, jitter=0.5)
    random, again = Random(7), Random(7)
    waits = [backoff(1, policy=policy, random=random) for _ in range(50)]
    assert waits == [backoff(1, policy=policy, random=again) for _ in range(50)]
    assert len(set(waits)) == 50
    assert max(waits) - min(waits) > 0.4


def test_without_a_first_wait_there_is_none_after_any_attempt() -> None:
    policy = replace(POLICY, first_wait=0)
    assert backoff(10**6, policy=policy, random=Random(0)) == 0
