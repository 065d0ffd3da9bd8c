"""The decoder against the standard's own examples, another reading of it, and every cut."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from labkit.recovery.sse import (
    EventTooLong,
    SSEDecoder,
    SSEError,
    SSEEvent,
    encode_comment,
    encode_event,
)

GOLDEN = sorted((Path(__file__).parents[2] / "data" / "golden").glob("*.sse"))
Decoded = tuple[list[SSEEvent], str, int | None]


def decode(*chunks: bytes) -> Decoded:
    decoder = SSEDecoder()
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [*events, *decoder.close()], decoder.last_event_id, decoder.retry_ms


def by_the_letter(stream: bytes) -> Decoded:
    """The same, as the standard puts it: decode all, cut into lines, look at each."""
    text = stream.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = re.split(r"\r\n|\r|\n", text)[:-1]  # what has no line end is not looked at
    events, id_now, last, kind, data, retry = [], "", "", "", "", None
    for line in lines:
        if line == "":
            last = id_now
            if data != "":
                events.append(SSEEvent(kind or "message", data.removesuffix("\n"), last))
            kind, data = "", ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data += value + "\n"
        elif name == "id" and "\0" not in value:
            id_now = value
        elif name == "retry" and re.fullmatch("[0-9]+", value):
            retry = int(value)
    return events, last, retry


def cuts(stream: bytes) -> Iterable[tuple[bytes, ...]]:
    yield tuple(stream[at : at + 1] for at in range(len(stream)))
    for at in range(len(stream) + 1):
        yield stream[:at], stream[at:]
        yield stream[:at], b"", stream[at:]


def messages(*data: str, after: str = "") -> list[SSEEvent]:
    return [SSEEvent("message", text, after) for text in data]


# --- the examples of the standard, section 9.2.6 ("Interpreting an event stream") and 9.2.1

STANDARD: dict[str, tuple[bytes, list[SSEEvent]]] = {
    "two lines of data make one event": (
        b"data: YHOO\ndata: +2\ndata: 10\n\n",
        messages("YHOO\n+2\n10"),
    ),
    "four blocks: a comment, an id, an id taken back, and a last one unfinished": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
        [*messages("first event", after="1"), *messages("second event")],
    ),
    "four blocks with the end of the last": (
        b": test stream\n\ndata: first event\nid: 1\n\n"
        b"data:second event\nid\n\ndata:  third event\n\n",
        [*messages("first event", after="1"), *messages("second event", " third event")],
    ),
    "an empty line of data is an event, two are a line end, and an unfinished one is nothing": (
        b"data\n\ndata\ndata\n\ndata:",
        messages("", "\n"),
    ),
    "one space after the colon is ignored": (b"data:test\n\ndata: test\n\n", messages("test") * 2),
    "events of a type of their own": (
        b"event: add\ndata: 73857293\n\nevent: remove\ndata: 2153\n\nevent: add\ndata: 113411\n\n",
        [
            SSEEvent("add", "73857293", ""),
            SSEEvent("remove", "2153", ""),
            SSEEvent("add", "113411", ""),
        ],
    ),
}


@pytest.mark.parametrize("name", STANDARD)
def test_the_standards_own_examples_come_out_as_it_says_at_every_cut(name: str) -> None:
    stream, events = STANDARD[name]
    assert by_the_letter(stream)[0] == events
    for chunks in cuts(stream):
        assert decode(*chunks)[0] == events


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_capture_decodes_to_the_same_events_at_every_two_way_cut(path: Path) -> None:
    stream = path.read_bytes()
    whole = by_the_letter(stream)
    assert whole[0]
    for chunks in cuts(stream):
        assert decode(*chunks) == whole


FIELDS = [
    *(b"data: ", b"data:", b"data", b"id: ", b"id:", b"id", b"event: ", b"event:", b"retry: "),
    *(b": ", b":", b"", b"x: ", b"Data: ", b"\xef\xbb\xbf", b"\xef\xbb\xbfdata: "),
]
VALUES = [
    *(b"", b" ", b"x", b"7", b":", b"\0", b"\xff", b"\xe2\x80", b"\xf0\x9f\x99\x82", b"\x0c\x1e"),
    *("é".encode(), "\u2028".encode(), "\u0085".encode()),
]
ENDS = [b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b"\n\r\n", b""]


def made_up(random: Random) -> bytes:
    """A stream of fields, junk and all kinds of line ends."""
    lines = [
        random.choice(FIELDS) + b"".join(random.choices(VALUES, k=2)) + random.choice(ENDS)
        for _ in range(random.randrange(1, 12))
    ]
    return b"".join(lines)


@pytest.mark.parametrize("seed", range(40))
def test_made_up_streams_decode_as_by_the_letter_however_they_are_cut(seed: int) -> None:
    random, events = Random(seed), 0
    for _ in range(50):
        stream = made_up(random)
        at = sorted(random.randrange(len(stream) + 1) for _ in range(4))
        chunks = [stream[one:two] for one, two in zip([0, *at], [*at, None], strict=True)]
        assert decode(*chunks) == by_the_letter(stream), stream
        events += len(decode(stream)[0])
    assert events > 20  # else the streams say too little


def test_a_byte_order_mark_counts_only_at_the_very_beginning() -> None:
    mark = b"\xef\xbb\xbf"
    assert decode(mark[:1], mark[1:] + b"data: a\n\n")[0] == messages("a")
    assert decode(mark * 2 + b"data: a\n\n")[0] == []
    assert decode(b"\n" + mark + b"data: a\n\n")[0] == []


def test_a_new_decoder_takes_the_last_id_over_from_the_connection_before() -> None:
    decoder = SSEDecoder(last_event_id="7")
    assert decoder.feed(b"data: a\n\nid: 8\n\ndata: b\n\n") == [
        SSEEvent("message", "a", "7"),
        SSEEvent("message", "b", "8"),
    ]
    assert decoder.last_event_id == "8"


def test_an_id_counts_when_its_block_ends_and_not_before() -> None:
    decoder = SSEDecoder(last_event_id="7")
    decoder.feed(b"id: 8\ndata: a\n")
    assert decoder.last_event_id == "7"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "8"


def test_a_wait_of_any_number_of_digits_is_a_number() -> None:
    assert decode(b"retry: " + b"0" * 5_000 + b"12\n\n")[2] == 12
    assert decode(b"retry: " + b"9" * 5_000 + b"\n\n")[2] == 10**12


# --- bounded memory


LIMIT = 64


@pytest.mark.parametrize(
    "block",
    [b"data: " + b"x" * LIMIT, b"data\n" * LIMIT, b": " + b"x" * LIMIT, b"x" * (LIMIT + 1)],
    ids=["one line", "many lines", "a comment", "no field at all"],
)
def test_an_event_beyond_the_limit_is_refused_at_any_cut_and_what_came_before_is_not_lost(
    block: bytes,
) -> None:
    stream = b"id: 1\ndata: first\n\n" + block + b"\n\n"
    for chunks in cuts(stream):
        decoder = SSEDecoder(limit=LIMIT)
        events: list[SSEEvent] = []
        with pytest.raises(EventTooLong, match="64 bytes") as caught:
            events.extend(event for chunk in chunks for event in decoder.feed(chunk))
        assert [*events, *caught.value.events] == messages("first", after="1")
        assert decoder.last_event_id == "1"
        with pytest.raises(SSEError, match="new connection"):
            decoder.feed(b"")


def test_a_line_that_never_ends_is_refused_as_soon_as_it_is_too_long() -> None:
    decoder = SSEDecoder(limit=LIMIT)
    assert decoder.feed(b"x" * LIMIT) == []
    with pytest.raises(EventTooLong):
        decoder.feed(b"x")


def test_a_stream_of_many_events_or_comments_never_reaches_the_limit() -> None:
    decoder = SSEDecoder(limit=LIMIT)
    assert decoder.feed(b"data: 0123456789\n\n" * 50) == messages("0123456789") * 50
    assert decoder.feed(b": sign of life\n" * 50) == []
    assert decoder.feed(b"data: a\n\n") == messages("a")


# --- what is sent


@pytest.mark.parametrize(
    "data",
    ["", " ", " a", "a\nb", "\n", "a\n", "a\n\nb", ": none", "data: x", "日本🙂\u2028\u0085\0"],
)
def test_what_is_encoded_comes_out_again(data: str) -> None:
    frame = encode_event(data, event="delta", id="s:7", retry=250)
    assert decode(frame) == ([SSEEvent("delta", data, "s:7")], "s:7", 250)
    assert decode(encode_event(data)) == (messages(data), "", None)


@pytest.mark.parametrize("end", ["\r", "\r\n"])
def test_a_line_end_in_the_data_arrives_as_one_line_feed_and_injects_nothing(end: str) -> None:
    frame = encode_event(f"a{end}id: 9{end}{end}event: x")
    assert decode(frame) == (messages("a\nid: 9\n\nevent: x"), "", None)


BAD: dict[str, tuple[Callable[[], bytes], str]] = {
    "an event with a line end": (lambda: encode_event("", event="a\ndata: b"), "another field"),
    "an id with a line end": (lambda: encode_event("", id="7\r"), "another field"),
    "an id with NUL": (lambda: encode_event("", id="7\0"), "NUL"),
    "a comment with a line end": (lambda: encode_comment("a\n\ndata: b"), "another field"),
    "half a character": (lambda: encode_event("\ud83d"), "half a character"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_would_inject_a_field_is_refused(name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(SSEError, match=message):
        make()


@pytest.mark.parametrize("retry", [-1, 1.5, True, "250"])
def test_a_wait_that_is_no_whole_number_is_refused(retry: Any) -> None:
    with pytest.raises(SSEError, match="milliseconds"):
        encode_event("", retry=retry)


def test_a_comment_is_no_event_and_moves_no_id() -> None:
    assert decode(b"id: 7\ndata: a\n\n", encode_comment("alive"), encode_comment()) == (
        messages("a", after="7"),
        "7",
        None,
    )
