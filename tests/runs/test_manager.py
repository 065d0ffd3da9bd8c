"""Workers that come, die, sleep and leave: each run is driven by one at a time, and to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from labkit.recovery.errors import PolicyError
from labkit.recovery.run_states import IllegalMove, RunExists, UnknownRun
from labkit.runs.job import Ask, Done, Step, Work
from labkit.runs.manager import RunManager, RunPolicy, UnknownJob, new_worker
from labkit.runs.record import AgentRun

from .kit import ANN, BOB, COUNTED, POLICY, STARTED, Floor, Line, on_floor

Steps = AsyncGenerator[Step | Ask | Done, None]
AGAIN = ["run_started"]
STEP = ["node_finished"]

# --- submit


def test_submit_returns_at_once_and_the_run_is_there() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        run = await worker.manager.submit("count", 2.0, owner=ANN, model="m")
        assert floor.clock() < 0.1
        assert (run.status, run.job, run.given, run.model) == ("queued", "count", 2.0, "m")
        assert (await floor.until(run)).status == "completed"

    on_floor(program)


def test_an_unknown_job_is_refused_with_the_names_that_there_are() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        with pytest.raises(UnknownJob, match=r"no job 'cuont'; there is: count, ask"):
            await worker.manager.submit("cuont", owner=ANN)
        assert await floor.store.runs(ANN) == []

    on_floor(program)


def test_a_run_of_a_job_that_a_worker_does_not_know_waits_for_one_that_does() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a", jobs={"ask": floor.ask})
        run = await floor.submit("count")
        await floor.at(30.0)
        assert (await floor.get(run)).status == "queued"
        floor.worker("b")
        assert (await floor.until(run)).worker is None
        assert {did.worker for did in floor.did} == {"b"}

    on_floor(program)


def test_no_two_workers_have_one_name() -> None:
    assert len({new_worker() for _ in range(100)}) == 100


# --- one at a time


def test_two_managers_never_drive_one_run_at_a_time() -> None:
    async def program(floor: Floor) -> None:
        for name in "ab":
            floor.worker(name)
        runs = [await floor.submit("count", 0.5 + 0.1 * number) for number in range(12)]
        for run in runs:
            await floor.until(run)
        assert [await floor.types(run) for run in runs] == [COUNTED] * 12
        assert len(floor.did) == 36
        assert {did.worker for did in floor.did} == {"a", "b"}

    on_floor(program, replace(POLICY, capacity=2))


@pytest.mark.parametrize(("capacity", "seconds"), [(1, 8.0), (3, 4.0)])
def test_no_more_than_the_capacity_are_driven_at_a_time_the_oldest_first(
    capacity: int, seconds: float
) -> None:
    async def program(floor: Floor) -> None:
        running, most, order = 0, 0, []

        async def job(work: Work) -> Steps:
            nonlocal running, most
            running, most = running + 1, max(most, running + 1)
            order.append(work.run.given)
            await asyncio.sleep(1.0)
            running -= 1
            yield Done()

        floor.jobs["job"] = job
        runs = []
        for number in range(7):
            runs.append(await floor.submit("job", number))
            await asyncio.sleep(0.01)
        floor.worker("a")
        for run in runs:
            await floor.until(run)
        assert (most, order) == (capacity, list(range(7)))
        assert floor.clock() < seconds, "there was room, and nobody took the next one"

    on_floor(program, replace(POLICY, capacity=capacity))


# --- a worker that dies


@pytest.mark.parametrize("dies", [0.5, 1.5, 2.5, 3.0])
def test_what_a_dead_worker_held_is_found_within_its_lease_and_a_look(dies: float) -> None:
    async def program(floor: Floor) -> None:
        dead = floor.worker("a")
        run = await floor.submit()
        await floor.at(dies)
        dead.process.kill()
        floor.worker("b", deaf=True)
        assert (await floor.until(run)).fence == 2
        (found,) = floor.times("claimed", "b")
        assert POLICY.lease <= found <= POLICY.lease + POLICY.watchdog + 0.1
        assert floor.closed.count("a") == 0, "a killed process has cleaned up"

    on_floor(program)


def test_a_crash_before_the_first_checkpoint_begins_anew() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.struck(at=0.5)
        await floor.until(run)
        assert [(did.worker, did.what) for did in floor.did] == [
            ("a", 0),
            ("b", 0),
            ("b", 1),
            ("b", 2),
        ]
        assert await floor.types(run) == [*STARTED, *AGAIN, *COUNTED[2:]]

    on_floor(program)


def test_a_crash_between_claim_and_first_line_loses_nothing() -> None:
    async def program(floor: Floor) -> None:
        dead = floor.worker("a")
        run = await floor.submit()
        await floor.at(0.015)  # the claim is written, and its answer is on its way
        assert (await floor.get(run)).status == "running"
        dead.process.kill()
        floor.worker("b")
        await floor.until(run)
        assert [did.worker for did in floor.did] == ["b", "b", "b"]

    on_floor(program)


def test_finished_steps_are_not_done_again() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.struck(at=2.5)
        await floor.until(run)
        done = [(did.worker, did.what, did.fence) for did in floor.did]
        assert done == [("a", 0, 1), ("a", 1, 1), ("a", 2, 1), ("b", 2, 2)]
        assert await floor.types(run) == [*STARTED, *STEP * 2, *AGAIN, *STEP, "run_completed"]

    on_floor(program)


def test_a_worker_that_sleeps_past_its_lease_writes_nothing_when_it_wakes() -> None:
    async def program(floor: Floor) -> None:
        asleep = floor.worker("a")
        run = await floor.submit("count", 3.0)
        await floor.at(1.0)
        asleep.process.freeze(30.0)
        floor.worker("b")
        done = await floor.until(run)
        await floor.at(40.0)
        assert (done.fence, await floor.types(run)) == (2, [*STARTED, *AGAIN, *COUNTED[2:]])
        assert [did.what for did in floor.did if did.worker == "a"] == [0]
        assert floor.closed == ["b", "a"]
        assert "kept" not in floor.kinds("a")
        assert await floor.get(run) == done

    on_floor(program)


def has_begun(floor: Floor, steps: int) -> bool:
    """Whether more than so many steps have begun, those that are done again too."""
    return len(floor.did) > steps


def test_a_run_whose_worker_dies_again_and_again_goes_on_each_time() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.submit()
        for number in range(3):
            worker = floor.worker(f"w{number}")
            await floor.until(run, "running")
            await floor.when(partial(has_begun, floor, 2 * number))
            await asyncio.sleep(1.2)
            worker.process.kill()
        floor.worker("last")
        await floor.until(run)
        assert {did.what for did in floor.did} == {0, 1, 2}

    on_floor(program)


def test_a_claim_whose_answer_was_slow_counts_from_before_it_was_asked_for() -> None:
    async def program(floor: Floor) -> None:
        async def effects(work: Work) -> Steps:
            while floor.clock() < 30.0:
                floor.does(work, "effect")
                await asyncio.sleep(0.5)
            yield Done()

        floor.jobs["effects"] = effects
        await floor.submit("effects")
        floor.worker("a", Line((8.5, 1e6), seconds=4.0))  # claimed at 4, heard of at 8
        await floor.at(9.0)
        floor.worker("b")
        await floor.at(40.0)
        mine, others = ([did.at for did in floor.did if did.worker == name] for name in "ab")
        assert mine
        assert max(mine) < 14.0 <= min(others)

    on_floor(program)


def test_a_worker_that_takes_its_own_lost_run_again_keeps_the_two_apart() -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            while work.fence == 1 and floor.clock() < 15.0:  # deaf to its cancel
                try:
                    await asyncio.sleep(1.0)
                except asyncio.CancelledError:
                    continue
            await asyncio.sleep(20.0)
            yield Done(work.fence)

        floor.jobs["job"] = job
        worker = floor.worker("a", Line((1.0, 9.0)), policy=replace(POLICY, clean_up=10.0))
        run = await floor.submit("job")
        await floor.at(18.0)
        assert (await floor.get(run)).fence == 2
        await worker.manager.shutdown()
        assert (await floor.get(run)).status == "queued", "the newer one was forgotten"
        floor.worker("b")
        assert (await floor.until(run)).result == 3

    on_floor(program)


# --- shutdown


def test_shutdown_hands_every_run_back_and_another_worker_goes_on_at_once() -> None:
    async def program(floor: Floor) -> None:
        first = floor.worker("a")
        runs = [await floor.submit() for _ in range(3)]
        await floor.at(1.5)
        floor.worker("b", policy=replace(POLICY, capacity=10))
        await first.manager.shutdown()
        assert [(await floor.get(run)).status for run in runs] == ["queued"] * 3
        assert floor.closed == ["a"] * 3
        for run in runs:
            await floor.until(run)
        assert floor.clock() < 4.0, "they waited for the end of a lease"
        assert len(floor.did) == 3 * 2 + 3 * 2
        assert floor.kinds("a").count("handed_back") == 3

    on_floor(program)


@pytest.mark.parametrize("moment", [0, 2, 4, 6, 8, 10, 11, 12, 16, 20])
@pytest.mark.parametrize("how", ["shutdown", "cancel"])
def test_a_shutdown_at_any_moment_of_a_claim_loses_nothing(how: str, moment: int) -> None:
    async def program(floor: Floor) -> None:
        first = floor.worker("a", Line(seconds=0.005))
        await floor.at(0.1)
        run = await floor.submit()
        await floor.at(0.1 + moment / 1000)
        if how == "shutdown":
            await first.manager.shutdown()
        else:
            first.serving.cancel()
        await asyncio.wait([first.serving])
        assert (await floor.get(run)).status == "queued"
        floor.worker("b")
        await floor.until(run)
        assert floor.clock() < 4.0, "it waited for the end of a lease"

    on_floor(program)


def test_after_a_shutdown_nothing_is_claimed() -> None:
    async def program(floor: Floor) -> None:
        first = floor.worker("a")
        await floor.at(1.0)
        await first.manager.shutdown()
        await asyncio.wait([first.serving], timeout=0.1)
        assert first.serving.done()
        run = await floor.submit()
        await floor.at(20.0)
        assert (await floor.get(run)).status == "queued"

    on_floor(program)


def test_a_shutdown_during_a_write_waits_for_it_and_that_step_is_not_done_again() -> None:
    async def program(floor: Floor) -> None:
        first = floor.worker("a", Line(seconds=0.4))
        run = await floor.submit()
        await floor.at(0.8 + 1.0 + 0.2)  # its first step is on its way to the store
        await first.manager.shutdown()
        assert (await floor.get(run)).checkpoint == 1
        floor.worker("b")
        await floor.until(run)
        assert [did.what for did in floor.did] == [0, 1, 2]
        assert floor.clock() < 6.0

    on_floor(program)


def test_a_job_that_heeds_no_cancel_holds_nobody_up_longer_than_its_clean_up() -> None:
    async def program(floor: Floor) -> None:
        async def deaf(work: Work) -> Steps:
            for _ in range(100):
                try:
                    await asyncio.sleep(1.0)
                except asyncio.CancelledError:
                    continue
            yield Done("too late")

        floor.jobs["deaf"] = deaf
        first = floor.worker("a")
        run = await floor.submit("deaf")
        await floor.at(1.5)
        await first.manager.shutdown()
        assert floor.clock() == pytest.approx(1.5 + POLICY.clean_up)
        await asyncio.wait([first.serving], timeout=0.1)
        assert first.serving.done()
        assert (await floor.get(run)).status == "running"  # its lease ends by itself
        await floor.at(110.0)
        assert (await floor.get(run)).status == "running"

    on_floor(program)


@pytest.mark.parametrize("after", ["returns", "yields", "is done"])
def test_a_job_that_makes_something_else_of_a_shutdown_is_handed_back_all_the_same(
    after: str,
) -> None:
    async def program(floor: Floor) -> None:
        begun = []

        async def job(work: Work) -> Steps:
            begun.append(work.run.checkpoint)
            try:
                await asyncio.sleep(1.0 if work.run.checkpoint or len(begun) > 1 else 100.0)
            except asyncio.CancelledError:
                if after == "returns":
                    return
            if after == "yields" and len(begun) == 1:
                yield Step("half", {}, "half")
                await asyncio.sleep(100.0)
            yield Done("whole")

        floor.jobs["job"] = job
        first = floor.worker("a")
        run = await floor.submit("job")
        await floor.at(1.0)
        await first.manager.shutdown()
        found = await floor.get(run)
        if after == "is done":  # it has said so itself
            assert (found.status, found.result) == ("completed", "whole")
            return
        assert found.status == "queued"
        floor.worker("b")
        assert (await floor.until(run)).result == "whole"
        assert begun == [None, "half" if after == "yields" else None]

    on_floor(program)


# --- cancel


def test_a_cancel_ends_the_job_here_and_the_run_stays_cancelled() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        run = await floor.submit()
        await floor.at(1.5)
        await worker.manager.cancel(run.run_id, ANN)
        assert (floor.closed, round(floor.clock(), 1)) == (["a"], 1.5)
        await floor.at(30.0)
        assert (await floor.get(run)).status == "cancelled"
        assert await floor.types(run) == [*STARTED, *STEP, "run_cancelled"]
        assert len(floor.did) == 2

    on_floor(program)


@pytest.mark.parametrize(("given", "ends"), [(1.0, 2.1), (100.0, 3.4)])
def test_a_cancel_elsewhere_ends_the_job_at_its_next_write_or_renewal(
    given: float, ends: float
) -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit("count", given)
        await floor.at(1.5)
        await floor.store.cancel(run.run_id, ANN)
        await floor.when(lambda: floor.closed)
        assert floor.clock() == pytest.approx(ends, abs=0.1)
        await floor.at(30.0)
        assert (await floor.get(run)).status == "cancelled"
        assert await floor.types(run) == [*STARTED, *STEP * (given == 1.0), "run_cancelled"]

    on_floor(program)


def test_a_cancel_is_possible_once_and_for_the_owner_alone() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        run = await floor.submit()
        await floor.at(0.5)
        with pytest.raises(UnknownRun):
            await worker.manager.cancel(run.run_id, BOB)
        assert floor.closed == []
        await worker.manager.cancel(run.run_id, ANN)
        with pytest.raises(IllegalMove, match="is cancelled"):
            await worker.manager.cancel(run.run_id, ANN)
        assert (await floor.types(run)).count("run_cancelled") == 1

    on_floor(program)


def test_a_cancel_makes_room_for_another_run() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        long, short = await floor.submit("count", 100.0), await floor.submit()
        await floor.at(1.5)
        assert (await floor.get(short)).status == "queued"
        await worker.manager.cancel(long.run_id, ANN)
        await floor.until(short)
        assert floor.clock() < 5.0

    on_floor(program, replace(POLICY, capacity=1))


def test_a_job_that_heeds_no_cancel_does_not_hold_up_whoever_cancels_it() -> None:
    async def program(floor: Floor) -> None:
        async def deaf(work: Work) -> Steps:
            while floor.clock() < 20.0:
                try:
                    await asyncio.sleep(1.0)
                except asyncio.CancelledError:
                    continue
            yield Done("too late")

        floor.jobs["deaf"] = deaf
        worker = floor.worker("a")
        run = await floor.submit("deaf")
        await floor.at(1.5)
        await worker.manager.cancel(run.run_id, ANN)
        assert floor.clock() == pytest.approx(1.5 + POLICY.clean_up, abs=0.1)
        await floor.at(30.0)
        assert (await floor.get(run)).status == "cancelled"
        assert "late_write" in floor.kinds("a")

    on_floor(program)


# --- a store that is gone


def cut(start: float, end: float, **how: Any) -> tuple[list[str], AgentRun, Floor]:
    """A run of three seconds by a worker whose line is cut: its events, its end, the floor."""

    async def program(floor: Floor) -> tuple[list[str], AgentRun, Floor]:
        floor.worker("a", Line((start, end), **how))
        run = await floor.submit()
        done = await floor.until(run)
        await floor.at(end + 2 * POLICY.watchdog)
        return await floor.types(run), done, floor

    return on_floor(program, replace(POLICY, lease=30.0))


@pytest.mark.parametrize(
    ("start", "where"),
    [(0.0, "at the claim"), (1.5, "in a step"), (1.02, "at a step"), (3.05, "at the end")],
)
def test_a_store_that_is_gone_for_ten_seconds_costs_time_and_nothing_else(
    start: float, where: str
) -> None:
    types, done, floor = cut(start, start + 10.0)
    assert (types, done.fence) == (COUNTED, 1)
    assert [did.what for did in floor.did] == [0, 1, 2]
    expected = "not_claimed" if where == "at the claim" else "not_written"
    assert 0 < floor.kinds("a").count(expected) < 20, "it asks without a pause"


def test_a_store_that_is_gone_for_a_while_ends_no_worker() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a", Line((0.0, 50.0)))
        run = await floor.submit()
        await floor.until(run)
        assert 50.0 < floor.clock() < 50.0 + POLICY.watchdog + 4.0
        assert not worker.serving.done()
        assert len(floor.times("not_claimed")) < 60, "it asks without a pause"

    on_floor(program)


# The calls of a run of three steps: the look before it was there, claim, three steps, the end.
@pytest.mark.parametrize("lost", range(1, 9))
@pytest.mark.parametrize("job", ["count", "ask"])
def test_whichever_answer_is_lost_after_its_commit_each_event_is_written_once(
    job: str, lost: int
) -> None:
    async def program(floor: Floor) -> tuple[list[str], int]:
        line = Line(loses=(lost,))
        floor.worker("a", line)
        run = await floor.submit(job, 4.0)  # so that it is renewed, too
        if job == "ask":
            await floor.until(run, "awaiting_input")
            await floor.store.answer(run.run_id, ANN, "three")
        done = await floor.until(run)
        assert line.calls >= lost, "no answer was lost"
        return await floor.types(run), done.fence

    types, fence = on_floor(program)
    if job == "count":
        claims = ["run_started"] * fence
        assert types == ["run_created", *claims, *COUNTED[2:]]
    else:
        told = [kind for kind in types if kind != "run_started"]
        asked = ["node_finished", "awaiting_input", "input_received"]
        assert told == ["run_created", *asked, "node_finished", "run_completed"]
        assert types.count("run_started") == fence
    # only the answer of a claim costs a lease: nobody knows which run it was
    assert fence <= (2 if job == "count" else 3)


@pytest.mark.parametrize("kind", ["fails", "is handed back"])
def test_an_end_whose_answer_is_lost_is_written_once(kind: str) -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            await asyncio.sleep(1.0)
            if kind == "fails":
                raise ValueError("no")
            await asyncio.sleep(2.0)
            yield Done()

        floor.jobs["job"] = job
        line = Line()
        first = floor.worker("a", line)
        run = await floor.submit("job")
        await floor.at(0.5)
        line.loses = (line.calls + 1,)
        if kind == "fails":
            assert (await floor.until(run)).error_code == "ValueError"
            await floor.at(5.0)
            assert await floor.types(run) == [*STARTED, "run_failed"]
            return
        await first.manager.shutdown()
        floor.worker("b")
        await floor.until(run)
        assert floor.clock() < 5.0, "it waited for the end of a lease"
        assert await floor.types(run) == [*STARTED, *AGAIN, "run_completed"]

    on_floor(program)


def test_a_store_that_is_gone_for_longer_than_a_lease_loses_nothing() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a", Line((1.5, 30.0)))
        run = await floor.submit()
        done = await floor.until(run)
        assert (done.status, done.fence) == ("completed", 2)
        assert await floor.types(run) == [*STARTED, "node_finished", *AGAIN, *COUNTED[3:]]
        assert [did.what for did in floor.did] == [0, 1, 1, 2]
        await asyncio.sleep(0.1)
        assert floor.closed == ["a", "a"]

    on_floor(program)


def test_renewals_that_fail_for_a_while_cost_no_claim() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a", Line((3.0, 7.0), (14.0, 17.0)))
        run = await floor.submit("count", 20.0)
        floor.worker("b")
        assert (await floor.until(run)).fence == 1
        assert floor.kinds("a").count("not_renewed") >= 5
        assert "claimed" not in floor.kinds("b")

    on_floor(program)


# --- questions and retries


def test_an_answer_is_given_to_the_job_and_no_worker_waits_for_it() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a")
        run = await floor.submit("ask")
        asked = await floor.until(run, "awaiting_input")
        assert (asked.question, asked.worker) == ("how many?", None)
        await worker.manager.shutdown()
        await floor.at(1000.0)
        await floor.store.answer(run.run_id, ANN, "three")
        floor.worker("b")
        assert (await floor.until(run)).result == "three"
        assert [did.what for did in floor.did] == [None, "three"]
        assert (await floor.events(run))[-2].data == {"node": "second", "answer": "three"}

    on_floor(program)


def test_an_answer_is_there_again_after_a_crash_before_the_next_step_and_gone_after_it() -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            floor.does(work, work.run.answer)
            if work.run.checkpoint is None:
                yield Ask("how many?", "asked")
            if work.run.checkpoint == "asked":
                await asyncio.sleep(1.0)
                yield Step("used", {}, "used")
            await asyncio.sleep(1.0)
            yield Done("end")

        floor.jobs["job"] = job
        dead = floor.worker("a")
        run = await floor.submit("job")
        await floor.until(run, "awaiting_input")
        await floor.store.answer(run.run_id, ANN, "three")
        await asyncio.sleep(0.5)
        dead.process.kill()
        second = floor.worker("b")
        await floor.when(lambda: "kept" in floor.kinds("b"))
        await asyncio.sleep(0.2)
        second.process.kill()
        floor.worker("c")
        await floor.until(run)
        assert [(did.worker, did.what) for did in floor.did] == [
            ("a", None),
            ("a", "three"),
            ("b", "three"),
            ("c", None),
        ]

    on_floor(program)


def test_a_retry_goes_on_from_the_checkpoint_with_another_model() -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            floor.does(work, work.run.model)
            if work.run.checkpoint is None:
                yield Step("first", {}, "first")
            if work.run.model != "large":
                raise ValueError("too small")
            yield Done(work.run.model)

        floor.jobs["job"] = job
        floor.worker("a")
        run = await floor.submit("job", model="small")
        failed = await floor.until(run)
        assert (failed.status, failed.error_code, failed.error_message) == (
            "failed",
            "ValueError",
            "too small",
        )
        await floor.store.retry(run.run_id, ANN, model="large")
        done = await floor.until(run, "completed")
        assert (done.result, done.error_code, done.error_message) == ("large", None, None)
        assert [did.what for did in floor.did] == ["small", "large"]
        assert await floor.types(run) == [*STARTED, *STEP, "run_failed", *AGAIN, "run_completed"]

    on_floor(program)


# --- policies


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "30", None])
@pytest.mark.parametrize("name", ["lease", "watchdog", "capacity", "starts"])
def test_a_policy_that_is_no_policy_is_told_by_name(name: str, wrong: Any) -> None:
    with pytest.raises(PolicyError, match=f"^{name} is "):
        RunPolicy(**{name: wrong})


def test_each_wrong_field_of_a_policy_is_named() -> None:
    with pytest.raises(PolicyError) as raised:
        RunPolicy(lease=0, watchdog=-1, capacity=1.5, clean_up=float("nan"), starts=2.5)  # type: ignore[arg-type]
    assert [part.split()[0] for part in str(raised.value).split("; ")] == [
        "lease",
        "watchdog",
        "capacity",
        "clean_up",
        "starts",
    ]
    RunPolicy(lease=0.01, clean_up=0.0)


# --- what kills its workers, and what a shutdown may miss


def test_a_run_that_was_started_too_often_without_a_step_has_failed() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.submit("count", 100.0)
        for name in "abc":
            worker = floor.worker(name)
            await floor.at(floor.clock() + 1.0)
            worker.process.kill()
            await floor.at(floor.clock() + 12.0)
        floor.worker("d")
        found = await floor.until(run, "failed")
        assert (found.error_code, found.starts, found.fence) == ("TooManyStarts", 0, 4)
        again = await floor.store.retry(run.run_id, ANN)
        assert again.status == "queued"
        await floor.at(floor.clock() + 3.0)
        assert (await floor.get(run)).status == "running"

    on_floor(program, replace(POLICY, starts=3))


def test_a_step_that_is_done_forgives_the_starts_before_it() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.submit("count", 2.0)
        for name in "abc":  # each does one step, and dies in the next
            worker = floor.worker(name)
            await floor.at(floor.clock() + 3.0)
            worker.process.kill()
            await floor.at(floor.clock() + 12.0)
        floor.worker("d")
        await floor.until(run, "completed")

    on_floor(program, replace(POLICY, starts=1))


def test_a_shutdown_before_the_work_has_begun_hands_it_back() -> None:
    async def program(floor: Floor) -> None:
        manager = floor.worker("a").manager
        tell, ends = manager._observe, []

        def at_once(kind: str, **details: Any) -> None:
            tell(kind, **details)
            if kind == "claimed":
                ends.append(asyncio.create_task(manager.shutdown()))

        manager._observe = at_once  # type: ignore[assignment]
        run = await floor.submit("count")
        await floor.at(3.0)
        assert ends
        assert (await floor.get(run)).status == "queued"

    on_floor(program)


@pytest.mark.parametrize("lease", [0.001, 0.009])
def test_a_lease_that_is_over_before_it_is_heard_of_is_refused(lease: float) -> None:
    with pytest.raises(PolicyError, match=r"must be at least 0\.01 s"):
        RunPolicy(lease=lease)


def test_a_submit_with_an_id_of_its_own_can_be_asked_for_again() -> None:
    async def program(floor: Floor) -> None:
        manager = floor.worker("a").manager
        await manager.submit("count", owner=ANN, run_id="mine")
        with pytest.raises(RunExists):
            await manager.submit("count", owner=ANN, run_id="mine")

    on_floor(program)


@pytest.mark.parametrize("seconds", [0.6, 3.0])  # less, and more, than it waits for
def test_a_claim_that_is_under_way_at_a_shutdown_is_handed_back(seconds: float) -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a", Line(seconds=seconds))
        run = await floor.submit()
        await asyncio.sleep(1.5 * seconds)  # the store has given it away, and "a" does not know
        assert (await floor.get(run)).status == "running"
        began = floor.clock()
        await worker.manager.shutdown()
        assert floor.clock() - began <= 3.0 * seconds
        if seconds > 1.0:  # it has waited, and the claim is given up when it is there
            await asyncio.wait([worker.serving])
        assert (await floor.get(run)).status == "queued"

    on_floor(program)


def test_a_shutdown_does_not_wait_for_a_claim_that_hangs() -> None:
    async def program(floor: Floor) -> None:
        worker = floor.worker("a", Line((0.0, 1e6), hangs=True))
        await asyncio.sleep(1.0)
        await worker.manager.shutdown()
        assert floor.clock() == 2.0

    on_floor(program)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"jobs": None}, "jobs is None, and must be a dict of each job by its name"),
        ({"jobs": ["order"]}, "jobs is .*, and must be a dict"),
        ({"worker": ""}, "worker is '', .*: give each worker a name that no other has"),
        ({"worker": None}, "worker is None, and must be a text"),
        ({"policy": None}, "policy is None, and must be a RunPolicy"),
        ({"policy": 30.0}, "policy is 30.0, and must be a RunPolicy"),
    ],
)
def test_what_a_manager_cannot_work_with_is_refused_when_it_is_made(
    wrong: dict[str, Any], said: str
) -> None:
    given: dict[str, Any] = {"jobs": {}, "worker": "a", "policy": POLICY}
    with pytest.raises(PolicyError, match=said):
        RunManager(None, **given | wrong)  # type: ignore[arg-type]  # no store is asked


@pytest.mark.parametrize("how", ["gone", "cancelled"])
def test_a_shutdown_ends_in_order_whatever_becomes_of_a_run_that_was_not_begun(how: str) -> None:
    async def program(floor: Floor) -> None:
        worker, run = floor.worker("a"), await floor.submit()
        tell, ends = worker.manager._observe, list[asyncio.Task[Any]]()

        def at_once(kind: str, **details: Any) -> None:
            tell(kind, **details)
            if kind == "claimed":
                ends.append(asyncio.create_task(worker.manager.shutdown()))
                if how == "gone":
                    worker.line.cuts.append((floor.clock(), 1e6))
                else:
                    ends.append(asyncio.create_task(floor.store.cancel(run.run_id, ANN)))

        worker.manager._observe = at_once  # type: ignore[assignment]
        await worker.serving
        await asyncio.gather(*ends)
        expected = "running" if how == "gone" else "cancelled"
        assert (ends != [], (await floor.get(run)).status) == (True, expected)

    on_floor(program)


def test_a_job_that_heeds_no_loss_of_its_claim_is_told_as_lost() -> None:
    async def program(floor: Floor) -> None:
        async def deaf(work: Work) -> Steps:
            while floor.clock() < 20.0:
                try:
                    await asyncio.sleep(1.0)
                except asyncio.CancelledError:
                    continue
            yield Done("too late")

        floor.jobs["deaf"] = deaf
        floor.worker("a")
        run = await floor.submit("deaf")
        await floor.at(1.5)
        await floor.store.cancel(run.run_id, ANN)
        await floor.at(10.0)
        assert floor.kinds("a") == ["claimed", "claim_lost", "driven"]
        assert floor.told[-1].details["ended"] == "lost"

    on_floor(program)


def test_a_run_that_cannot_be_worked_on_is_told_and_the_worker_goes_on() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit()
        await floor.at(0.015)  # it is claimed, and the answer is on its way
        del floor.jobs["count"]
        await floor.until(await floor.submit("ask"), "awaiting_input")
        (broken,) = [told.details for told in floor.told if told.kind == "broken"]
        assert broken == {"run": run.run_id, "error": "KeyError"}

    on_floor(program)


@pytest.mark.parametrize("job", [None, 7, ["count"]])
def test_what_is_no_name_of_a_job_is_refused_as_an_unknown_one(job: Any) -> None:
    async def program(floor: Floor) -> None:
        with pytest.raises(UnknownJob, match="there is: count, ask"):
            await floor.worker("a").manager.submit(job, owner=ANN)

    on_floor(program)
