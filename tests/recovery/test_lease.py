"""Leases: one holder at a time, a fence that rises, and a clock that may be set back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.lease import Lease, bounded, claim, expired, is_held_by, release, renew

HELD = Lease("a", 3, until=10.0, length=10.0)


def test_a_first_claim_has_fence_1_and_its_whole_length() -> None:
    assert claim(None, "a", now=5.0, length=10.0) == Lease("a", 1, 15.0, 10.0)


def test_nobody_else_gets_a_lease_that_lasts() -> None:
    assert claim(HELD, "b", now=9.999, length=10.0) is None


def test_a_lease_ends_at_its_very_time_and_the_next_holder_has_a_higher_fence() -> None:
    assert claim(HELD, "b", now=10.0, length=4.0) == Lease("b", 4, 14.0, 4.0)


def test_the_holders_own_second_claim_keeps_its_fence() -> None:
    assert claim(HELD, "a", now=9.0, length=10.0) == Lease("a", 3, 19.0, 10.0)


def test_the_holders_own_second_claim_has_the_length_that_it_asks_for() -> None:
    assert claim(HELD, "a", now=9.0, length=4.0) == Lease("a", 3, 13.0, 4.0)


def test_the_old_holder_is_a_new_one_once_its_lease_has_ended() -> None:
    found = claim(HELD, "a", now=10.0, length=10.0)
    assert found is not None
    assert found.fence == 4


def test_a_renewal_gives_the_whole_length_from_now() -> None:
    assert renew(HELD, HELD, now=4.0) == Lease("a", 3, 14.0, 10.0)


def test_a_lease_that_has_ended_and_that_nobody_took_can_be_renewed() -> None:
    assert renew(HELD, HELD, now=50.0) == Lease("a", 3, 60.0, 10.0)


def test_a_lost_lease_cannot_be_renewed() -> None:
    taken = claim(HELD, "b", now=10.0, length=10.0)
    assert renew(taken, HELD, now=11.0) is None
    assert renew(None, HELD, now=11.0) is None


def test_the_same_owner_with_an_older_fence_holds_nothing() -> None:
    again = claim(HELD, "a", now=10.0, length=10.0)
    assert not is_held_by(again, HELD)


def test_a_released_lease_is_anybodys_and_its_fence_goes_on() -> None:
    free = release(HELD, now=2.0)
    assert expired(free, 2.0)
    found = claim(free, "b", now=2.0, length=10.0)
    assert found is not None
    assert found.fence == 4


def test_a_lease_is_cut_to_its_length_where_the_clock_was_set_back() -> None:
    assert bounded(HELD, now=-3_600.0).until == -3_590.0
    assert bounded(HELD, now=1.0) == HELD


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 30)), max_size=30))
def test_whatever_the_order_of_claims_there_is_one_holder_and_no_fence_comes_twice(
    claims: list[tuple[str, float]],
) -> None:
    held, now = None, 0.0
    holders: dict[int, str] = {}
    for owner, later in claims:
        now += later
        found = claim(held, owner, now=now, length=10.0)
        if found is None:
            assert held is not None
            assert held.owner != owner
            assert now < held.until
            continue
        assert holders.setdefault(found.fence, owner) == owner
        assert held is None or found.fence >= held.fence
        held = found


def test_a_lease_that_has_ended_is_not_made_longer_when_it_is_cut() -> None:
    assert bounded(HELD, now=25.0) == HELD
