"""One run in one worker's hands: what its job yields and raises, and a claim that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.run_states import LeaseLost
from labkit.runs.job import Ask, Done, Job, Step, Work
from labkit.runs.manager import RunManager
from labkit.runs.record import AgentRun
from labkit.stores.errors import StoreDown

from .desk import ORDER, Desk, ordering
from .kit import ANN, COUNTED, POLICY, STARTED, Floor, Line, on_floor

Steps = AsyncGenerator[Step | Ask | Done, None]


def ended(job: Job, **how: Any) -> AgentRun:
    """A run of one job, when it has ended or asks."""

    async def program(floor: Floor) -> AgentRun:
        floor.jobs["job"] = job
        floor.worker("a")
        run = await floor.submit("job", **how)
        found = await floor.until(run, "completed", "failed", "awaiting_input")
        await asyncio.sleep(0.1)  # for whatever its worker may still do
        return found

    return on_floor(program)


def with_job(program: Callable[[Floor, AgentRun], Any], job: Callable[[Floor], Job]) -> Any:
    """`program` on a floor where worker "a" drives a run of the job."""

    async def whole(floor: Floor) -> Any:
        floor.jobs["job"] = job(floor)
        floor.worker("a")
        return await program(floor, await floor.submit("job"))

    return on_floor(whole)


# --- what a job yields


@pytest.mark.parametrize("nonsense", [None, "step", 7, {"node": "a"}, Step, ("a", {})])
def test_a_job_that_yields_nonsense_fails_and_is_told_what_a_job_yields(nonsense: Any) -> None:
    async def job(work: Work) -> Steps:
        yield nonsense

    run = ended(job)
    assert (run.status, run.error_code) == ("failed", "TypeError")
    assert str(run.error_message).startswith("a job yields Step, Ask or Done, not ")


@pytest.mark.parametrize(
    "nonsense",
    [Step("a", None), Ask(None), Step("a", {}, object()), Done(object()), Step("a", {"b": {1}})],  # type: ignore[arg-type]
)
def test_what_cannot_be_kept_fails_the_run_and_nothing_is_half_kept(nonsense: Any) -> None:
    async def job(work: Work) -> Steps:
        yield Step("whole", {}, "whole")
        yield nonsense

    async def program(floor: Floor, run: AgentRun) -> None:
        found = await floor.until(run, "failed")
        assert (found.error_code is not None, found.checkpoint) == (True, "whole")
        assert await floor.types(run) == [*STARTED, "node_finished", "run_failed"]

    with_job(program, lambda floor: job)


@pytest.mark.parametrize("yields", [0, 2])
def test_a_job_that_ends_without_a_word_is_done(yields: int) -> None:
    async def job(work: Work) -> Steps:
        for number in range(yields):
            yield Step("step", {}, number)

    run = ended(job)
    assert (run.status, run.result, run.end_reason) == ("completed", None, "done")


def test_what_a_job_does_after_done_is_not_done() -> None:
    went_on = []

    async def job(work: Work) -> Steps:
        yield Done("first", "because")
        went_on.append(work.run.run_id)

    run = ended(job)
    assert went_on == []
    assert (run.status, run.result, run.end_reason) == ("completed", "first", "because")


def test_a_job_that_raises_before_its_first_step_fails() -> None:
    async def job(work: Work) -> Steps:
        raise ValueError("no order")
        yield Done()

    run = ended(job)
    assert (run.status, run.error_code, run.error_message) == ("failed", "ValueError", "no order")


@pytest.mark.parametrize("kind", ["a coroutine function", "a function", "one that raises"])
def test_what_is_no_job_fails_each_run_of_it(kind: str) -> None:
    async def coroutine(work: Work) -> None:
        """No generator."""

    def raises(work: Work) -> None:
        raise ValueError("no job")

    made = coroutine(None)  # type: ignore[arg-type]  # never awaited
    jobs: dict[str, Any] = {
        "a coroutine function": lambda work: made,
        "a function": lambda work: None,
        "one that raises": raises,
    }
    run = ended(jobs[kind])
    made.close()
    assert run.status == "failed"
    if kind != "one that raises":
        assert str(run.error_message).startswith("a job is an async generator of its steps, not ")


def test_a_job_may_ask_twice_and_gets_each_answer() -> None:
    async def job(work: Work) -> Steps:
        if work.run.checkpoint is None:
            yield Ask("first?", ["asked"])
        elif len(work.run.checkpoint) == 1:
            yield Ask("second?", [work.run.answer, "asked"])
        else:
            yield Done([work.run.checkpoint[0], work.run.answer])

    async def program(floor: Floor, run: AgentRun) -> None:
        for question, answer in (("first?", "one"), ("second?", "two")):
            asked = await floor.until(run, "awaiting_input")
            assert (asked.question, asked.answer) == (question, None)
            await floor.store.answer(run.run_id, ANN, answer)
        assert (await floor.until(run, "completed")).result == ["one", "two"]
        asks = ["awaiting_input", "input_received", "run_started"]
        assert await floor.types(run) == [*STARTED, *asks, *asks, "run_completed"]

    with_job(program, lambda floor: job)


def test_the_texts_of_an_event_and_a_question_are_cut() -> None:
    async def job(work: Work) -> Steps:
        yield Step("step", {"short": "x", "long": "x" * 1000, "number": 7}, "x" * 1000)
        yield Ask("?" * 1000)

    async def program(floor: Floor, run: AgentRun) -> None:
        asked = await floor.until(run, "awaiting_input")
        assert (len(asked.question or ""), len(asked.checkpoint or "")) == (300, 0)
        step = (await floor.events(run))[2]
        assert step.data == {"node": "step", "short": "x", "long": "x" * 300, "number": 7}

    with_job(program, lambda floor: job)


# --- what a job raises

KINDS = {
    "quota": "QUOTA_EXCEEDED",
    "rate_limit": "RATE_LIMITED",
    "auth": "AUTH",
    "permission": "AUTH",
    "timeout": "TIMEOUT",
    "connect": "ProviderError",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_of_a_provider_becomes_its_code(kind: str) -> None:
    async def job(work: Work) -> Steps:
        yield Step("first", {}, 1)
        raise ProviderError("no", kind=kind)

    run = ended(job)
    assert (run.status, run.error_code, run.checkpoint) == ("failed", KINDS[kind], 1)


def test_no_error_of_a_job_shows_a_secret_and_each_is_short() -> None:
    async def job(work: Work) -> Steps:
        raise ValueError("Authorization: Bearer abcdef123456 " + "x" * 1000)
        yield Done()

    told = ended(job).error_message or ""
    assert (len(told), "abcdef" in told) == (300, False)


def test_a_cancel_that_nobody_asked_for_is_a_failure_and_no_end_without_one() -> None:
    async def job(work: Work) -> Steps:
        yield Step("first", {}, 1)
        raise asyncio.CancelledError

    async def program(floor: Floor, run: AgentRun) -> None:
        failed = await floor.until(run, "failed", within=20.0)
        assert (failed.error_code, failed.fence) == ("CancelledError", 1)

    with_job(program, lambda floor: job)


def test_an_error_without_words_fails_the_run_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def job(work: Work) -> Steps:
        raise Mute
        yield Done()

    async def program(floor: Floor, run: AgentRun) -> None:
        assert (await floor.until(run, within=60.0)).error_code == "Mute"

    with_job(program, lambda floor: job)


def test_an_error_is_kept_when_the_store_is_back() -> None:
    async def job(work: Work) -> Steps:
        await asyncio.sleep(1.0)
        raise ValueError("no")
        yield Done()

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        floor.worker("a", Line((0.5, 5.0)))
        run = await floor.submit("job")
        assert (await floor.until(run)).error_code == "ValueError"
        assert await floor.types(run) == [*STARTED, "run_failed"]

    on_floor(program)


# --- a claim that is lost


async def taken(floor: Floor, run: AgentRun, at: float) -> None:
    """Another takes the run over, as if its worker had slept past its lease."""
    await floor.at(at)
    await floor.store.cancel(run.run_id, ANN)


def test_a_late_write_is_refused_and_seen_and_the_job_is_closed_and_tells_nothing_more() -> None:
    async def program(floor: Floor) -> None:
        a = floor.worker("a")
        run = await floor.submit("count", 2.0)
        await floor.at(1.0)
        a.process.freeze(20.0)
        await floor.at(15.0)
        held = await floor.store.claim("b", length=100.0, run_id=run.run_id)
        assert held is not None
        await floor.at(40.0)
        assert floor.closed == ["a"]
        (late,) = floor.times("late_write")
        told = [t for t in floor.told if t.worker == "a" and t.kind != "frozen" and t.at >= late]
        assert [t.kind for t in told] == ["late_write", "driven"]
        assert "held by b with fence 2" in told[0].details["told"]
        assert told[1].details["ended"] == "lost"
        assert await floor.types(run) == [*STARTED, "run_started"]
        assert (await floor.get(run)).worker == "b"

    on_floor(program)


@pytest.mark.parametrize(
    "last", [Step("late", {}, 1), Ask("late?"), Done("late"), ValueError("late")]
)
def test_no_kind_of_late_write_changes_anything(last: Any) -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            await asyncio.sleep(0.5)
            floor.does(work, "woke")
            if isinstance(last, Exception):
                raise last
            yield last

        floor.jobs["job"] = job
        a = floor.worker("a")
        run = await floor.submit("job")
        await floor.at(0.2)
        a.process.freeze(20.0)
        await floor.at(15.0)
        await floor.store.claim("b", length=100.0, run_id=run.run_id)
        before = await floor.get(run)
        await floor.at(40.0)
        assert await floor.get(run) == before
        assert [did.what for did in floor.did] == ["woke"]
        assert floor.kinds("a").count("late_write") == 1

    on_floor(program)


def test_a_job_that_sees_by_itself_that_its_claim_is_lost_ends_no_run() -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            await asyncio.sleep(1.0)
            assert await work.renewal.lost_by_now(ask=True)
            floor.does(work, work.renewal.lost)
            return
            yield Done()

        floor.jobs["job"] = job
        floor.worker("a")
        run = await floor.submit("job")
        await floor.at(0.5)
        await floor.store.cancel(run.run_id, ANN)
        await floor.at(5.0)
        assert [did.what for did in floor.did] == ["another has taken it over"]
        assert (await floor.get(run)).status == "cancelled"

    on_floor(program)


def test_whoever_has_lost_a_claim_by_its_own_clock_writes_nothing_more() -> None:
    """The store is back, and would take it: the lease has not ended yet."""

    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            try:
                await asyncio.sleep(100.0)
            except asyncio.CancelledError:
                floor.does(work, "cancelled")
            yield Done("done by halves")

        floor.jobs["job"] = job
        floor.worker("a", Line((1.0, 8.0)))
        run = await floor.submit("job")
        await floor.at(9.5)
        assert (await floor.get(run)).status == "running"
        assert [did.what for did in floor.did] == ["cancelled"]
        assert floor.did[0].at < 8.0

    on_floor(program)


@pytest.mark.parametrize("raised", [ValueError("in the clean-up"), StoreDown("in the clean-up")])
def test_a_clean_up_that_fails_changes_nothing_for_a_run_that_is_lost(raised: Exception) -> None:
    async def program(floor: Floor) -> None:
        async def job(work: Work) -> Steps:
            try:
                await asyncio.sleep(100.0)
                yield Done()
            finally:
                raise raised

        floor.jobs["job"] = job
        floor.worker("a")
        run = await floor.submit("job")
        await floor.at(1.0)
        await floor.store.cancel(run.run_id, ANN)
        await floor.at(30.0)
        assert (await floor.get(run)).status == "cancelled"
        assert await floor.types(run) == [*STARTED, "run_cancelled"]

    on_floor(program)


def test_a_job_that_says_wrongly_that_its_claim_is_lost_has_failed() -> None:
    async def job(work: Work) -> Steps:
        raise LeaseLost("I have seen it")
        yield Done()

    async def program(floor: Floor, run: AgentRun) -> None:
        await floor.at(5.0)
        assert await floor.types(run) == [*STARTED, "run_failed"]
        assert (await floor.get(run)).error_code == "LEASE_LOST"

    with_job(program, lambda floor: job)


# --- effects of steps, each once


@pytest.mark.parametrize("dies", [0.1 * tenths for tenths in range(1, 16)])
def test_an_order_whose_worker_dies_at_any_moment_has_each_effect_once(dies: float) -> None:
    async def program(floor: Floor) -> None:
        desk = Desk(floor.clock)
        floor.jobs["order"] = ordering(floor, desk)
        run = await floor.struck("order", at=dies)
        done = await floor.until(run)
        assert (done.status, desk.steps) == ("completed", list(ORDER))

    on_floor(program, replace(POLICY, lease=6.0))


@pytest.mark.parametrize("sleeps", [0.1 * tenths for tenths in range(1, 13)])
def test_an_order_whose_worker_sleeps_past_its_lease_has_each_effect_once(sleeps: float) -> None:
    async def program(floor: Floor) -> None:
        desk = Desk(floor.clock)
        floor.jobs["order"] = ordering(floor, desk)
        run = await floor.struck("order", at=sleeps, frozen=8.5)  # it wakes while b is at work
        done = await floor.until(run)
        await floor.at(40.0)
        assert (done.status, done.result) == ("completed", "shipped by b")
        assert desk.steps == list(ORDER)
        assert (await floor.types(run)).count("run_completed") == 1
        assert await floor.get(run) == done

    on_floor(program, replace(POLICY, lease=6.0))


def test_a_whole_run_tells_its_events_and_nothing_else() -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a")
        run = await floor.submit()
        await floor.until(run)
        assert await floor.types(run) == COUNTED
        await asyncio.sleep(1.0)
        assert floor.kinds() == ["claimed", *["kept"] * 4, "driven"]
        assert floor.told[-1].details == {"run": run.run_id, "fence": 1, "ended": "completed"}

    on_floor(program)


# --- what would end the worker, and what comes of a cancel


class OutOfNowhere(BaseException):
    """What no worker should die of."""


@pytest.mark.parametrize("error", [SystemExit(3), OutOfNowhere("x")])
def test_what_would_end_the_worker_fails_the_run_and_the_worker_goes_on(
    error: BaseException,
) -> None:
    async def job(work: Work) -> Steps:
        raise error
        yield Done()

    async def program(floor: Floor, run: AgentRun) -> None:
        found = await floor.until(run, "failed")
        assert found.error_code == type(error).__name__
        await floor.until(await floor.submit("count"))

    with_job(program, lambda floor: job)


def test_a_job_that_makes_another_error_of_a_cancel_is_handed_back() -> None:
    async def job(work: Work) -> Steps:
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            raise ConnectionError("aborted") from None
        yield Done()

    async def program(floor: Floor, run: AgentRun) -> None:
        await floor.at(2.0)
        await floor.workers[0].manager.shutdown()
        found = await floor.get(run)
        assert (found.status, found.worker) == ("queued", None)

    with_job(program, lambda floor: job)


def test_a_run_is_handed_back_also_after_a_step_whose_answer_was_lost() -> None:
    async def program(floor: Floor) -> None:
        run = await floor.submit("count", 1.0)
        line = Line(loses=tuple(range(2, 100)))  # all but that of the claim
        worker = floor.worker("a", line)
        await floor.at(1.3)  # the step is kept, and its worker has not heard of it
        assert len(await floor.types(run)) == 3
        await worker.manager.shutdown()
        assert (await floor.get(run)).status == "queued"

    on_floor(program)


def test_an_observer_that_fails_decides_about_no_run() -> None:
    def broken(kind: str, **details: Any) -> None:
        raise BrokenPipeError(kind)

    async def program(floor: Floor) -> None:
        store, jobs = floor.store, floor.jobs
        manager = RunManager(store, jobs, worker="a", policy=POLICY, observe=broken)
        serving = asyncio.create_task(manager.serve())
        await floor.until(await floor.submit("count"), "completed")
        await manager.shutdown()
        await serving

    on_floor(program)


# --- a cancel or a deadline of the job's own


@pytest.mark.parametrize("then", ["waits", "yields", "ends"])
def test_a_job_that_cancels_itself_has_failed_and_is_not_done_again_and_again(then: str) -> None:
    async def job(work: Work) -> Steps:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if then == "waits":
            await asyncio.sleep(1.0)
        if then == "yields":
            yield Step("first", {}, 1)

    async def program(floor: Floor, run: AgentRun) -> None:
        over = await floor.until(run, within=20.0)
        assert over.fence == 1
        assert (over.status, over.error_code) == {
            "waits": ("failed", "CancelledError"),
            "yields": ("failed", "CancelledError"),
            "ends": ("completed", None),
        }[then]

    with_job(program, lambda floor: job)


def test_a_deadline_of_the_jobs_own_that_passes_while_a_step_is_kept_is_a_timeout() -> None:
    async def job(work: Work) -> Steps:
        async with asyncio.timeout(2.0):
            for number in range(100):
                await asyncio.sleep(0.1)
                yield Step("count", {"number": number}, number)

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        floor.worker("a", Line(seconds=1.0))  # it is being written for most of the time
        over = await floor.until(await floor.submit("job"), within=60.0)
        assert (over.status, over.error_code, over.fence) == ("failed", "TIMEOUT", 1)

    on_floor(program)


def test_a_job_may_go_on_after_a_deadline_of_its_own() -> None:
    async def job(work: Work) -> Steps:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.0):
                await asyncio.sleep(0.5)
                yield Step("slow", {}, 1)
        yield Step("quick", {}, 2)

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        floor.worker("a", Line(seconds=1.0))
        run = await floor.submit("job")
        assert (await floor.until(run, within=60.0)).status == "completed"
        nodes = [event.data["node"] for event in await floor.events(run) if "node" in event.data]
        assert nodes == ["slow", "quick"]

    on_floor(program)


@pytest.mark.parametrize("lease", [10.0, 3_600.0])
def test_a_store_that_is_back_is_written_to_soon_however_long_the_lease_is(lease: float) -> None:
    async def program(floor: Floor) -> None:
        floor.worker("a", Line((1.0, 3.0)), policy=replace(POLICY, lease=lease))
        run = await floor.submit()
        await floor.until(run, within=10.0)

    on_floor(program)


def test_a_run_whose_workers_are_always_ended_in_order_is_given_up_too() -> None:
    async def job(work: Work) -> Steps:
        await asyncio.sleep(60.0)
        yield Step("never", {}, 1)

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        policy = replace(POLICY, starts=5)
        run = await floor.submit("job")
        for number in range(6):
            worker = floor.worker(f"w{number}", policy=policy)
            await asyncio.sleep(5.0)
            await worker.manager.shutdown()
        over = await floor.get(run)
        assert (over.status, over.error_code, over.starts) == ("failed", "TooManyStarts", 0)

    on_floor(program)


@pytest.mark.parametrize("fails", [False, True])
def test_a_write_that_was_refused_is_the_last_that_is_tried(fails: bool) -> None:
    async def job(work: Work) -> Steps:
        await asyncio.sleep(1.0)
        if fails:
            raise ValueError("late")
        yield Step("late", {}, 1)

    async def program(floor: Floor, run: AgentRun) -> None:
        await floor.at(0.5)
        await floor.store.cancel(run.run_id, ANN)
        await floor.at(2.0)  # before its worker asks for a renewal
        assert floor.kinds("a") == ["claimed", "late_write", "driven"]
        assert floor.told[-1].details["ended"] == "lost"

    with_job(program, lambda floor: job)


def test_a_run_whose_end_was_just_being_written_is_not_handed_back() -> None:
    async def job(work: Work) -> Steps:
        yield Done("whole")

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        run = await floor.submit("job")
        worker = floor.worker("a", Line(seconds=0.4), policy=replace(POLICY, capacity=1))
        await floor.at(0.8 + 0.2)  # its end is on its way to the store
        await worker.manager.shutdown()
        await asyncio.sleep(2.0)  # for what may still be under way
        assert (await floor.get(run)).result == "whole"
        assert "late_write" not in floor.kinds("a")

    on_floor(program)


@pytest.mark.parametrize("what", ["the store is gone", "it was cancelled", "its job raises"])
def test_a_shutdown_leaves_no_error_behind_that_nobody_has_seen(what: str) -> None:
    async def job(work: Work) -> Steps:
        try:
            await asyncio.sleep(100.0)
        except asyncio.CancelledError:
            if what == "its job raises":
                raise ConnectionError("aborted") from None
            raise
        yield Done()

    async def program(floor: Floor) -> None:
        floor.jobs["job"] = job
        loop: Any = asyncio.get_running_loop()
        worker, run = floor.worker("a"), await floor.submit("job")
        await floor.at(1.5)
        if what == "the store is gone":
            worker.line.cuts.append((1.0, 5.0))
        elif what == "it was cancelled":
            await floor.store.cancel(run.run_id, ANN)
        await worker.manager.shutdown()
        await worker.serving
        assert (loop.unhandled, loop.tasks.unseen()) == ([], [])

    on_floor(program)


def test_the_texts_beside_a_question_are_cut() -> None:
    async def job(work: Work) -> Steps:
        yield Ask("which one?", None, {"long": "x" * 1000})

    async def program(floor: Floor, run: AgentRun) -> None:
        await floor.until(run, "awaiting_input")
        told = (await floor.events(run))[-1].data
        assert told == {"question": "which one?", "long": "x" * 300}

    with_job(program, lambda floor: job)


def test_ctrl_c_in_the_middle_of_a_job_is_no_failure_of_its_run() -> None:
    async def job(work: Work) -> Steps:
        raise KeyboardInterrupt
        yield Done()

    async def program(floor: Floor, run: AgentRun) -> None:
        await floor.until(run)

    with pytest.raises(KeyboardInterrupt):
        with_job(program, lambda floor: job)
