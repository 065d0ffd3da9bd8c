"""Readers that come, go and fall behind: nothing lost, nothing doubled, no silent jump."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from labkit.recovery.event_log import (
    CursorTooOld,
    Entry,
    EventLog,
    ForeignCursor,
    LogClosed,
    frames,
)
from labkit.recovery.sse import SSEDecoder, SSEEvent
from tests.recovery import readers
from tests.simulation.kit import virtually


def filled(count: int, *, keep: int = 100, closed: bool = False) -> EventLog:
    log = EventLog("answer-1", keep=keep)
    for number in range(1, count + 1):
        log.append(f"event {number}")
    if closed:
        log.close()
    return log


async def numbers(entries: AsyncGenerator[Entry | None, None]) -> list[int | None]:
    return [entry.sequence if entry else None async for entry in entries]


def test_a_reader_gets_all_events_after_its_cursor_and_then_the_end() -> None:
    log = filled(5, closed=True)
    assert virtually(numbers(log.follow())) == [1, 2, 3, 4, 5]
    assert virtually(numbers(log.follow("answer-1:3"))) == [4, 5]
    assert virtually(numbers(log.follow("answer-1:5"))) == []


def test_an_event_keeps_its_type_and_its_data() -> None:
    log = EventLog("answer-1")
    assert log.append("Hel", event="text_delta") == 1
    log.close()
    assert virtually(anext_of(log)) == Entry(1, "text_delta", "Hel")


async def anext_of(log: EventLog) -> Entry | None:
    return await anext(log.follow())


@pytest.mark.parametrize("at", range(8))
def test_an_event_that_comes_at_any_step_of_a_reader_is_seen_once_and_in_order(at: int) -> None:
    async def work() -> list[int]:
        log, seen = filled(5), []

        async def read() -> None:
            async with aclosing(log.follow("answer-1:2")) as entries:
                async for entry in entries:
                    assert entry is not None
                    seen.append(entry.sequence)
                    if entry.sequence == 7:
                        return

        reader = asyncio.create_task(read())
        for turn in range(9):
            if turn == at:
                log.append("event 6")
            await asyncio.sleep(0)
        log.append("event 7")
        await reader
        return seen

    assert virtually(work()) == [3, 4, 5, 6, 7]


def test_a_slow_reader_holds_up_neither_the_writer_nor_the_others() -> None:
    async def work() -> tuple[float, list[int | None], list[int]]:
        log, slow = EventLog("answer-1"), []
        clock = asyncio.get_running_loop().time
        quick = asyncio.create_task(numbers(log.follow()))

        async def dawdle() -> None:
            async for entry in log.follow():
                await asyncio.sleep(10)
                assert entry is not None
                slow.append(entry.sequence)

        late = asyncio.create_task(dawdle())
        for number in range(5):
            await asyncio.sleep(1)
            log.append(str(number))
        log.close()
        read = await quick
        done = clock()
        await late
        return done, read, slow

    assert virtually(work()) == (5.0, [1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


# --- cursors that cannot be honoured


@pytest.mark.parametrize(
    "cursor",
    [
        *("answer-2:3", "3", "answer-1", "answer-1:", "answer-1:x", "answer-1:-1", "answer-1:6"),
        *("answer-1:٣", "answer-1:1:2", ":3", " answer-1:3", "answer-1:" + "9" * 9_999),
    ],
    ids=lambda cursor: cursor[:12],
)
def test_a_cursor_that_this_stream_never_gave_out_is_refused_by_name(cursor: str) -> None:
    with pytest.raises(ForeignCursor, match="no cursor of the stream 'answer-1'"):
        filled(5).after(cursor)


def test_a_cursor_that_is_no_text_is_refused_by_name_too() -> None:
    with pytest.raises(ForeignCursor, match="'3' is no cursor of the stream 'answer-1'"):
        filled(5).after(3)  # type: ignore[arg-type]


def test_a_cursor_given_out_is_taken_back() -> None:
    log = filled(5)
    assert [log.after(log.cursor(number)) for number in range(6)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(("cursor", "gone"), [("", 3), ("answer-1:1", 3)])
def test_a_cursor_whose_next_event_is_gone_is_too_old(cursor: str, gone: int) -> None:
    log = filled(5, keep=3, closed=True)
    with pytest.raises(CursorTooOld, match=f"of 'answer-1' before number {gone}"):
        virtually(numbers(log.follow(cursor)))
    assert virtually(numbers(log.follow("answer-1:2"))) == [3, 4, 5]


def test_a_reader_that_falls_too_far_behind_is_told_so_and_skips_nothing() -> None:
    async def work() -> list[int]:
        log, seen = filled(3, keep=3), []
        async with aclosing(log.follow()) as entries:
            async for entry in entries:
                assert entry is not None
                seen.append(entry.sequence)
                if len(seen) == 2:
                    for number in range(4, 8):
                        log.append(f"event {number}")
        return seen

    with pytest.raises(CursorTooOld, match="before number 5"):
        virtually(work())


def test_nothing_is_added_to_a_stream_that_has_ended() -> None:
    with pytest.raises(LogClosed, match="answer-1"):
        filled(1, closed=True).append("more")


def test_a_log_that_keeps_nothing_and_an_idle_time_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="keep"):
        EventLog("answer-1", keep=0)
    for idle in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="idle"):
            virtually(numbers(filled(1).follow(idle=idle)))


# --- on the wire


async def received(log: EventLog, cursor: str, seconds: float) -> list[tuple[float, bytes]]:
    clock = asyncio.get_running_loop().time
    got: list[tuple[float, bytes]] = []
    try:
        async with asyncio.timeout(seconds):
            async for frame in frames(log, cursor):
                got.append((clock(), frame))
    except TimeoutError:
        pass
    return got


def test_an_idle_stream_sends_a_comment_every_15_seconds_and_it_carries_no_id() -> None:
    got = virtually(received(filled(1), "answer-1:1", 60.5))
    assert [at for at, _ in got] == [15, 30, 45, 60]
    decoder = SSEDecoder(last_event_id="answer-1:1")
    for _, frame in got:
        assert b"id" not in frame
        assert decoder.feed(frame) == []
    assert decoder.last_event_id == "answer-1:1"


def test_events_carry_their_cursor_and_the_end_carries_none() -> None:
    got = virtually(received(filled(2, closed=True), "", 1))
    decoder = SSEDecoder()
    events = [event for _, frame in got for event in decoder.feed(frame)]
    assert events == [
        SSEEvent("message", "event 1", "answer-1:1"),
        SSEEvent("message", "event 2", "answer-1:2"),
        SSEEvent("end", "", "answer-1:2"),
    ]
    assert b"id" not in got[-1][1]


def test_a_cancelled_reader_leaves_as_cancelled_and_the_log_goes_on() -> None:
    async def work() -> list[int | None]:
        log = filled(1)
        reader = asyncio.create_task(numbers(log.follow(idle=5)))
        await asyncio.sleep(7)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        log.append("event 2")
        log.close()
        return await numbers(log.follow())

    assert virtually(work()) == [1, 2]


# --- many readers that drop and come back


@pytest.mark.parametrize("events", [40, pytest.param(readers.EVENTS, marks=pytest.mark.slow)])
def test_500_readers_that_drop_and_reconnect_lose_nothing_and_double_nothing(events: int) -> None:
    seen, most = readers.measured(events)
    assert seen == [list(range(events))] * readers.READERS
    assert most < 64 * 1024 * 1024


# --- what wakes and what refuses


def test_a_reader_that_waits_is_woken_by_the_end_of_the_stream() -> None:
    async def work() -> list[int | None]:
        log = filled(1)
        reader = asyncio.create_task(numbers(log.follow()))
        await asyncio.sleep(1)
        log.close()
        async with asyncio.timeout(5):
            return await reader

    assert virtually(work()) == [1]


def test_a_cursor_before_what_is_kept_is_refused_before_anything_is_read() -> None:
    log = filled(5, keep=2)
    assert log.after("answer-1:3") == 3
    for cursor in ("", "answer-1:2"):
        with pytest.raises(CursorTooOld):
            log.after(cursor)
