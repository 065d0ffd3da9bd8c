"""What is taken in of one stream: its held back end, its characters, its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from labkit.recovery.stream import RecoveryLimits, StreamEvent, StreamRequest, StreamRun

from .playing import CALLS, DROP, FINISH, call, play, say


def test_text_held_back_at_the_joint_comes_out_at_the_finish() -> None:
    played = play([[say("open the doo"), DROP], [say("the"), FINISH]], can_continue=True)
    assert played.shown == played.record.text == "open the doothe"
    assert played.record.status == "completed"


def test_the_limit_of_characters_counts_all_pieces_of_a_continuation() -> None:
    pieces = [say("01234"), say("56789"), say("ABCDE"), say("never"), FINISH]
    limits = RecoveryLimits(characters=10)
    played = play([[say("It was "), DROP], pieces], can_continue=True, limits=limits)
    assert (played.record.status, played.record.text) == ("failed", "It was 0123456789ABCDE")


def test_as_many_characters_as_the_limit_says_are_allowed() -> None:
    limits = RecoveryLimits(characters=5)
    attempts = [[say("It was "), DROP], [say("sent."), FINISH]]
    played = play(attempts, can_continue=True, limits=limits)
    assert (played.record.status, played.record.text) == ("completed", "It was sent.")


def test_the_time_limit_ends_events_that_are_resumed_too() -> None:
    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        for number in range(run.next_sequence, 30):
            await asyncio.sleep(4)
            yield StreamEvent(number, text_delta="x")

    limits = RecoveryLimits(seconds=10)
    played = play([[say("It was "), DROP]], resume=resume, limits=limits)
    assert (played.record.status, played.record.text) == ("failed", "It was xx")
    assert played.run.time == pytest.approx(10.0)


# --- segments


def test_text_of_an_earlier_segment_is_no_part_of_the_draft_that_is_joined() -> None:
    attempts = [
        [say("Ha"), DROP],
        [call("{}"), CALLS],
        [say("Ha"), DROP],
        [say("HaHa!"), FINISH],
    ]
    request = StreamRequest("Laugh.", tools=("create_ticket",))
    played = play(attempts, request=request, can_continue=True)
    assert (played.record.status, played.record.text) == ("completed", "HaHaHa!")
    assert played.shown == "Ha|HaHaHa!"


def test_a_segment_into_which_no_text_came_is_not_closed() -> None:
    played = play([[say("Ha"), DROP], [DROP], [say("Haha"), FINISH]])
    assert played.shown == "Ha|Haha"
