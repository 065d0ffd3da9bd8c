"""Many readers of one log that drop at random places, also inside a frame, and come back.

seen, most = measured()      # what each has seen, and the bytes that it took at most
"""

from __future__ import annotations

import asyncio
import tracemalloc
from contextlib import aclosing
from random import Random

from labkit.recovery.event_log import EventLog, frames
from labkit.recovery.sse import SSEDecoder
from tests.simulation.kit import virtually

READERS, EVENTS = 500, 100


def measured(events: int = EVENTS) -> tuple[list[list[int]], int]:
    """What each reader has seen, and the most memory that it took beside what was there."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    try:
        return virtually(_work(events)), tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


async def _work(events: int) -> list[list[int]]:
    log = EventLog("answer-1")
    readers = [asyncio.create_task(_comes_and_goes(log, seed)) for seed in range(READERS)]
    for number in range(events):
        log.append(str(number))
        await asyncio.sleep(0.05)
    log.close()
    return list(await asyncio.gather(*readers))


async def _comes_and_goes(log: EventLog, seed: int) -> list[int]:
    random, cursor = Random(seed), ""
    seen: list[int] = []
    while True:
        decoder = SSEDecoder(last_event_id=cursor)
        patience = random.randrange(1, 30)
        async with aclosing(frames(log, cursor)) as stream:
            async for frame in stream:
                patience -= 1
                cut = frame if patience else frame[: random.randrange(len(frame))]
                for event in decoder.feed(cut):
                    if event.event == "end":
                        return seen
                    seen.append(int(event.data))
                if not patience:
                    break
        cursor = decoder.last_event_id
        await asyncio.sleep(random.random())
