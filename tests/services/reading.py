"""A reader that takes a stream's bytes into a record: by number, over as many cuts as there are."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable

from labkit.providers.wire import Dropped
from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.recovery.stream import Owner, StreamEvent, StreamRun, apply_event
from labkit.recovery.stream.record import SequenceGap

Open = Callable[[str], AsyncGenerator[bytes, None]]
MOST = 10  # connections


class Reader:
    """Knows the record so far, and counts what happened to its connections."""

    def __init__(self) -> None:
        self.record = StreamRun("read", Owner("ann", "acme"))
        self.ended = False
        self.connections = 0
        self.duplicates = 0
        self.gaps = 0

    async def read(self, connect: Open) -> StreamRun:
        """Connect after the last event that was taken in, until the stream has ended."""
        while not self.ended and self.connections < MOST:
            self.connections += 1
            await self._one(connect(self.record.last_event_id))
        return self.record

    async def _one(self, pieces: AsyncGenerator[bytes, None]) -> None:
        decoder = SSEDecoder()
        try:
            async for piece in pieces:
                for event in decoder.feed(piece):
                    self._take(event)
        except Dropped:
            pass
        except SequenceGap:
            self.gaps += 1  # not spliced: connect again

    def _take(self, event: SSEEvent) -> None:
        if event.event == "end":
            self.ended = True
            return
        number = int(event.id.rpartition(":")[2])
        said = json.loads(event.data).get("text", "") if event.event == "text_delta" else ""
        taken = StreamEvent(number - 1, text_delta=said, event_id=event.id)
        after = apply_event(self.record, taken, now=0.0)
        self.duplicates += after is self.record
        self.record = after
