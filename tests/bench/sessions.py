"""How fast messages find their turns, how many stops a second, and what sessions leave behind."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any, Final

from labkit.recovery.dispatch import Concurrency, Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.scenarios.catalogue import explore
from labkit.simulation.loop import VirtualLoop

from .table import Measure, Row, best

MESSAGES: Final = 10_000
SESSIONS: Final = 500
COME_AND_GONE: Final = 10_000
WORK: Final = 0.1  # virtual seconds of a turn


def dispatching() -> Iterator[Row]:
    """10,000 messages over 500 sessions, beside as many tasks that only wait."""
    ours = MESSAGES / best(lambda: _virtually(_dispatched(MESSAGES, SESSIONS)))
    bare = MESSAGES / best(lambda: _virtually(_tasks()))
    what = f"messages dispatched over {SESSIONS} sessions"
    yield Row(what=what, value=ours, unit="/s", peer="a bare loop of tasks", beside=bare)


def sweeping() -> Iterator[Row]:
    """A stop at every point of the reference turn, and at pairs of them."""
    for what, pairs in (("stops of the reference turn, everywhere", 0), ("pairs of stops", 500)):
        started = time.perf_counter()
        found = explore("turn.reference", faults="cancel", pairs=pairs)
        speed = found.struck / (time.perf_counter() - started)
        yield Row(what=f"{what} ({found.struck} struck)", value=speed, unit="runs/s")


def leaving() -> Iterator[Row]:
    """What is left in memory of 10,000 sessions that each had a turn and were gone."""
    _virtually(_dispatched(100, 100))
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = _virtually(_dispatched(COME_AND_GONE, COME_AND_GONE))
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    what = f"memory that {COME_AND_GONE:,} sessions leave ({len(kept.lanes)} lanes)"
    yield Row(what=what, value=(after - before) / 2**20, unit="MiB", most=1)


MEASURES: Final[tuple[Measure, ...]] = (dispatching, sweeping, leaving)


def _virtually(work: Any) -> Any:
    loop = VirtualLoop(total=100 * MESSAGES, limit=100 * MESSAGES)
    result = loop.run_until_complete(work)
    loop.close()
    return result


async def _dispatched(messages: int, sessions: int) -> Dispatcher:
    handled = 0

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        nonlocal handled
        await asyncio.sleep(WORK)
        handled += 1 + len(mailbox.close())

    dispatcher = Dispatcher(handle, answer=lambda *_: None, concurrency=Concurrency(limit=0))
    inbound: asyncio.Queue[Inbound] = asyncio.Queue()
    for number in range(messages):
        inbound.put_nowait(Inbound(f"s{number % sessions}", f"m{number}"))
    running = asyncio.create_task(dispatcher.run(inbound))
    await asyncio.sleep(WORK / 2)  # it takes them all without a pause
    await dispatcher.idle()
    running.cancel()
    if handled != messages:
        raise AssertionError(f"{handled} messages were handled of {messages}")
    return dispatcher


async def _tasks() -> None:
    tasks = [asyncio.create_task(asyncio.sleep(WORK)) for _ in range(MESSAGES)]
    await asyncio.wait(tasks)
