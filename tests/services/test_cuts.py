"""Each fault on the way out, against decoder and record: nothing lost, doubled or spliced."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from labkit.providers.wire import Dropped
from labkit.recovery.event_log import EventLog, frames
from labkit.recovery.sse import encode_comment
from labkit.services.cuts import KINDS, Cut, cut
from tests.services.reading import Reader
from tests.simulation.kit import virtually

PIECES = ["It ", "was ", "sent ", "on ", "Mon", "day. 猫👩‍💻 ", "مرحبا"]
WHOLE = "".join(PIECES)


def filled() -> EventLog:
    log = EventLog("answer-1.a")
    log.append(json.dumps({"state": "generating"}), event="status")
    for piece in PIECES:
        log.append(json.dumps({"text": piece}, ensure_ascii=False), event="text_delta")
    log.append(json.dumps({"state": "done"}), event="status")
    log.close()
    return log


def read(*plan: Cut) -> Reader:
    """What a reader makes of connections with these faults, and of whole ones after them."""
    log, reader, faults = filled(), Reader(), iter(plan)

    def connect(cursor: str) -> AsyncGenerator[bytes, None]:
        return cut(frames(log, cursor), next(faults, Cut()))

    virtually(reader.read(connect))
    return reader


async def three() -> AsyncGenerator[bytes, None]:
    for frame in (b"one\n\n", b"two\n\n", b"three\n\n"):
        yield frame


def sent(fault: Cut) -> list[bytes]:
    """The bytes that go out of three frames; a reset is told as "reset"."""

    async def work() -> list[bytes]:
        out = []
        try:
            async with aclosing(cut(three(), fault)) as pieces:
                async for piece in pieces:
                    out.append(piece)
        except Dropped:
            out.append(b"reset")
        return out

    return virtually(work())


@pytest.mark.parametrize("after", range(11))
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_cut_the_text_is_there_once_and_whole(kind: str, after: int) -> None:
    reader = read(Cut(kind, after))
    assert (reader.record.text, reader.ended) == (WHOLE, True)
    assert reader.record.next_sequence == len(PIECES) + 2


@pytest.mark.parametrize("second", KINDS)
@pytest.mark.parametrize("first", KINDS)
def test_one_fault_after_another_on_each_connection_is_no_worse(first: str, second: str) -> None:
    reader = read(Cut(first, 2), Cut(second, 1), Cut(first, 1), Cut(second))
    assert (reader.record.text, reader.ended) == (WHOLE, True)


@pytest.mark.parametrize(
    ("kind", "connections", "duplicates", "gaps"),
    [
        ("whole", 1, 0, 0),
        ("mid_frame", 2, 0, 0),
        ("between", 2, 0, 0),
        ("clean_end", 2, 0, 0),
        ("drip", 1, 0, 0),
        ("twice", 1, 1, 0),
        ("swapped", 2, 0, 1),
    ],
)
def test_each_fault_really_strikes(kind: str, connections: int, duplicates: int, gaps: int) -> None:
    reader = read(Cut(kind, 3))
    told = (reader.connections, reader.duplicates, reader.gaps)
    assert told == (connections, duplicates, gaps)


def test_what_goes_out_is_what_the_fault_says() -> None:
    assert sent(Cut()) == [b"one\n\n", b"two\n\n", b"three\n\n"]
    assert sent(Cut("mid_frame", 1)) == [b"one\n\n", b"tw", b"reset"]
    assert sent(Cut("between", 2)) == [b"one\n\n", b"two\n\n", b"reset"]
    assert sent(Cut("clean_end", 1)) == [b"one\n\n"]
    assert sent(Cut("twice", 1)) == [b"one\n\n", b"two\n\ntwo\n\n", b"three\n\n"]
    assert sent(Cut("swapped", 0)) == [b"two\n\none\n\n", b"three\n\n"]
    assert sent(Cut("swapped", 2))[-1] == b"three\n\n"  # with nothing to change places with
    assert sent(Cut("drip", 2))[2:] == [bytes([byte]) for byte in b"three\n\n"]


def test_a_comment_is_no_frame_to_count() -> None:
    async def work() -> list[bytes]:
        async def alive() -> AsyncGenerator[bytes, None]:
            for _ in range(3):
                yield encode_comment("alive")
            yield b"one\n\n"
            yield b"two\n\n"

        return [piece async for piece in cut(alive(), Cut("clean_end", 1))]

    assert virtually(work())[3:] == [b"one\n\n"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_are_closed_when_the_reader_leaves(kind: str) -> None:
    closed = []

    async def endless() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield b"one\n\n"
        finally:
            closed.append(True)

    async def work() -> None:
        async with aclosing(cut(endless(), Cut(kind, 2))) as pieces:
            await anext(pieces)

    virtually(work())
    assert closed == [True]


@pytest.mark.parametrize(("kind", "after"), [("half", 0), ("whole", -1)])
def test_a_senseless_cut_is_refused(kind: str, after: int) -> None:
    with pytest.raises(ValueError, match=r"there is: whole, mid_frame|frames from 0"):
        Cut(kind, after)
