"""Who waits for a change is woken by it: in this process, and on PostgreSQL by any other."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery.run_states import LeaseLost, RunExists
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from tests.services.processes import until

from .conftest import on_postgresql
from .storing import LENGTH, OWNER, WRITES, Gate, claimed, in_state, run, submitted

Opened = Callable[[], RunStore]
LONG = 30.0  # seconds: far longer than any of these may take
SOON = 5.0


async def listening(store: RunStore) -> int:
    """What it has heard of once its listener is there."""
    await until(lambda: store.news.count)
    return store.news.count


async def waiting(store: RunStore, seen: int) -> asyncio.Task[None]:
    """A task that waits for a change, and has begun to."""
    task = asyncio.create_task(store.news.after(seen, timeout=LONG))
    await until(lambda: store.news._waiting)
    assert not task.done()
    return task


# --- other processes


@on_postgresql
def test_a_change_by_another_process_wakes_who_waits(opened: Opened) -> None:
    async def program() -> None:
        mine, other = opened(), opened()
        task = await waiting(mine, await listening(mine))
        await submitted(other)
        await asyncio.wait_for(task, SOON)

    run(program())


@pytest.fixture
def ear(url: str) -> Iterator[Callable[[], int]]:
    """How many changes were told to other processes since it was called last."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.execute("LISTEN labkit_runs")

        def heard() -> int:
            driver.execute("NOTIFY labkit_runs, 'mark'")  # it comes after all that was committed
            payloads = (note.payload for note in driver.notifies(timeout=10))
            return len(list(itertools.takewhile(lambda payload: payload != "mark", payloads)))

        yield heard
    engine.dispose()


@on_postgresql
def test_each_move_is_told_to_other_processes(store: RunStore, ear: Callable[[], int]) -> None:
    async def program() -> None:
        held = await in_state(store, "failed")
        run_id = held.run.run_id
        ear()
        moves: list[Callable[[], Any]] = [
            lambda: store.retry(run_id, OWNER),
            lambda: store.claim("worker-2", length=LENGTH, run_id=run_id),
            lambda: store.cancel(run_id, OWNER),
        ]
        for move in moves:
            await move()
            assert ear() == 1
        for name, write in WRITES.items():
            held = await claimed(store)
            assert ear() == 2, "submitted and claimed"
            await write(store, held)
            assert ear() == 1, name

    run(program())


@on_postgresql
def test_a_change_between_the_look_and_the_wait_is_not_missed(opened: Opened) -> None:
    async def program() -> None:
        mine, other = opened(), opened()
        seen = await listening(mine)
        await submitted(other)
        await until(lambda: mine.news.count > seen)
        await asyncio.wait_for(mine.news.after(seen, timeout=LONG), SOON)

    run(program())


@on_postgresql
def test_what_is_not_committed_is_no_news(store: RunStore, ear: Callable[[], int]) -> None:
    async def program() -> None:
        gate = Gate(store)
        submitting = asyncio.create_task(submitted(store))
        await gate.reached()
        assert ear() == 0
        gate.open()
        await submitting
        assert ear() == 1

    run(program())


@on_postgresql
def test_a_listener_whose_connection_ends_hears_again(opened: Opened) -> None:
    async def program() -> None:
        mine, other = opened(), opened()
        seen = await listening(mine)
        end = sa.text(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE query = 'LISTEN labkit_runs'"
        )
        with other._engine.connect() as connection:
            assert connection.execute(end).all() == [(True,), (True,)]
        await until(lambda: mine.news.count > seen)  # it is there again, and says so
        task = await waiting(mine, mine.news.count)
        await submitted(other)
        await asyncio.wait_for(task, SOON)

    run(program())


@on_postgresql
def test_the_listener_ends_when_the_store_is_closed(url: str) -> None:
    with closing(open_run_store(url)) as store:
        run(listening(store))
        assert store.news._thread.is_alive()
        began = time.monotonic()
    assert not store.news._thread.is_alive()
    assert time.monotonic() - began < SOON


# --- this process


def test_a_change_in_this_process_wakes_who_waits(sqlite: RunStore) -> None:
    async def program() -> None:
        task = await waiting(sqlite, sqlite.news.count)
        await submitted(sqlite)
        await asyncio.wait_for(task, SOON)

    run(program())


def test_a_change_in_another_thread_wakes_who_waits(sqlite: RunStore) -> None:
    async def program() -> None:
        task = await waiting(sqlite, sqlite.news.count)
        await asyncio.to_thread(run, submitted(sqlite))
        await asyncio.wait_for(task, SOON)

    run(program())


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[RunStore]:
    """A store of which only this process hears."""
    with closing(open_run_store(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
        yield store


def test_a_change_since_the_look_is_not_waited_for(sqlite: RunStore) -> None:
    async def program() -> None:
        seen = sqlite.news.count
        await submitted(sqlite)
        await asyncio.wait_for(sqlite.news.after(seen, timeout=LONG), SOON)

    run(program())


def test_who_hears_nothing_looks_again_in_time(sqlite: RunStore) -> None:
    async def program() -> None:
        await asyncio.wait_for(sqlite.news.after(sqlite.news.count, timeout=0.01), SOON)
        assert sqlite.news._waiting == {}

    run(program())


def test_one_change_wakes_all_who_wait(sqlite: RunStore) -> None:
    async def program() -> None:
        tasks = [
            asyncio.create_task(sqlite.news.after(sqlite.news.count, timeout=LONG))
            for _ in range(5)
        ]
        await until(lambda: len(sqlite.news._waiting) == 5)
        await submitted(sqlite)
        await asyncio.wait_for(asyncio.gather(*tasks), SOON)
        assert sqlite.news._waiting == {}

    run(program())


async def nothing_changes(store: RunStore, look: Callable[[], int]) -> None:
    """Do what changes no run, and see that `look` finds the same before and after."""
    await submitted(store, "run-1")
    held = await claimed(store, "worker-1", "run-1")
    lost = await claimed(store)
    await store.cancel(lost.run.run_id, OWNER)
    look()
    before = look()
    assert await store.claim("worker-2", length=LENGTH) is None
    assert await store.renew(held)
    with pytest.raises(LeaseLost):
        await store.step(lost, {}, checkpoint=1)
    with pytest.raises(RunExists):
        await submitted(store, "run-1")
    await store.get("run-1", OWNER)
    assert look() == before


def test_what_changes_nothing_wakes_nobody(sqlite: RunStore) -> None:
    run(nothing_changes(sqlite, lambda: sqlite.news.count))


@on_postgresql
def test_what_changes_nothing_is_not_told(store: RunStore, ear: Callable[[], int]) -> None:
    run(nothing_changes(store, ear))


def test_a_write_whose_caller_was_cancelled_is_news_all_the_same(sqlite: RunStore) -> None:
    async def program() -> None:
        gate, seen = Gate(sqlite), sqlite.news.count
        submitting = asyncio.create_task(submitted(sqlite))
        await gate.reached()
        submitting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await submitting
        task = await waiting(sqlite, seen)
        gate.open()
        await asyncio.wait_for(task, SOON)
        assert len(await sqlite.runs(OWNER)) == 1

    run(program())


def test_who_waits_on_a_loop_that_is_closed_does_no_harm(sqlite: RunStore) -> None:
    loop = asyncio.new_event_loop()
    left = loop.create_task(sqlite.news.after(0, timeout=LONG))
    left._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert sqlite.news._waiting

    async def program() -> None:
        task = asyncio.create_task(sqlite.news.after(sqlite.news.count, timeout=LONG))
        await until(lambda: len(sqlite.news._waiting) == 2)
        await submitted(sqlite)
        await asyncio.wait_for(task, SOON)

    run(program())


def test_a_cancel_of_who_waits_leaves_at_once(sqlite: RunStore) -> None:
    async def program() -> None:
        task = await waiting(sqlite, sqlite.news.count)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SOON)
        assert sqlite.news._waiting == {}

    run(program())


def test_on_sqlite_no_thread_listens(sqlite: RunStore) -> None:
    assert not sqlite.news._thread.is_alive()
