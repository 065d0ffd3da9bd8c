"""Real workers on one store: a clock that is wrong, a server that is gone, news, a zombie."""

from __future__ import annotations

import asyncio
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from labkit.recovery.run_states import COMPLETED
from labkit.runs.jobs import STEPS
from labkit.runs.opening import open_run_store
from labkit.runs.record import AgentRun
from labkit.runs.store import RunStore
from labkit.runs.tables import RUNS
from labkit.services.ledger import Ledger
from labkit.stores import opening
from labkit.stores.errors import StoreDown
from tests.stores.postgres import hasty, server

from .conftest import every_database, on_postgresql
from .storm import OWNER, keys_of
from .storm_worker import WRITE
from .workers import go_on, workers

pytestmark = pytest.mark.socket


def within(seconds: float, program: Any) -> Any:
    """What comes of it in time."""
    return asyncio.run(asyncio.wait_for(program, seconds))


async def ended(store: RunStore, *runs: AgentRun) -> list[AgentRun]:
    """Each run, which is completed."""
    found = [await store.get(run.run_id, OWNER) for run in runs]
    assert [run.status for run in found] == [COMPLETED] * len(runs)
    return found


async def steps(store: RunStore, run: AgentRun) -> list[str]:
    """The steps that were told of a run."""
    events = await store.events(run.run_id, OWNER)
    return [event.data["node"] for event in events if event.type == "node_finished"]


def effects(folder: Path) -> list[str]:
    """The keys of all effects, each as often as it was had."""
    return sorted(key for key, _ in Ledger(folder / "effects.db").effects())


@every_database
def test_a_killed_workers_run_is_done_by_another_from_its_last_step(
    url: str, store: RunStore, tmp_path: Path
) -> None:
    async def program() -> None:
        async with workers(url, tmp_path) as work:
            run = await store.submit("order", 7, owner=OWNER)
            first = await work("a", pause=0.3)
            await first.says("kept", step="reserve")
            first.process.kill()
            second = await work("b")
            assert (await second.says("claimed"))["fence"] == "2"
            assert await second.ends() == 0
            assert [told["step"] for kind, told in second.told if "step" in told] == [*STEPS[1:]]
            await ended(store, run)
            assert effects(tmp_path) == sorted(keys_of([run]))

    within(30, program())


@pytest.mark.slow
@every_database
@pytest.mark.parametrize(
    ("changes", "wanted"),
    [("meeting", [*STEPS]), ("meeting,naive", ["reserve", "reserve"])],
)
def test_a_zombies_write_is_refused_and_without_the_fence_the_same_write_is_done(
    changes: str, wanted: list[str], url: str, store: RunStore, tmp_path: Path
) -> None:
    async def program() -> None:
        async with workers(url, tmp_path) as work:
            run = await store.submit("order", owner=OWNER)
            zombie = await work("zombie", changes, capacity=1)
            await zombie.says("at")
            go_on(zombie.process)
            await zombie.says("at", window=WRITE)
            zombie.process.send_signal(signal.SIGSTOP)
            other = await work("other", pause=1.0)
            await other.says("kept", step="reserve")
            zombie.process.send_signal(signal.SIGCONT)
            for _ in range(20):  # it may do the run again after its lease, where all is naive
                go_on(zombie.process)
            assert [await zombie.ends(), await other.ends()] == [0, 0]
            refused = ("refused", {"window": WRITE, "run": run.run_id}) in zombie.told
            assert refused == ("naive" not in changes)
            await ended(store, run)
            assert (await steps(store, run))[: len(wanted)] == wanted
            assert effects(tmp_path) == sorted(keys_of([run]))

    within(60, program())


@pytest.mark.slow
@every_database
@pytest.mark.parametrize("clocks", [("clock+3600", "clock-3600"), ("clock-3600", "clock+3600")])
def test_a_worker_whose_clock_is_an_hour_off_neither_takes_a_lease_nor_loses_its_own(
    clocks: tuple[str, str], url: str, store: RunStore, tmp_path: Path
) -> None:
    async def program() -> None:
        async with workers(url, tmp_path) as work:
            run = await store.submit("order", owner=OWNER)
            holder = await work("holder", clocks[0], lease=0.6, pause=0.8)
            await holder.says("claimed")
            other = await work("other", clocks[1], watchdog=0.05)
            assert [await holder.ends(), await other.ends()] == [0, 0]
            (run,) = await ended(store, run)
            assert run.fence == 1
            assert [kind for kind, _ in other.told] == ["serving", "ended"]

    within(30, program())


@on_postgresql
def test_a_run_that_another_process_submits_begins_at_once_and_not_at_the_next_look(
    url: str, store: RunStore, tmp_path: Path
) -> None:
    async def program() -> None:
        async with workers(url, tmp_path) as work:
            first = await store.submit("order", owner=OWNER)
            idle, busy = [await work(name, pause=3.0, watchdog=600, capacity=1) for name in "ab"]
            claims = [asyncio.create_task(worker.says("claimed")) for worker in (idle, busy)]
            done, _ = await asyncio.wait(claims, return_when=asyncio.FIRST_COMPLETED)
            assert {task.result()["run"] for task in done} == {first.run_id}
            began = time.monotonic()
            second = await store.submit("order", owner=OWNER)
            await asyncio.gather(*claims)
            assert time.monotonic() - began < 10
            assert {task.result()["run"] for task in claims} == {first.run_id, second.run_id}

    within(60, program())


@on_postgresql
def test_who_is_silent_in_the_middle_of_a_write_holds_its_run_no_longer_than_is_said(
    url: str, store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        await store.submit("order", owner=OWNER)
        monkeypatch.setattr(opening, "BUSY", 0.5)
        with closing(open_run_store(url)) as silent:
            assert await silent.claim("silent", length=0.1)
            with silent._engine.connect() as connection:
                connection.execute(sa.update(RUNS).values(updated=0.0))  # and no commit
                held = None
                while held is None:
                    await asyncio.sleep(0.1)
                    held = await store.claim("other", length=30.0)
                assert held.lease.fence == 2
                with pytest.raises(SQLAlchemyError):
                    connection.execute(sa.select(RUNS))

    within(20, program())


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("lease", [1.0, 60.0])
def test_a_server_that_is_gone_for_ten_seconds_costs_no_run_and_no_effect(
    lease: float, tmp_path: Path
) -> None:
    async def program(made: Any) -> None:
        store = open_run_store(made.url)
        async with workers(made.url, tmp_path) as work:
            runs = [await store.submit("order", n, owner=OWNER) for n in range(12)]
            every = [await work(name, lease=lease, pause=0.3, capacity=3) for name in "ab"]
            for worker in every:
                await worker.says("kept")
            await asyncio.to_thread(made.stop)
            with pytest.raises(StoreDown):
                await store.left()
            await asyncio.sleep(10)
            await asyncio.to_thread(made.start)
            assert [await worker.ends() for worker in every] == [0, 0]
            found = await ended(store, *runs)
            most = max(run.fence for run in found)  # a claim whose answer was lost costs one
            assert most == 1 if lease > 10 else most >= 2
            assert effects(tmp_path) == sorted(keys_of(runs))
            for run in found:
                assert await steps(store, run) == [*STEPS]
                events = await store.events(run.run_id, OWNER)
                assert [event.seq for event in events] == list(range(1, run.seq + 1))
        store.close()

    with server() as made:
        hasty(made.url)
        within(90, program(made))
