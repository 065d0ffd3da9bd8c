"""The events of a run as a stream that many may read, for as long as each likes.

Rules: a reader has a place, and the place is free again however the reader goes; a store that is
gone for a while costs time, and no reader an event; the run goes on whoever reads.

    EventStream(RunLog(store, run_id, owner), "3", owner, places, heartbeat=15.0)
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from labkit.recovery.event_log import Entry, Followed, frames
from labkit.recovery.stream.record import Owner
from labkit.stores.errors import StoreDown

from ..following import LOOK
from .refusals import TooManyStreams

RETRY: Final = b"retry: 1000\n\n"  # milliseconds: when a browser comes back after a cut
_HEADERS: Final = {
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # or a proxy may gather events
}


class Places:
    """How many streams may be open at a time: `per_user`, and on this server in all."""

    def __init__(self, *, per_user: int = 6, per_server: int = 200) -> None:
        self._per_user = per_user
        self._per_server = per_server
        self._taken: Counter[Owner] = Counter()

    @contextmanager
    def one(self, owner: Owner) -> Iterator[None]:
        """A place for as long as the block lasts. Raises `TooManyStreams`."""
        if self._taken[owner] >= self._per_user:
            raise TooManyStreams("you read as many streams of events as you may: close one")
        if self._taken.total() >= self._per_server:
            raise TooManyStreams("all places for readers of events are taken: come back later")
        self._taken[owner] += 1
        try:
            yield
        finally:
            self._taken -= Counter([owner])


class Patient:
    """A log whose store may be gone for a while: its readers wait, and lose no event."""

    def __init__(self, log: Followed) -> None:
        self._log = log

    def cursor(self, sequence: int) -> str:
        """As the log's."""
        return self._log.cursor(sequence)

    async def follow(
        self, cursor: str = "", *, idle: float | None = None
    ) -> AsyncGenerator[Entry | None, None]:
        """As the log's, again and again; None also stands for a store that is gone."""
        while True:
            try:
                async with aclosing(self._log.follow(cursor, idle=idle)) as entries:
                    async for entry in entries:
                        yield entry
                        cursor = self.cursor(entry.sequence) if entry else cursor
                return
            except StoreDown:
                await asyncio.sleep(LOOK)
            yield None


class EventStream(StreamingResponse):
    """The events after `cursor`, then those to come, until the run has ended or the reader goes."""

    media_type = "text/event-stream"

    def __init__(
        self, log: Followed, cursor: str, owner: Owner, places: Places, *, heartbeat: float
    ) -> None:
        self._pieces = _pieces(log, cursor, heartbeat)
        self._place = places.one(owner)
        super().__init__(self._pieces, headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them. Raises `TooManyStreams` before the first byte."""
        with self._place:
            async with aclosing(self._pieces):
                await super().__call__(scope, receive, send)


async def _pieces(log: Followed, cursor: str, heartbeat: float) -> AsyncGenerator[bytes, None]:
    yield RETRY
    async with aclosing(frames(Patient(log), cursor, heartbeat=heartbeat)) as pieces:
        async for piece in pieces:
            yield piece
