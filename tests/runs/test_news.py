"""Who waits for a change is woken by it: in this process, and on PostgreSQL by any other."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
import sqlalchemy as sa

from labkit.recovery.run_states import QUEUED, STATES, LeaseLost, RunExists
from labkit.runs import news
from labkit.runs.following import RunLog
from labkit.runs.job import Done, Step, Work
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.news import TO_DO, TOPICS, News, about, topics
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from tests.services.processes import until

from .conftest import on_postgresql
from .storing import (
    LENGTH,
    OWNER,
    WRITES,
    Clock,
    Gate,
    claimed,
    in_memory,
    in_state,
    now,
    run,
    submitted,
)

Opened = Callable[[], RunStore]
LONG = 30.0  # seconds: far longer than any of these may take
SOON = 5.0


async def listening(store: RunStore) -> int:
    """What it has heard of once its listener is there."""
    await until(lambda: store.news.seen(TO_DO))
    return store.news.seen(TO_DO)


async def waiting(store: RunStore, seen: int, topic: int = TO_DO) -> asyncio.Task[None]:
    """A task that waits for a change, and has begun to."""
    task = asyncio.create_task(store.news.after(topic, seen, timeout=LONG))
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
        await until(lambda: mine.news.seen(TO_DO) > seen)
        await asyncio.wait_for(mine.news.after(TO_DO, seen, timeout=LONG), SOON)

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
def test_a_connection_that_listened_in_vain_goes_back_to_no_pool(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[object] = []
    listen, odd = psycopg.Connection.notifies, [psycopg.OperationalError("odd")]
    watched = threading.Event()

    def notifies(connection: Any, **how: Any) -> Any:
        if odd and watched.wait(SOON):
            raise odd.pop()
        return listen(connection, **how)

    monkeypatch.setattr(psycopg.Connection, "notifies", notifies)

    async def program() -> None:
        store = opened()
        sa.event.listen(store._engine, "invalidate", lambda *about: given_up.append(about))
        watched.set()
        await until(lambda: given_up)

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
        await until(lambda: mine.news.seen(TO_DO) > seen)  # it is there again, and says so
        task = await waiting(mine, mine.news.seen(TO_DO))
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
        task = await waiting(sqlite, sqlite.news.seen(TO_DO))
        await submitted(sqlite)
        await asyncio.wait_for(task, SOON)

    run(program())


def test_a_change_in_another_thread_wakes_who_waits(sqlite: RunStore) -> None:
    async def program() -> None:
        task = await waiting(sqlite, sqlite.news.seen(TO_DO))
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
        seen = sqlite.news.seen(TO_DO)
        await submitted(sqlite)
        await asyncio.wait_for(sqlite.news.after(TO_DO, seen, timeout=LONG), SOON)

    run(program())


def test_who_hears_nothing_looks_again_in_time(sqlite: RunStore) -> None:
    async def program() -> None:
        await asyncio.wait_for(
            sqlite.news.after(TO_DO, sqlite.news.seen(TO_DO), timeout=0.01), SOON
        )
        assert sqlite.news._waiting == {}

    run(program())


def test_one_change_wakes_all_who_wait(sqlite: RunStore) -> None:
    async def program() -> None:
        tasks = [
            asyncio.create_task(sqlite.news.after(TO_DO, sqlite.news.seen(TO_DO), timeout=LONG))
            for _ in range(5)
        ]
        await until(lambda: len(sqlite.news._waiting) == 5)
        await submitted(sqlite)
        await asyncio.wait_for(asyncio.gather(*tasks), SOON)
        assert sqlite.news._waiting == {}

    run(program())


async def nothing_changes(store: RunStore, look: Callable[[], object]) -> None:
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
    run(nothing_changes(sqlite, lambda: list(sqlite.news._newest)))


@on_postgresql
def test_what_changes_nothing_is_not_told(store: RunStore, ear: Callable[[], int]) -> None:
    run(nothing_changes(store, ear))


def test_a_write_whose_caller_was_cancelled_is_news_all_the_same(sqlite: RunStore) -> None:
    async def program() -> None:
        gate, seen = Gate(sqlite), sqlite.news.seen(TO_DO)
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
    left = loop.create_task(sqlite.news.after(TO_DO, 0, timeout=LONG))
    left._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert sqlite.news._waiting

    async def program() -> None:
        task = asyncio.create_task(sqlite.news.after(TO_DO, sqlite.news.seen(TO_DO), timeout=LONG))
        await until(lambda: len(sqlite.news._waiting) == 2)
        await submitted(sqlite)
        await asyncio.wait_for(task, SOON)

    run(program())


def test_a_cancel_of_who_waits_leaves_at_once(sqlite: RunStore) -> None:
    async def program() -> None:
        task = await waiting(sqlite, sqlite.news.seen(TO_DO))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, SOON)
        assert sqlite.news._waiting == {}

    run(program())


def test_on_sqlite_no_thread_listens(sqlite: RunStore) -> None:
    assert not sqlite.news._thread.is_alive()


def test_a_listener_that_cannot_listen_pauses_before_it_tries_again() -> None:
    class Closed(threading.Event):
        waits: ClassVar[list[float | None]] = []

        def is_set(self) -> bool:
            return len(self.waits) == 3

        def wait(self, timeout: float | None = None) -> bool:
            self.waits.append(timeout)
            return False

    tries = itertools.count(1)

    def cannot() -> None:
        if next(tries) > 3:
            raise AssertionError("it did not pause")
        raise OSError

    listener = News(sa.create_engine("sqlite://"))
    listener._closed, listener._heard = Closed(), cannot  # type: ignore[method-assign]
    listener._listen()
    assert Closed.waits == [news.PAUSE] * 3


def test_a_change_that_another_thread_tells_wakes_a_loop_that_sleeps(sqlite: RunStore) -> None:
    async def program() -> float:
        loop: Any = asyncio.get_running_loop()
        task = await waiting(sqlite, sqlite.news.seen(TO_DO))
        asleep, select = threading.Event(), loop._selector.select

        def sleep(timeout: float | None) -> Any:
            if timeout:  # else it only looks
                asleep.set()
            return select(timeout)

        loop._selector.select = sleep
        began = loop.time()
        other = threading.Thread(target=lambda: asleep.wait(SOON) and sqlite.news.wake(TO_DO))
        other.start()
        await asyncio.wait([task], timeout=SOON)
        other.join()
        await task
        return float(loop.time() - began)

    assert run(program()) < SOON / 2


# --- topics


async def waits_for_each(store: RunStore, *run_ids: str) -> list[asyncio.Task[None]]:
    """Who waits for something to do, then who waits for each of these runs."""
    topics = [TO_DO, *map(about, run_ids)]
    tasks = [await waiting(store, store.news.seen(topic), topic) for topic in topics]
    await until(lambda: len(store.news._waiting) == len(tasks))
    return tasks


async def only_its_own(mine: RunStore, other: RunStore) -> None:
    """A step, and then a run that waits, wake those whom they are about and nobody else."""
    before = mine.news.seen(about("last"))
    held = await claimed(other)
    await submitted(other, "last")
    await until(lambda: mine.news.seen(about("last")) != before)
    to_do, its, others = await waits_for_each(mine, held.run.run_id, "other")
    held = await other.step(held, {}, checkpoint=1)
    await asyncio.wait_for(its, SOON)
    assert not to_do.done()
    await other.hand_back(held)
    await asyncio.wait_for(to_do, SOON)
    assert not others.done()
    mine.news.wake()
    await asyncio.wait_for(others, SOON)


def test_a_change_wakes_only_those_whom_it_is_about(sqlite: RunStore) -> None:
    run(only_its_own(sqlite, sqlite))


@on_postgresql
def test_a_change_by_another_process_wakes_only_those_whom_it_is_about(opened: Opened) -> None:
    async def program() -> None:
        mine = opened()
        await listening(mine)
        await only_its_own(mine, opened())

    run(program())


@pytest.mark.parametrize(
    "run_id", ["", "run-1", "\0", "\ud800", "'; DROP TABLE runs; --", "x" * 9999]
)
def test_the_topic_of_a_run_is_a_small_number_whatever_its_id_holds(run_id: str) -> None:
    assert TO_DO < about(run_id) < TOPICS
    assert about(run_id) == about(run_id)


@on_postgresql
@pytest.mark.parametrize("payload", ["", "mark", "1 x", "4096", "-1", "\u00b2", "9" * 5000])
def test_what_no_store_has_told_wakes_everybody_and_ends_no_listener(
    opened: Opened, payload: str
) -> None:
    async def program() -> None:
        store = opened()
        await listening(store)
        tasks = await waits_for_each(store, "run-1")
        with store._engine.begin() as connection:
            connection.exec_driver_sql("SELECT pg_notify('labkit_runs', %s)", (payload,))
        await asyncio.wait_for(asyncio.gather(*tasks), SOON)
        task = await waiting(store, store.news.seen(about("run-1")), about("run-1"))
        await submitted(opened(), "run-1")
        await asyncio.wait_for(task, SOON)

    run(program())


@on_postgresql
def test_a_step_makes_no_worker_look_for_something_to_do(opened: Opened) -> None:
    async def job(work: Work) -> AsyncGenerator[Step | Done, None]:
        for number in range(20):
            yield Step("n", {}, number)
        yield Done()

    async def program() -> None:
        claims = []

        def manager(name: str) -> RunManager:
            store = opened()
            claim = store.claim

            async def noted(*of: Any, **how: Any) -> Any:
                claims.append(name)
                return await claim(*of, **how)

            store.claim = noted  # type: ignore[method-assign]
            policy = RunPolicy(watchdog=LONG)
            return RunManager(store, {"order": job}, worker=name, policy=policy)

        managers = [manager(name) for name in "abcd"]
        serving = [asyncio.create_task(manager.serve()) for manager in managers]
        first = managers[0].store
        for number in range(8):
            await submitted(first, f"run-{number}")
        async for _ in RunLog(first, "run-7", OWNER).follow():  # the last one to be begun
            pass
        for one in managers:
            await one.shutdown()
        await asyncio.gather(*serving)
        events = sum([found.seq for found in await first.runs(OWNER)])
        assert events > 8 * 20
        assert len(claims) < events / 2

    run(program())


def test_runs_share_all_topics_but_that_of_who_looks_for_something_to_do() -> None:
    assert {about(f"run-{number}") for number in range(60_000)} == set(range(TOPICS)) - {TO_DO}


@pytest.mark.parametrize("state", STATES)
def test_only_a_run_that_waits_for_a_worker_is_something_to_do(state: str) -> None:
    with in_memory(Clock()) as store:
        found = now(store.get(now(in_state(store, state)).run.run_id, OWNER))
    assert found.status == state
    assert topics(found) == (about(found.run_id), *([TO_DO] if state == QUEUED else []))
