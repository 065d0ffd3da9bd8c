"""Keys, fingerprints, and what a repeat is answered at the door."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labkit.recovery.idempotency import (
    ASK_PERSON,
    CONFLICT,
    EXECUTE,
    FAILED,
    JOIN,
    LONGEST,
    PENDING,
    RECONCILE,
    REUSE,
    SUCCEEDED,
    UNKNOWN,
    BadOperation,
    KeyRecord,
    Operation,
    checked,
    claimed,
    digest,
    ended,
    enter,
    renewed,
    resolved,
)
from labkit.recovery.service import Request

from .executing import CHARGE, claim


def record(state: str, *, now: float = 0.0, handed_over: bool = False) -> KeyRecord:
    mine = claim(now=now)
    if state == PENDING:
        return mine
    return ended(mine, state, "receipt", now=now, ttl=100.0, handed_over=handed_over)


# --- keys


def test_a_key_names_tenant_operation_and_resource() -> None:
    assert CHARGE.sent == "acme/charge/order-7"


PART = st.text(st.sampled_from("ab/%2F\ud800"), min_size=1, max_size=3)
PARTS = st.tuples(PART, PART, PART)


@given(PARTS, PARTS)
@example(("a/b", "c", "d"), ("a", "b/c", "d"))
@example(("a%2Fb", "c", "d"), ("a/b", "c", "d"))
def test_two_operations_have_one_key_only_if_they_are_the_same(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    keys = [
        Operation(tenant=tenant, name=name, resource=thing).sent
        for tenant, name, thing in (one, other)
    ]
    assert (keys[0] == keys[1]) == (one == other)


def test_the_callers_own_key_goes_out_as_it_is() -> None:
    assert replace(CHARGE, key="k-1").sent == "k-1"


def test_a_digest_tells_tenants_apart_and_not_the_key() -> None:
    assert digest("acme", "k-1") != digest("globex", "k-1")
    assert CHARGE.digest == digest("acme", CHARGE.sent)
    assert "order-7" not in CHARGE.digest
    assert len(CHARGE.digest) == 12


BAD: dict[str, tuple[Operation, str]] = {
    "no resource": (replace(CHARGE, resource=""), "missing_idempotency_key"),
    "no tenant": (replace(CHARGE, tenant=""), "missing_idempotency_key"),
    "no name": (replace(CHARGE, name=""), "missing_idempotency_key"),
    "a key that is no text": (replace(CHARGE, key=7), "missing_idempotency_key"),  # type: ignore[arg-type]
    "a tenant that is no text": (replace(CHARGE, tenant=5), "missing_idempotency_key"),  # type: ignore[arg-type]
    "a payload that is no object": (replace(CHARGE, payload=[1]), "payload_not_canonical"),  # type: ignore[arg-type]
    "no payload": (replace(CHARGE, payload=None), "payload_not_canonical"),  # type: ignore[arg-type]
    "a key of nobody": (replace(CHARGE, tenant="", key="k-1"), "missing_idempotency_key"),
    "no operation": ("charge", "no_operation"),  # type: ignore[dict-item]
    "too long": (replace(CHARGE, key="k" * (LONGEST + 1)), "key_too_long"),
    "not printable": (replace(CHARGE, key="k\0"), "key_not_printable"),
    "half a pair": (replace(CHARGE, key="k\ud800"), "key_not_printable"),
    "nan": (replace(CHARGE, payload={"amount": float("nan")}), "payload_not_canonical"),
    "infinite": (replace(CHARGE, payload={"amount": float("inf")}), "payload_not_canonical"),
    "bytes": (replace(CHARGE, payload={"amount": b"5"}), "payload_not_canonical"),
    "a set": (replace(CHARGE, payload={"of": {1, 2}}), "payload_not_canonical"),
    "a number as a name": (replace(CHARGE, payload={"of": {1: 2}}), "payload_not_canonical"),
    "an object": (replace(CHARGE, payload={"of": object()}), "payload_not_canonical"),
}


@pytest.mark.parametrize("why", BAD)
def test_what_cannot_be_told_apart_is_refused_by_name(why: str) -> None:
    operation, named = BAD[why]
    with pytest.raises(BadOperation, match=f"^{named}: "):
        checked(operation)


def test_a_payload_without_an_end_is_refused_by_name() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(BadOperation, match=r"^payload_not_canonical"):
        checked(replace(CHARGE, payload={"of": endless}))


def test_the_longest_key_is_taken() -> None:
    assert checked(replace(CHARGE, key="k" * LONGEST))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadOperation, match="tenant, resource must be"):
        checked(replace(CHARGE, tenant="", resource=""))


def test_a_record_ends_in_a_state_that_there_is() -> None:
    with pytest.raises(BadOperation, match="no state 'nonsense'; there is: pending"):
        ended(record(PENDING), "nonsense", "", now=1.0, ttl=1.0)


def test_no_repr_shows_a_key() -> None:
    operation = replace(CHARGE, key="k-1-secret")
    mine = claimed(None, operation, "worker-1", now=0.0, length=10.0)
    request = Request(operation.sent, {}, 1, 1, "acme")
    assert "k-1-secret" not in repr((operation, mine, request))


# --- fingerprints

SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 5}, {"a": 5.0}),
    ({"a": 1e3}, {"a": 1000}),
    ({"a": 0}, {"a": -0.0}),
    ({"a": [1.0, {"b": 2, "c": 3}]}, {"a": (1, {"c": 3, "b": 2.0})}),
]
OTHER: list[tuple[Any, Any]] = [
    ({"a": 5}, {"a": 6}),
    ({"a": 5}, {"a": "5"}),
    ({"a": 1}, {"a": True}),
    ({"a": 0}, {"a": None}),
    ({"a": None}, {}),
    ({"a": [1, 2]}, {"a": [2, 1]}),
    ({"a": 10**30 + 1}, {"a": 10**30}),
    ({"a": 0.1}, {"a": 0.1 + 2**-55}),
    ({"a": ""}, {"a": []}),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_payloads_that_mean_the_same_have_one_fingerprint(one: Any, other: Any) -> None:
    assert checked(replace(CHARGE, payload=one)) == checked(replace(CHARGE, payload=other))


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_payloads_that_differ_have_two(one: Any, other: Any) -> None:
    assert checked(replace(CHARGE, payload=one)) != checked(replace(CHARGE, payload=other))


def test_another_operation_under_the_same_key_has_another_fingerprint() -> None:
    one = replace(CHARGE, key="k-1")
    assert checked(one) != checked(replace(one, name="refund"))


# --- at the door

OWN = checked(CHARGE)
DOOR: list[tuple[str, KeyRecord | None, float, str]] = [
    ("nothing is known", None, 0.0, EXECUTE),
    ("it is running", record(PENDING), 9.9, JOIN),
    ("its executor is gone", record(PENDING), 10.0, RECONCILE),
    ("it was done", record(SUCCEEDED), 99.9, REUSE),
    ("it was done, and that is forgotten", record(SUCCEEDED), 100.0, EXECUTE),
    ("it surely was not done", record(FAILED), 1.0, EXECUTE),
    ("it may have been done", record(UNKNOWN), 1.0, RECONCILE),
    ("it may have been done long ago", record(UNKNOWN), 1e9, RECONCILE),
    ("it waits for a person", record(UNKNOWN, handed_over=True), 1e9, ASK_PERSON),
]


@pytest.mark.parametrize(("why", "seen", "now", "answer"), DOOR)
def test_what_is_known_decides_the_answer(
    why: str, seen: KeyRecord | None, now: float, answer: str
) -> None:
    assert enter(seen, OWN, now=now) == answer


@pytest.mark.parametrize("state", [PENDING, SUCCEEDED, FAILED, UNKNOWN])
def test_another_payload_is_a_conflict_in_every_state(state: str) -> None:
    assert enter(record(state), "another", now=1.0) == CONFLICT


def test_what_is_forgotten_conflicts_with_nothing() -> None:
    assert enter(record(SUCCEEDED), "another", now=100.0) == EXECUTE


# --- claims


def test_a_claim_is_pending_with_a_lease_and_the_next_version() -> None:
    mine = claimed(record(FAILED), CHARGE, "worker-2", now=5.0, length=10.0)
    assert mine is not None
    assert (mine.state, mine.version, mine.lease.fence, mine.result) == (PENDING, 3, 2, "")
    assert mine.since == 5.0


def test_nobody_claims_what_another_executes() -> None:
    assert claimed(record(PENDING), CHARGE, "worker-2", now=5.0, length=10.0) is None


@pytest.mark.parametrize("state", [PENDING, UNKNOWN])
def test_a_claim_in_doubt_knows_since_when_it_may_have_been_done(state: str) -> None:
    mine = claimed(record(state), CHARGE, "worker-2", now=50.0, length=10.0)
    assert mine is not None
    assert mine.since == 0.0


def test_a_renewal_keeps_what_is_kept_and_a_lost_claim_has_none() -> None:
    mine = record(PENDING)
    assert renewed(mine, mine, now=5.0) == replace(
        mine, lease=replace(mine.lease, until=15.0), version=2
    )
    taken = claimed(mine, CHARGE, "worker-2", now=10.0, length=10.0)
    assert renewed(taken, mine, now=11.0) is None
    assert renewed(None, mine, now=11.0) is None


def test_what_has_ended_can_be_claimed_at_once() -> None:
    assert claimed(record(UNKNOWN), CHARGE, "worker-2", now=0.0, length=10.0)


@pytest.mark.parametrize("state", [SUCCEEDED, FAILED, UNKNOWN])
def test_nobody_works_on_what_has_ended_whatever_its_times_say(state: str) -> None:
    mine = claimed(record(state, now=5.0), CHARGE, "worker-2", now=1.0, length=10.0)
    assert mine is not None
    assert mine.lease.fence == 2


# --- a person


@pytest.mark.parametrize(("happened", "state"), [(True, SUCCEEDED), (False, FAILED)])
def test_a_person_settles_what_was_handed_over(happened: bool, state: str) -> None:
    waiting = record(UNKNOWN, handed_over=True)
    told = resolved(waiting, happened, "seen in the books", now=50.0, ttl=100.0)
    assert (told.state, told.result, told.handed_over) == (state, "seen in the books", False)
    assert enter(told, OWN, now=51.0) == (REUSE if happened else EXECUTE)


@pytest.mark.parametrize("state", [PENDING, SUCCEEDED, FAILED, UNKNOWN])
def test_a_person_settles_nothing_else(state: str) -> None:
    with pytest.raises(BadOperation, match="waits for no person"):
        resolved(record(state), True, "", now=1.0, ttl=100.0)
