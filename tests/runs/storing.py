"""What the tests of the run store share: its time, runs in each state, and moves as a table."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import sqlalchemy as sa

from labkit.recovery.run_states import (
    AWAITING,
    CANCELLED,
    COMPLETED,
    FAILED,
    QUEUED,
    RUNNING,
    IllegalMove,
    LeaseLost,
)
from labkit.recovery.stream.record import Owner
from labkit.runs.opening import virtual_run_store
from labkit.runs.record import AgentRun, Held
from labkit.runs.store import RunStore
from labkit.runs.tables import RUNS

OWNER = Owner(user="ann", tenant="acme")
STRANGERS = (Owner(user="eve", tenant="acme"), Owner(user="ann", tenant="other"))
LENGTH = 10.0
Found = TypeVar("Found")


def run(program: Coroutine[Any, Any, Found]) -> Found:
    """The program's result, within a minute."""
    return asyncio.run(asyncio.wait_for(program, 60))


def now(program: Coroutine[Any, Any, Found]) -> Found:
    """The result of a program that never has to wait."""
    try:
        program.send(None)
    except StopIteration as end:
        result: Found = end.value
        return result
    raise AssertionError("it waits")


class Clock:
    """The time of a store in memory."""

    now = 0.0


@contextmanager
def in_memory(clock: Clock) -> Iterator[RunStore]:
    """A store on that clock; none of its calls waits."""

    async def inline(work: Callable[[], Any]) -> Any:
        return work()

    with closing(virtual_run_store(lambda: clock.now, call=inline)) as store:
        yield store


async def later(store: RunStore, seconds: float) -> None:
    """As if so many seconds had passed: leases end earlier, since the clock is the store's."""
    back = sa.update(RUNS).values(until=RUNS.c.until - seconds)
    await asyncio.to_thread(changed, store, back)


def changed(store: RunStore, change: Any) -> None:
    """Change what is in the tables, past the store."""
    with store._engine.begin() as connection:
        connection.execute(change)


async def submitted(store: RunStore, run_id: str = "") -> AgentRun:
    """A run that waits."""
    return await store.submit("order", {"order": 7}, owner=OWNER, model="fake", run_id=run_id)


async def claimed(
    store: RunStore, worker: str = "worker-1", run_id: str | None = None, length: float = LENGTH
) -> Held:
    """A run in the hands of a worker: a new one, unless it is named."""
    if run_id is None:
        run_id = (await submitted(store)).run_id
    held = await store.claim(worker, length=length, run_id=run_id)
    assert held is not None
    return held


async def told(store: RunStore, run_id: str) -> list[tuple[int, str]]:
    """Number and type of each event of a run."""
    return [(event.seq, event.type) for event in await store.events(run_id, OWNER)]


Move = Callable[[RunStore, Held], Awaitable[Held]]
WRITES: Mapping[str, Move] = {
    "step": lambda store, held: store.step(held, {"node": "reserve"}, checkpoint=1),
    "ask": lambda store, held: store.ask(held, "Which one?", checkpoint=2),
    "finish": lambda store, held: store.finish(held, "shipped", reason="done"),
    "fail": lambda store, held: store.fail(held, "TIMEOUT", "too slow"),
    "hand back": lambda store, held: store.hand_back(held),
}


async def written(store: RunStore, held: Held, move: str) -> bool:
    """Whether a move of its worker was done; "renew" is one too."""
    if move == "renew":
        return await store.renew(held)
    try:
        await WRITES[move](store, held)
    except LeaseLost:
        return False
    return True


async def moved(store: RunStore, held: Held, move: str) -> bool:
    """Whether any move was done, of the run's worker, its owner, another worker, or the time."""
    run_id = held.run.run_id
    if move in WRITES:
        return await written(store, held, move)
    if move in ("claim", "expire"):
        if move == "expire":
            await later(store, LENGTH)
        return await store.claim("worker-2", length=LENGTH, run_id=run_id) is not None
    try:
        if move == "answer":
            await store.answer(run_id, OWNER, "the red one")
        else:
            await getattr(store, move)(run_id, OWNER)
    except IllegalMove:
        return False
    return True


async def in_state(store: RunStore, state: str) -> Held:
    """A run in that state, and what the worker that had it knows."""
    held = await claimed(store)
    if state in (AWAITING, QUEUED):
        held = await store.ask(held, "Which one?", checkpoint=2)
    if state == QUEUED:
        await store.answer(held.run.run_id, OWNER, "the red one")
    elif state == COMPLETED:
        held = await store.finish(held, "shipped")
    elif state == FAILED:
        held = await store.fail(held, "TIMEOUT", "too slow")
    elif state == CANCELLED:
        await store.cancel(held.run.run_id, OWNER)
    else:
        assert state in (RUNNING, AWAITING)
    return held


def together(number: int, work: Callable[[int], Coroutine[Any, Any, Found]]) -> list[Found]:
    """What came of `work(0)`, `work(1)` and so on, each in a thread of its own and all at once."""
    barrier = threading.Barrier(number)

    def one(which: int) -> Found:
        barrier.wait(10)
        return run(work(which))

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(one, range(number)))


class Gate:
    """Holds up the next commit of a store, with what it has written, until it is opened."""

    def __init__(self, store: RunStore) -> None:
        self._reached = threading.Event()
        self._opened = threading.Event()
        sa.event.listen(store._engine, "commit", self._pass)

    def _pass(self, _: sa.Connection) -> None:
        if not self._reached.is_set():
            self._reached.set()
            assert self._opened.wait(10)

    async def reached(self) -> None:
        """Wait until somebody stands at it."""
        assert await asyncio.to_thread(self._reached.wait, 10)

    def open(self) -> None:
        """Let it pass."""
        self._opened.set()
