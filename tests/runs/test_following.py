"""Readers of a run's events: live and stored without a seam, each event once, to the end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery.event_log import ForeignCursor, frames
from labkit.recovery.run_states import UnknownRun
from labkit.recovery.sse import SSEDecoder
from labkit.recovery.stream.record import Owner
from labkit.runs.following import RunLog, number_of
from labkit.runs.record import AgentRun, BadRun
from labkit.runs.tables import EVENTS
from labkit.stores.errors import StoreDown

from .kit import ANN, BOB, COUNTED, Floor, Line, on_floor
from .storing import changed

DELTA = 0.01
NONE: Any = None


async def read(log: RunLog, cursor: str = "", most: int = 1000) -> list[int]:
    """The numbers of at most so many events after `cursor`."""
    seen: list[int] = []
    async with aclosing(log.follow(cursor)) as entries:
        async for entry in entries:
            assert entry is not None
            seen.append(entry.sequence)
            if len(seen) == most:
                break
    return seen


async def done(floor: Floor) -> AgentRun:
    """A run that is completed; it has six events."""
    floor.worker("a")
    return await floor.until(await floor.submit())


async def long(floor: Floor, events: int) -> AgentRun:
    """A run that has so many events, and is running."""
    run = await floor.submit()
    held = await floor.store.claim("w", length=1e6, run_id=run.run_id)
    for number in range(events - 2):
        assert held is not None
        held = await floor.store.step(held, {"node": "n"}, checkpoint=number)
    return run


def test_all_events_after_any_cursor_are_read_and_then_the_end() -> None:
    async def program(floor: Floor) -> None:
        run = await done(floor)
        log = RunLog(floor.store, run.run_id, ANN)
        for last in range(7):
            cursor = log.cursor(last) if last else ""
            assert await read(log, cursor) == list(range(last + 1, 7))
        assert await read(log, "0") == [1, 2, 3, 4, 5, 6]

    on_floor(program)


def test_an_event_has_its_type_and_its_data() -> None:
    async def program(floor: Floor) -> list[Any]:
        run = await done(floor)
        log = RunLog(floor.store, run.run_id, ANN)
        return [entry async for entry in log.follow("2")]

    step, *_, last = on_floor(program)
    assert step == (3, "node_finished", '{"node": "count", "number": 0}')
    assert last[:2] == (6, "run_completed")


def test_events_that_come_are_read_as_they_come() -> None:
    async def program(floor: Floor) -> list[float]:
        floor.worker("a")
        run = await floor.submit("count", 2.0)
        times = []
        async for entry in RunLog(floor.store, run.run_id, ANN).follow():
            assert entry is not None
            times.append(round(floor.clock(), 1))
        return times

    assert on_floor(program) == [0.0, 0.0, 2.0, 4.0, 6.1, 6.1]


def test_a_reader_that_hears_no_news_looks_now_and_then() -> None:
    async def program(floor: Floor) -> tuple[list[int], float]:
        floor.worker("a", deaf=True)
        run = await floor.submit("count", 2.0)
        return await read(RunLog(floor.store, run.run_id, ANN, look=0.5)), floor.clock()

    seen, ended = on_floor(program)
    assert seen == [1, 2, 3, 4, 5, 6]
    assert ended < 2.0 + 6.2 + 0.6


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("away", [0.0, 0.7, 3.0])
def test_a_reader_that_is_cut_off_after_any_event_and_comes_back_sees_each_once(
    most: int, away: float
) -> None:
    async def program(floor: Floor) -> list[int]:
        floor.worker("a")
        run = await floor.submit()
        seen: list[int] = []
        while True:
            log = RunLog(floor.store, run.run_id, ANN)
            new = await read(log, log.cursor(seen[-1]) if seen else "", most)
            if not new:
                return seen
            seen += new
            await asyncio.sleep(away)

    assert on_floor(program) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("at", range(24))
def test_an_event_that_is_written_at_any_step_of_a_reader_is_seen_once(at: int) -> None:
    async def program(floor: Floor) -> tuple[list[int], float]:
        run = await long(floor, 3)
        held = await floor.store.claim("w", length=1e6, run_id=run.run_id)
        assert held is not None
        store = floor.store.through(Line(seconds=DELTA))
        store.news = floor.store.news
        log = RunLog(store, run.run_id, ANN, look=1e5)
        reading = asyncio.create_task(read(log))
        await asyncio.sleep(at * DELTA / 4)
        held = await floor.store.step(held, {"node": "n"}, checkpoint=1)
        await floor.store.finish(held, None)
        return await reading, floor.clock()

    seen, ended = on_floor(program)
    assert seen == [1, 2, 3, 4, 5]
    assert ended < 1.0, "a change was missed"


def test_more_events_than_fit_into_one_answer_are_all_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def program(floor: Floor) -> None:
        run = await long(floor, 40)
        asked: list[int] = []
        events = floor.store.events

        async def few(*of: Any, after: int = 0) -> Any:
            asked.append(after)
            return await events(*of, after=after, most=7)

        monkeypatch.setattr(floor.store, "events", few)
        log = RunLog(floor.store, run.run_id, ANN)
        reading = asyncio.create_task(read(log))
        await floor.at(5.0)
        await floor.store.cancel(run.run_id, ANN)
        assert await reading == list(range(1, 42))
        assert asked[:6] == [0, 7, 14, 21, 28, 35]
        assert await read(log) == list(range(1, 42))  # of one that has ended, too

    on_floor(program)


# --- where it ends


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
def test_a_stream_ends_where_the_run_does_with_all_events_read(end: str) -> None:
    async def program(floor: Floor) -> None:
        run = await long(floor, 3)
        held = await floor.store.claim("w", length=1e6, run_id=run.run_id)
        assert held is not None
        reading = asyncio.create_task(read(RunLog(floor.store, run.run_id, ANN)))
        await floor.at(3.0)
        assert not reading.done()
        if end == "completed":
            await floor.store.finish(held, None)
        elif end == "failed":
            await floor.store.fail(held, "CODE", "why")
        else:
            await floor.store.cancel(run.run_id, ANN)
        assert await reading == [1, 2, 3, 4]
        assert floor.clock() == 3.0

    on_floor(program)


def test_a_stream_does_not_end_where_a_question_waits() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit("ask")
        reading = asyncio.create_task(read(RunLog(floor.store, run.run_id, ANN)))
        await floor.at(100.0)
        assert not reading.done()
        await floor.store.answer(run.run_id, ANN, "three")
        assert await reading == list(range(1, 9))
        assert (await floor.types(run))[3:6] == ["awaiting_input", "input_received", "run_started"]

    on_floor(program)


def test_after_a_retry_a_reader_comes_back_with_its_cursor() -> None:
    async def program(floor: Floor) -> None:
        run = await long(floor, 3)
        held = await floor.store.claim("w", length=1e6, run_id=run.run_id)
        assert held is not None
        await floor.store.fail(held, "CODE", "why")
        log = RunLog(floor.store, run.run_id, ANN)
        assert await read(log) == [1, 2, 3, 4]
        assert await read(log, "4") == []
        await floor.store.retry(run.run_id, ANN)
        reading = asyncio.create_task(read(log, "4"))
        floor.worker("a")
        assert await reading == [5, 6, 7, 8, 9]
        assert (await floor.types(run))[3:5] == ["run_failed", "run_started"]

    on_floor(program)


# --- on the wire


def test_a_quiet_stream_has_heartbeats_that_move_no_cursor() -> None:
    async def program(floor: Floor) -> tuple[str, list[Any]]:
        floor.worker("a")
        run = await floor.submit("count", 40.0)
        wire = b""
        async for frame in frames(RunLog(floor.store, run.run_id, ANN), "1", heartbeat=15.0):
            wire += frame
        return wire.decode(), SSEDecoder().feed(wire)

    wire, events = on_floor(program)
    assert 6 <= wire.count(": alive") <= 9
    assert [event.event for event in events] == [*COUNTED[1:], "end"]
    assert wire.count("id: ") == 5


def test_a_heartbeat_comes_after_that_much_silence_whatever_others_do() -> None:
    async def program(floor: Floor) -> list[float]:
        run = await long(floor, 2)
        beats: list[float] = []

        async def noise() -> None:
            while True:
                await asyncio.sleep(0.3)
                floor.store.news.wake()

        noisy = asyncio.create_task(noise())
        async with aclosing(RunLog(floor.store, run.run_id, ANN).follow("2", idle=2.0)) as entries:
            async for entry in entries:
                assert entry is None
                beats.append(floor.clock())
                if len(beats) == 3:
                    break
        noisy.cancel()
        return beats

    beats = on_floor(program)
    assert [round(beat) for beat in beats] == [2, 4, 6]


def test_the_silence_before_a_heartbeat_begins_at_the_last_event() -> None:
    async def program(floor: Floor) -> list[tuple[float, bool]]:
        run = await long(floor, 2)
        held = await floor.store.claim("w", length=1e6, run_id=run.run_id)
        assert held is not None
        came: list[tuple[float, bool]] = []

        async def follow() -> None:
            async for entry in RunLog(floor.store, run.run_id, ANN).follow("2", idle=5.0):
                came.append((round(floor.clock()), entry is None))

        following = asyncio.create_task(follow())
        await floor.at(3.0)
        await floor.store.step(held, {"node": "n"}, checkpoint=1)
        await floor.at(9.0)
        await floor.store.cancel(run.run_id, ANN)
        await following
        return came

    assert on_floor(program) == [(3, False), (8, True), (9, False)]


# --- what is looked at


def noted(floor: Floor, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the store is asked for, from now on."""
    asked: list[str] = []

    def note(name: str) -> None:
        real = getattr(floor.store, name)

        async def noting(*of: Any, **how: Any) -> Any:
            asked.append(name)
            assert len(asked) < 100, "it does not wait"
            return await real(*of, **how)

        monkeypatch.setattr(floor.store, name, noting)

    note("get")
    note("events")
    return asked


def test_a_reader_asks_for_events_only_where_there_are_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def program(floor: Floor) -> None:
        run = await long(floor, 3)
        asked = noted(floor, monkeypatch)
        reading = asyncio.create_task(read(RunLog(floor.store, run.run_id, ANN)))
        await floor.at(5.5)
        assert asked == ["get", "events", *["get"] * 5]
        reading.cancel()

    on_floor(program)


def test_a_reader_is_not_woken_by_other_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program(floor: Floor) -> None:
        mine, other = await long(floor, 3), await long(floor, 3)
        held = await floor.store.claim("w", length=1e6, run_id=other.run_id)
        reading = asyncio.create_task(read(RunLog(floor.store, mine.run_id, ANN, look=1e5)))
        await floor.at(1.0)
        asked = noted(floor, monkeypatch)
        for number in range(10):
            assert held is not None
            held = await floor.store.step(held, {"node": "n"}, checkpoint=number)
        await floor.at(2.0)
        assert asked == []
        await floor.store.cancel(mine.run_id, ANN)
        assert await reading == [1, 2, 3, 4]

    on_floor(program)


@pytest.mark.parametrize("gone", [1, 3])
def test_a_reader_whose_events_are_gone_waits_for_others_and_ends_with_the_run(
    gone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program(floor: Floor) -> None:
        run = await long(floor, 3)
        changed(floor.store, sa.delete(EVENTS).where(EVENTS.c.seq >= gone))
        asked = noted(floor, monkeypatch)
        reading = asyncio.create_task(read(RunLog(floor.store, run.run_id, ANN)))
        await floor.at(5.5)
        assert len(asked) < 20
        await floor.store.cancel(run.run_id, ANN)
        assert await reading == [*range(1, gone), 4]
        changed(floor.store, sa.delete(EVENTS))
        assert await read(RunLog(floor.store, run.run_id, ANN)) == []

    on_floor(program)


# --- bad readers


@pytest.mark.parametrize(
    "cursor",
    [
        "abc",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1_0",
        "٣",
        "²",
        "1.0",
        "9" * 20,
        "9" * 5000,
        "7",
        "\0",
        "run-01:1",
    ],
)
def test_a_cursor_that_this_run_never_gave_out_is_refused(cursor: str) -> None:
    async def program(floor: Floor) -> None:
        run = await done(floor)
        with pytest.raises(ForeignCursor) as refused:
            await read(RunLog(floor.store, run.run_id, ANN), cursor)
        assert len(str(refused.value)) < 150

    on_floor(program)


@pytest.mark.parametrize("cursor", ["", "1", "99"])
def test_a_wrong_owner_and_an_unknown_run_get_the_same_answer(cursor: str) -> None:
    async def program(floor: Floor) -> list[str]:
        run = await done(floor)
        told = []
        for run_id, owner in (
            (run.run_id, BOB),
            (run.run_id, Owner("ann", "other")),
            ("no-such", ANN),
        ):
            with pytest.raises(UnknownRun) as refused:
                await read(RunLog(floor.store, run_id, owner), cursor)
            told.append(str(refused.value).replace(run_id, "ID"))
        return told

    assert len(set(on_floor(program))) == 1


def test_a_reader_that_is_slow_or_closed_holds_up_nobody_and_stops_no_run() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit()

        async def slow() -> list[int]:
            seen = []
            async for entry in RunLog(floor.store, run.run_id, ANN).follow():
                assert entry is not None
                seen.append(entry.sequence)
                await asyncio.sleep(50.0)
            return seen

        slowly = asyncio.create_task(slow())
        closed = asyncio.create_task(read(RunLog(floor.store, run.run_id, ANN)))
        await floor.at(1.5)
        closed.cancel()
        quick = await read(RunLog(floor.store, run.run_id, ANN))
        assert (quick, floor.clock() < 3.5) == ([1, 2, 3, 4, 5, 6], True)
        assert (await floor.get(run)).status == "completed"
        assert await slowly == [1, 2, 3, 4, 5, 6]
        waiting = floor.store.news._waiting
        assert len(waiting) == 1, "a reader that has left still waits"  # the worker does

    on_floor(program)


def test_a_reader_whose_store_is_gone_leaves_and_comes_back_with_its_cursor() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit()
        store = floor.store.through(Line((1.5, 9.0)))
        seen: list[int] = []
        downs = 0
        while True:
            try:
                log = RunLog(store, run.run_id, ANN)
                new = await read(log, log.cursor(seen[-1]) if seen else "", 1)
            except StoreDown:
                downs += 1
                await asyncio.sleep(1.0)
                continue
            if not new:
                break
            seen += new
        assert (seen, downs > 0) == ([1, 2, 3, 4, 5, 6], True)

    on_floor(program)


@pytest.mark.parametrize("look", [0, -1.0, None, "1", True, float("nan")])
def test_a_look_that_is_no_time_is_refused_at_once(look: Any) -> None:
    with pytest.raises(BadRun, match=r"^look is .*, and must be a number of seconds above 0$"):
        RunLog(NONE, "run-1", ANN, look=look)


def test_whose_run_is_followed_is_asked_for_at_once() -> None:
    with pytest.raises(BadRun, match=r"^owner is 'ann', and must be the Owner"):
        RunLog(NONE, "run-1", "ann")  # type: ignore[arg-type]
    with pytest.raises(BadRun, match=r"^run_id is None, and must be a text$"):
        RunLog(NONE, NONE, ANN)


@pytest.mark.parametrize("cursor", [3, None, 0, False, b"3"])
def test_a_cursor_that_is_no_text_is_refused_by_name(cursor: Any) -> None:
    with pytest.raises(ForeignCursor, match="is no number of an event, as a text"):
        number_of(cursor)
