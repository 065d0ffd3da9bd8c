"""A policy that contradicts itself is refused when it is made, with its field named."""

from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.errors import KINDS, TRANSIENT, PolicyError
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy

WRONG: list[tuple[str, Any]] = [
    ("retry_on", "rate_limit"),
    ("retry_on", None),
    ("retry_on", {"rate_limit", "hiccup"}),
    ("retry_on", {"deadline"}),
    ("retry_on", [429]),
    ("attempts", 0),
    ("attempts", -1),
    ("attempts", 2.5),
    ("attempts", True),
    ("attempts", "3"),
    ("attempts", 10**400),
    ("first_wait", -0.1),
    ("first_wait", float("nan")),
    ("first_wait", float("inf")),
    ("first_wait", 10**400),
    ("factor", 0.5),
    ("factor", -2),
    ("max_wait", 0.5),
    ("max_wait", None),
    ("jitter", -0.1),
    ("jitter", 1.1),
    ("retry_after_cap", -1),
    ("stall", 0),
    ("stall", float("nan")),
    ("stall", 301),
    ("total", 0),
    ("total", -5),
]


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_what_contradicts_itself_is_refused_and_names_the_field(field: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=rf"(^|; ){field}(: | is )"):
        RetryPolicy(**{"retry_on": TRANSIENT, field: value})


def test_each_wrong_field_is_named_at_once() -> None:
    with pytest.raises(PolicyError, match=r"attempts is 0, .*; jitter is 2, "):
        RetryPolicy(retry_on=TRANSIENT, attempts=0, jitter=2)


def test_an_unknown_kind_is_answered_with_the_list() -> None:
    with pytest.raises(PolicyError, match=f"no kind 'x'; there is: {', '.join(KINDS)}"):
        RetryPolicy(retry_on=frozenset({"x"}))


def test_what_to_retry_on_has_no_default() -> None:
    with pytest.raises(TypeError, match="retry_on"):
        RetryPolicy()  # type: ignore[call-arg]


def test_any_collection_of_kinds_will_do_and_none_at_all_too() -> None:
    assert RetryPolicy(retry_on=["stall"]).retry_on == {"stall"}  # type: ignore[arg-type]
    assert RetryPolicy(retry_on=frozenset()).retry_on == set()


def test_the_limits_themselves_are_allowed() -> None:
    RetryPolicy(retry_on=TRANSIENT, attempts=1, first_wait=0, factor=1, max_wait=0, jitter=0)
    RetryPolicy(retry_on=TRANSIENT, jitter=1, retry_after_cap=0, stall=300, attempts=10**9)


# --- how far an executor goes

EXECUTION = ExecutionPolicy(retry=RetryPolicy(retry_on=TRANSIENT))
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
        replace(EXECUTION, **wrong)


def test_a_policy_may_wait_for_nobody_keep_nothing_and_cost_nothing() -> None:
    assert replace(EXECUTION, join=0.0, ttl=0, cost=0.0)
