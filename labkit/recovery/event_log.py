"""A stream's events, numbered, for readers that come and go.

Readers share one list and each keeps its own place in it: replay and live are the same walk, so
that there is no seam at which an event could be lost or doubled, and a slow reader holds up nobody.
A cursor names the stream as well as the number. One that cannot be honoured, because it is too old,
ahead, or another stream's, is an error that says so; there is never a silent jump.

    log = EventLog("answer-1")
    log.append("Hel")                            # 1
    async for entry in log.follow("answer-1:1"):
        ...                                      # 2, 3, ... as they come, until log.close()
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from .errors import RecoveryError
from .sse import encode_comment, encode_event

KEEP: Final = 10_000  # events
HEARTBEAT: Final = 15.0  # seconds


class CursorError(RecoveryError, ValueError):
    """The reader cannot go on from its cursor: begin again without one."""


class CursorTooOld(CursorError):
    """Events after the cursor are not kept any more: begin again without it."""


class ForeignCursor(CursorError):
    """The cursor is not one that this stream gave out."""


class LogClosed(RecoveryError):
    """The stream has ended: nothing can be added."""


class Entry(NamedTuple):
    """One event of a log: its number, counted from 1, its type and its data."""

    sequence: int
    event: str
    data: str


class EventLog:
    """One stream's events; the last `keep` of them can be replayed."""

    def __init__(self, name: str, *, keep: int = KEEP) -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep!r}, and must be at least 1 event")
        self.name = name
        self.last = 0  # the number of the newest event
        self.closed = False
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._news = asyncio.Event()

    def append(self, data: str, *, event: str = "message") -> int:
        """Add an event and return its number; who waits for it is woken."""
        if self.closed:
            raise LogClosed(f"the stream {self.name!r} has ended")
        self.last += 1
        self._entries.append(Entry(self.last, event, data))
        self._wake()
        return self.last

    def close(self) -> None:
        """Nothing more will come; readers end when they have read all."""
        self.closed = True
        self._wake()

    def cursor(self, sequence: int) -> str:
        """What a reader sends as `Last-Event-ID` when it has seen the event of that number."""
        return f"{self.name}:{sequence}"

    def after(self, cursor: str) -> int:
        """The number that `cursor` stands for; "" is the beginning, 0.

        Raises `ForeignCursor` for what this stream never gave out, `CursorTooOld` for what it no
        longer keeps.
        """
        name, _, number = str(cursor).rpartition(":")
        digits = number.isascii() and number.isdigit() and len(number) < 20
        if cursor and not (name == self.name and digits and int(number) <= self.last):
            raise ForeignCursor(f"{str(cursor)[:60]!r} is no cursor of the stream {self.name!r}")
        sequence = int(number) if cursor else 0
        self._refuse_a_jump(sequence)
        return sequence

    async def follow(
        self, cursor: str = "", *, idle: float | None = None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield the events after `cursor`, then those to come, until the log is closed.

        None stands for `idle` seconds without one. Raises as `after` does; also later, when a
        reader was so slow that its next event is gone. A cancel ends the wait and leaves.
        """
        if idle is not None and not idle > 0:
            raise ValueError(f"idle is {idle!r}, and must be above 0 seconds")
        seen = self.after(cursor)
        while True:
            while seen < self.last:
                self._refuse_a_jump(seen)
                entry = self._entries[seen - self.last]  # counted from the end
                yield entry
                seen = entry.sequence
            if self.closed:
                return
            news = self._news  # no await since `last` was read, so nothing can slip in between
            try:
                async with asyncio.timeout(idle):
                    await news.wait()
            except TimeoutError:
                yield None

    def _refuse_a_jump(self, seen: int) -> None:
        oldest = self.last - len(self._entries) + 1
        if seen < oldest - 1:
            gone = f"the events of {self.name!r} before number {oldest} are not kept any more"
            raise CursorTooOld(f"{gone}: begin again from the record of the answer")

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Followed(Protocol):
    """What has events to follow: a log in memory, or one in a database."""

    def cursor(self, sequence: int) -> str:
        """What a reader sends as `Last-Event-ID` when it has seen the event of that number."""
        ...

    def follow(
        self, cursor: str = "", *, idle: float | None = None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield the events after `cursor`, then those to come, and None where it is quiet."""
        ...


async def frames(
    log: Followed, cursor: str = "", *, heartbeat: float = HEARTBEAT
) -> AsyncGenerator[bytes, None]:
    """The log on the wire: its events with their cursors as ids, then `event: end`.

    Heartbeats and the end carry no id, so that they never move a reader's cursor.
    """
    async with aclosing(log.follow(cursor, idle=heartbeat)) as entries:
        async for entry in entries:
            if entry is None:
                yield encode_comment("alive")
            else:
                at = log.cursor(entry.sequence)
                yield encode_event(entry.data, event=entry.event, id=at)
    yield encode_event("", event="end")
