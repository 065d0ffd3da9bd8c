"""Follows the events of an agent run, which may be done anywhere: what is stored, then what comes.

Rules: a reader's cursor is the number of the last event that it has seen; every event was stored
before it is sent, so a reader that comes back misses none and gets none twice. The stream ends
where the run is completed, has failed, or is cancelled; after a retry a reader comes back.

    log = RunLog(store, run_id, owner)
    async for frame in frames(log, "3"):       # Last-Event-ID: 3
        ...                                    # b"id: 4\\nevent: node_finished\\ndata: ..."
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Final

from labkit.recovery.event_log import Entry, ForeignCursor
from labkit.recovery.policy import is_amount
from labkit.recovery.run_states import ENDED
from labkit.recovery.stream.record import Owner

from .conditions import owned
from .news import about
from .record import BadRun
from .store import RunStore

LOOK: Final = 1.0  # seconds: who hears of no change looks into the database so often


class RunLog:
    """The events of one run as its owner may read them; a slow reader holds up nobody.

    `look`: seconds between two looks of who hears of no change. Raises `BadRun`.
    """

    def __init__(self, store: RunStore, run_id: str, owner: Owner, *, look: float = LOOK) -> None:
        if not (is_amount(look) and look > 0):
            raise BadRun(f"look is {look!r:.60}, and must be a number of seconds above 0")
        owned(run_id, owner)  # refuses what is none
        self._store = store
        self._of = (run_id, owner)
        self._look = look

    def cursor(self, sequence: int) -> str:
        """The number itself."""
        return str(sequence)

    async def follow(
        self, cursor: str = "", *, idle: float | None = None
    ) -> AsyncGenerator[Entry | None, None]:
        """Yield the events after `cursor`, then those to come, until the run has ended.

        None stands for `idle` seconds without one. Raises `ForeignCursor` for what this run never
        gave out, `UnknownRun`, and `StoreDown`, after which a reader comes back with its cursor.
        """
        clock = asyncio.get_running_loop().time
        store, last, quiet, topic = self._store, number_of(cursor), clock(), about(self._of[0])
        while True:
            news = store.news.seen(topic)
            run = await store.get(*self._of)  # before its events: then none is missing at its end
            if last > run.seq:
                raise ForeignCursor(f"{last} is ahead of the run's events, which end at {run.seq}")
            events = await store.events(*self._of, after=last) if last < run.seq else []
            for event in events:
                yield Entry(event.seq, event.type, json.dumps(event.data))
                last, quiet = event.seq, clock()
            if events and last < run.seq:
                continue  # there are more than fit into one answer
            if run.status in ENDED:
                return
            await store.news.after(topic, news, timeout=self._look)
            if idle is not None and clock() - quiet >= idle:
                yield None
                quiet = clock()


def number_of(cursor: str) -> int:
    """The number of an event; "" is the beginning, 0. Raises `ForeignCursor`."""
    if cursor == "":
        return 0
    if not (isinstance(cursor, str) and cursor.isascii() and cursor.isdigit() and len(cursor) < 10):
        raise ForeignCursor(f"{cursor!r:.60} is no number of an event, as a text")
    return int(cursor)
