"""Cases 50 to 52, 55 and 60: leases that are kept, lost, and left behind by the dead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from labkit.recovery.run_states import LeaseLost
from labkit.runs.job import Ask, Done, Step, Work
from labkit.runs.record import Held
from labkit.runs.store import RunStore
from tests.runs.desk import Desk, ordering
from tests.runs.kit import POLICY, Floor, Line, Worker, on_floor
from tests.runs.storing import OWNER, Clock, in_memory, now, submitted, written

from .public import case

FENCE, WATCHDOG = case(51), case(52)
RENEWAL, ALONE, LOSER = case(50), case(55), case(60)
TTL = float(RENEWAL["input"]["ttl"])
# What the case calls its moves, and what they are here.
MOVES = {"renew": "renew", "release": "hand back", "park": "hand back", "fail": "fail"}


def test_case_51_every_move_of_a_worker_names_its_claim() -> None:
    clock, length = Clock(), float(FENCE["input"]["ttl"])
    with in_memory(clock) as store:
        run_id = now(submitted(store)).run_id
        held: dict[str, Held] = {}
        done: list[bool] = []
        for at, worker, move, *what in FENCE["input"]["ops"]:
            clock.now = float(at)
            if move == "claim":
                found = now(store.claim(worker, length=length, run_id=run_id))
                assert found is not None
                held[worker] = found
                done.append(True)
            elif move == "complete":
                done.append(_completes(store, held[worker], *what))
            else:
                done.append(now(written(store, held[worker], MOVES[move])))
        expected = FENCE["expect"]
        assert done == expected["ok"]
        assert [held[worker].lease.fence for worker in "ABC"] == expected["fences"]
        events = now(store.events(run_id, OWNER))
        # Asked for once more, it is known again: there is no second end.
        assert _completes(store, held["C"], "c")
        assert now(store.events(run_id, OWNER)) == events
        final = now(store.get(run_id, OWNER))
        assert final.status == "completed"
        assert {"result": final.result, "fence": final.fence} == {
            name: expected["final"][name] for name in ("result", "fence")
        }


def _completes(store: RunStore, held: Held, result: str) -> bool:
    try:
        now(store.finish(held, result))
    except LeaseLost:
        return False
    return True


@pytest.mark.parametrize(
    "how", ["its name is unknown", "another of its name is alive", "another looked and died"]
)
def test_case_52_a_dead_workers_run_is_free_when_its_own_lease_is_over(how: str) -> None:
    clock, length = Clock(), float(WATCHDOG["input"]["ttl"])
    expected: dict[str, Any] = WATCHDOG["expect"]["each"]
    with in_memory(clock) as store:
        run_id = now(submitted(store)).run_id
        dead = now(store.claim("pod-0", length=length))
        assert dead is not None
        clock.now = length - 0.001
        other = "pod-0" if how.startswith("another of") else "pod-1"
        assert now(store.claim(other, length=length)) is None  # whatever waits: there is nothing
        assert now(store.get(run_id, OWNER)).until == length  # nobody kept it alive
        clock.now = 60.0 if how.startswith("another looked") else length
        second = now(store.claim(other, length=length))
        assert second is not None
        assert not now(written(store, dead, "finish"))
        assert now(written(store, second, "finish"))
        kinds = [event.type for event in now(store.events(run_id, OWNER))]
        assert kinds.count("run_started") == second.lease.fence == expected["attempts"]
        assert kinds.count("run_completed") == expected["completions"]
        assert now(store.claim(other, length=length)) is None


# --- 50: with workers


def renewals(worker: Worker) -> list[float]:
    """When this worker renews, from now on."""
    store, times = worker.manager.store, list[float]()
    renew = store.renew

    async def seen(held: Held) -> bool:
        times.append(asyncio.get_running_loop().time())
        return await renew(held)

    store.renew = seen  # type: ignore[method-assign]  # to look on
    return times


def begun(floor: Floor) -> list[tuple[str, Any]]:
    """Who began which work, in this order."""
    return [(did.worker, did.what) for did in floor.did]


async def once(work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
    """One step of `given` seconds."""
    await asyncio.sleep(work.run.given)
    yield Done(f"by {work.run.worker}")


def working(floor: Floor) -> None:
    """Job "once" of this floor notes when it begins."""

    async def job(work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
        floor.does(work, work.run.given)
        async for step in once(work):
            yield step

    floor.jobs["once"] = job


def test_case_50_a_a_step_longer_than_its_lease_is_renewed_beside_the_work() -> None:
    async def program(floor: Floor) -> None:
        working(floor)
        run = await floor.submit("once", float(RENEWAL["input"]["a"]))
        times = renewals(floor.worker("a"))
        await floor.at(0.5)
        floor.worker("b", deaf=True)
        done = await floor.until(run)
        times = [*floor.times("claimed"), *times, floor.clock()]
        assert len(floor.did) == done.fence == RENEWAL["expect"]["executions"]["a"]
        assert floor.times("claimed", "b") == []
        most = RENEWAL["expect"]["max_gap_fraction"] * TTL
        assert max(after - before for before, after in pairwise(times)) <= most

    on_floor(program, replace(POLICY, lease=TTL, watchdog=1.0))


@pytest.mark.parametrize("helped", [False, True])
def test_case_50_b_a_run_that_waits_for_room_is_not_claimed(helped: bool) -> None:
    async def program(floor: Floor) -> None:
        working(floor)
        first, second = map(float, RENEWAL["input"]["b"])
        runs = [await floor.submit("once", first)]
        floor.worker("a")
        await floor.at(1.0)
        runs.append(await floor.submit("once", second))
        await floor.at(100.0)
        assert (await floor.get(runs[1])).fence == 0
        if helped:
            floor.worker("b")
        done = [await floor.until(run) for run in runs]
        assert begun(floor) == [("a", first), ("b" if helped else "a", second)]
        executions = RENEWAL["expect"]["executions"]["b"]
        assert [run.fence for run in done] == [executions, executions]

    on_floor(program, replace(POLICY, lease=TTL, watchdog=1.0, capacity=1))


@pytest.mark.parametrize("block", [RENEWAL["input"]["c"]["block"], 70])
@pytest.mark.parametrize("begins", [1.0, 15.0, 25.0])
def test_case_50_c_a_step_that_blocks_its_loop_never_makes_a_second_result(
    begins: float, block: float
) -> None:
    async def program(floor: Floor) -> None:
        working(floor)
        worker = floor.worker("a")
        run = await floor.submit("once", 30.0)
        await floor.at(begins)
        worker.process.freeze(block)  # no renewal runs either
        floor.worker("b")
        done = await floor.until(run)
        await floor.at(300.0)
        assert await floor.get(run) == done
        kinds = await floor.types(run)
        assert kinds.count("run_completed") == RENEWAL["expect"]["c"]["completed_results"]
        assert done.fence == kinds.count("run_started") <= 2

    on_floor(program, replace(POLICY, lease=TTL, watchdog=1.0))


# --- 52: with workers


@pytest.mark.parametrize("how", WATCHDOG["input"]["cases"])
def test_case_52_whoever_looks_finds_a_dead_workers_run_and_it_is_done_once(how: str) -> None:
    async def program(floor: Floor) -> None:
        working(floor)
        dead = floor.worker("pod-0")
        run = await floor.submit("once", 5.0)
        await floor.at(1.0)
        dead.process.kill()
        started = 2.0
        if how == "watchdog_dead":
            first = floor.worker("pod-1", deaf=True)
            await floor.at(5.0)
            first.process.kill()
            started = 60.0
        await floor.at(started)
        floor.worker("pod-0" if how == "same_name" else "pod-2", deaf=True)
        done = await floor.until(run)
        lease = float(WATCHDOG["input"]["ttl"])
        claimed = floor.times("claimed")[1]
        assert max(lease, started) <= claimed <= max(lease, started) + POLICY.watchdog + 0.1
        kinds, expected = await floor.types(run), WATCHDOG["expect"]["each"]
        assert kinds.count("run_started") == done.fence == expected["attempts"]
        assert kinds.count("run_completed") == expected["completions"]

    on_floor(program, replace(POLICY, lease=float(WATCHDOG["input"]["ttl"])))


# --- 55


@pytest.mark.parametrize("hangs", [False, True])
def test_case_55_whoever_is_cut_off_stops_before_anybody_else_begins(hangs: bool) -> None:
    given, expected = ALONE["input"], ALONE["expect"]

    async def program(floor: Floor) -> None:
        async def effects(work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
            while floor.clock() < 25.0:
                floor.does(work, "effect")
                await asyncio.sleep(1.0)
            yield Done()

        floor.jobs["effects"] = effects
        await floor.submit("effects")
        await floor.at(float(given["last_renewal"]))  # a claim is as good as a renewal
        floor.worker("a", Line((float(given["outage_from"]), 1e6), seconds=0.0, hangs=hangs))
        await floor.at(1.5)
        floor.worker("b", policy=replace(floor.policy, watchdog=0.5))
        await floor.at(30.0)
        mine, others = ([did.at for did in floor.did if did.worker == name] for name in "ab")
        assert 5.0 < max(mine) < expected["A_last_effect_before"]
        assert expected["B_first_effect_min"] <= min(others) <= expected["B_first_effect_min"] + 1
        assert len([at for at in mine if at >= min(others)]) == expected["overlap"]
        (lost,) = floor.times("claim_lost", "a")
        assert max(mine) <= lost < expected["A_last_effect_before"]

    on_floor(program, replace(POLICY, lease=float(given["ttl"])))


# --- 60


@pytest.mark.parametrize("sleeps", [0.1, 0.15, 0.25, 0.3, 0.39])  # at each moment of "reserve"
def test_case_60_the_loser_parks_and_reads_the_winners_result(sleeps: float) -> None:
    async def program(floor: Floor) -> None:
        desk = Desk(floor.clock)
        floor.jobs["order"] = ordering(floor, desk)
        loser = floor.worker("B", Line(seconds=0.0))
        run = await floor.submit("order")
        await floor.at(sleeps)
        loser.process.freeze(10.5)  # it wakes while A is at work, and would be faster
        floor.worker("A", Line(seconds=0.3), policy=replace(POLICY, watchdog=0.1))
        done = await floor.until(run)
        await floor.at(100.0)
        assert {step: desk.steps.count(step) for step in desk.steps} == LOSER["expect"]["effects"]
        assert desk.steps == LOSER["input"]["steps"]
        started = [told.worker for told in floor.told if told.kind == "claimed"]
        assert (started, floor.told[-1].kind) == (["B", "A"], "driven")
        (ended,) = (t.details["ended"] for t in floor.told if (t.worker, t.kind) == ("B", "driven"))
        assert {"lost": "superseded"}[ended] == LOSER["expect"]["B"]
        assert "kept" not in floor.kinds("B")
        found = await loser.manager.store.get(run.run_id, run.owner)  # if it is asked
        assert (found, found.result) == (done, "shipped by A")

    on_floor(program)
