"""Going on by hand begins afresh: nothing that was used up before counts any more."""

from __future__ import annotations

from labkit.recovery.stream import RecoveryLimits

from .playing import DROP, FINISH, play, say


def test_the_page_is_told_what_broke_now_and_not_what_broke_before() -> None:
    none = RecoveryLimits(recoveries=0)
    failed = play([[say("It was "), DROP]], can_continue=True, limits=none)
    stalls = [[{"stall": True}]]
    again = play(stalls, played=failed, by_hand=True, can_continue=True, limits=none)
    assert [told["code"] for told in again.told("error")] == ["disconnect", "stall"]


def test_characters_that_were_continued_before_do_not_count() -> None:
    limits = RecoveryLimits(characters=10)
    long = [say("0123456789 "), FINISH]
    failed = play([[say("It was "), DROP], long], can_continue=True, limits=limits)
    assert failed.record.status == "failed"
    attempts = [[say("more "), DROP], [say("text."), FINISH]]
    again = play(attempts, played=failed, by_hand=True, can_continue=True, limits=limits)
    assert (again.record.status, again.record.text) == (
        "completed",
        "It was 0123456789 more text.",
    )


def test_the_time_before_does_not_count() -> None:
    limits = RecoveryLimits(seconds=10)
    failed = play([[say("It was "), DROP], [DROP], [DROP]], can_continue=True, limits=limits)
    assert failed.record.status == "failed"
    slow = [[say("x", 4.0)] * 5 + [FINISH]]
    again = play(slow, played=failed, by_hand=True, can_continue=True, limits=limits)
    assert (again.record.status, again.record.text) == ("completed", "It was xxxxx")
