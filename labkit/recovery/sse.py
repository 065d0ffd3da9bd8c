"""Server-sent events: bytes in, events out, as the WHATWG standard says.

Only CR, LF and CRLF end a line, wherever the bytes are cut. An event leaves at the blank line that
ends it; one that is unfinished when the stream ends was never sent, and its id does not count. An
id stays until another comes, so `last_event_id` is where a reader goes on after a cut.

    decoder = SSEDecoder()
    decoder.feed(b"id: 7\\ndata: Hel")     # []
    decoder.feed(b"lo\\n\\n")              # [SSEEvent(event='message', data='Hello', id='7')]

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html, sections 9.2.5 and 9.2.6.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from .errors import RecoveryError

MOST_BYTES: Final = 4 * 1024 * 1024  # of one event: what a reader keeps in memory at most
_MARK: Final = b"\xef\xbb\xbf"  # a byte order mark, allowed before the first line
_LONGEST_WAIT: Final = 10**12  # milliseconds


class SSEError(RecoveryError, ValueError):
    """A frame that cannot be sent, or a decoder used after its end: the message says which."""


class EventTooLong(SSEError):
    """An event has outgrown the limit: end the connection. `events` came before it in the chunk."""

    def __init__(self, limit: int, events: list["SSEEvent"]) -> None:
        super().__init__(f"one event of more than {limit:,} bytes: end this connection")
        self.events = events


class SSEEvent(NamedTuple):
    """One event: its type, its data, and the last id by then. A named tuple, for its speed."""

    event: str
    data: str
    id: str


class SSEDecoder:
    """Decodes one connection's bytes.

    `last_event_id`: where an earlier connection stopped; afterwards, the id of the last finished
    block. `retry_ms`: the wait before a new connection that the server asked for, in milliseconds.
    `limit`: the bytes that one event may have.
    """

    def __init__(self, *, last_event_id: str = "", limit: int = MOST_BYTES) -> None:
        self.last_event_id = last_event_id
        self.retry_ms: int | None = None
        self._limit = limit
        self._line = bytearray()  # the beginning of a line whose end has not come yet
        self._after_cr = False  # an LF that comes now belongs to that CR
        self._at_start = True
        self._closed = False
        self._id = last_event_id
        self._event = ""
        self._data: list[bytes] = []
        self._size = 0  # bytes of its lines of data

    def feed(self, chunk: bytes) -> list[SSEEvent]:
        """The events that `chunk` completes. Raises `EventTooLong`, or `SSEError` after the end."""
        if self._closed:
            raise SSEError("this decoder is closed: make a new one for a new connection")
        if not isinstance(chunk, bytes):
            raise SSEError(f"a decoder takes bytes as they come, not {type(chunk).__name__}")
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        if not chunk:
            return []
        lines = chunk.splitlines()  # of bytes: at CR, LF and CRLF, and nowhere else
        ended = chunk.endswith((b"\r", b"\n"))
        self._after_cr = chunk.endswith(b"\r")
        self._line += lines[0]
        if len(lines) == 1 and not ended:
            events = []
        else:
            lines[0] = self._without_mark(bytes(self._line))
            self._line = bytearray(b"" if ended else lines.pop())
            events = self._take(lines)
        if self._size + len(self._line) > self._limit:
            raise self._too_long(events)
        return events

    def close(self) -> list[SSEEvent]:
        """The stream has ended. Always []: an event without its blank line was never sent."""
        self._closed = True
        return []

    def _take(self, lines: Iterable[bytes]) -> list[SSEEvent]:
        events: list[SSEEvent] = []
        for line in lines:
            if not line:
                self._end_block(events)
                continue
            if self._size + len(line) > self._limit:
                raise self._too_long(events)
            name, _, value = line.partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if name == b"data":
                self._data.append(value)
                self._size += len(line)
            elif name:  # a line that begins with a colon is a comment
                self._field(name, value)
        return events

    def _field(self, name: bytes, value: bytes) -> None:
        if name == b"event":
            self._event = _text(value)
        elif name == b"id" and b"\0" not in value:
            self._id = _text(value)
        elif name == b"retry" and value.isdigit():
            digits = value.lstrip(b"0")[: len(str(_LONGEST_WAIT))]
            self.retry_ms = min(int(digits or b"0"), _LONGEST_WAIT)

    def _end_block(self, events: list[SSEEvent]) -> None:
        """A blank line: the id counts now, and what has data is an event."""
        self.last_event_id = self._id
        if self._data:
            data = _text(b"\n".join(self._data))
            events.append(SSEEvent(self._event or "message", data, self._id))
            self._data = []
        self._event = ""
        self._size = 0

    def _without_mark(self, line: bytes) -> bytes:
        if self._at_start:
            self._at_start = False
            return line.removeprefix(_MARK)
        return line

    def _too_long(self, events: list[SSEEvent]) -> EventTooLong:
        self._closed = True
        self._line.clear()
        self._data.clear()
        return EventTooLong(self._limit, events)


def encode_event(
    data: str,
    *,
    event: str | None = None,
    id: str | None = None,  # noqa: A002 - the field's own name
    retry: int | None = None,
) -> bytes:
    """The bytes of one event.

    Each line of `data` becomes a line of its own; a CR in it arrives as LF, since the format has no
    other way. `retry` is in milliseconds. Raises `SSEError` for an `event` or `id` with a line end,
    an id with NUL, a `retry` that is no whole number from 0, and text that is not Unicode.
    """
    if not isinstance(data, str):
        raise SSEError(f"data is {data!r}, and must be a text: json.dumps makes one of a value")
    lines = [f"data: {line}" for line in _lines(data)]
    if retry is not None:
        if isinstance(retry, bool) or not isinstance(retry, int) or retry < 0:
            raise SSEError(f"retry is {retry!r}, and must be milliseconds: a whole number from 0")
        lines.insert(0, f"retry: {retry}")
    if event is not None:
        lines.insert(0, f"event: {_one_line('event', event)}")
    if id is not None:
        if "\0" in id:
            raise SSEError(f"id is {id!r}, and a reader ignores an id with NUL")
        lines.insert(0, f"id: {_one_line('id', id)}")
    try:
        return "\n".join([*lines, "", ""]).encode()
    except UnicodeEncodeError as error:
        raise SSEError(f"half a character cannot be sent: {error.reason}") from None


def encode_comment(text: str = "") -> bytes:
    """The bytes of a comment: a sign of life that is no event and moves no id."""
    return f": {_one_line('comment', text)}\n\n".encode()


def _one_line(what: str, text: str) -> str:
    if "\r" in text or "\n" in text:
        raise SSEError(f"{what} is {text!r}: a line end in it would begin another field")
    return text


def _lines(data: str) -> list[str]:
    return data.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
