"""The contract of the run store on both databases: one worker at a time, and every event."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from labkit.recovery import lease
from labkit.recovery.errors import PolicyError
from labkit.recovery.run_states import (
    CANCELLED,
    ENDED,
    MOVES,
    QUEUED,
    RUNNING,
    STATES,
    IllegalMove,
    LeaseLost,
    RunExists,
    UnknownRun,
)
from labkit.recovery.stream.record import Owner
from labkit.runs.codes import MOST
from labkit.runs.database import StoreClosed
from labkit.runs.record import BadRun, Held
from labkit.runs.store import RunStore
from labkit.runs.tables import RUNS
from tests.services.processes import until

from .conftest import every_database, on_postgresql
from .storing import (
    LENGTH,
    OWNER,
    STRANGERS,
    WRITES,
    Clock,
    Gate,
    changed,
    claimed,
    in_memory,
    in_state,
    later,
    moved,
    now,
    run,
    submitted,
    together,
    told,
    written,
)

Opened = Callable[[], RunStore]
OF_WORKERS = [*WRITES, "renew"]
TEXTS = pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud83d", "שלום 🙂", "\u2028\r\n", '"\\u0000"', "'; --", "x" * 100_000],
    ids=["nothing", "NUL", "half a pair", "right to left", "line ends", "an escape", "SQL", "much"],
)

# --- for whoever has a run done


@every_database
def test_a_run_that_was_submitted_is_there_for_another_process_at_once(
    url: str, store: RunStore
) -> None:
    look = (
        "import asyncio, sys, json\n"
        "from labkit.runs.opening import open_run_store\n"
        "from labkit.recovery.stream.record import Owner\n"
        "store = open_run_store(sys.argv[1])\n"
        "run = asyncio.run(store.get(sys.argv[2], Owner(user='ann', tenant='acme')))\n"
        "print(json.dumps([run.job, run.given, run.model, run.status, run.fence, run.seq]))\n"
        "store.close()\n"
    )
    new = run(submitted(store))
    line = [sys.executable, "-c", look, url, new.run_id]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == ["order", {"order": 7}, "fake", "queued", 0, 1]


@every_database
def test_a_new_run_has_its_first_event_and_nobody_works_on_it(store: RunStore) -> None:
    async def program() -> None:
        new = await submitted(store)
        assert (new.status, new.worker, new.until, new.checkpoint) == (QUEUED, None, None, None)
        assert new == await store.get(new.run_id, OWNER)
        (event,) = await store.events(new.run_id, OWNER)
        assert event[:3] == (1, "run_created", {"job": "order", "model": "fake"})
        assert abs(event.at - time.time()) < 60

    run(program())


@every_database
def test_a_run_id_is_given_once(store: RunStore) -> None:
    async def program() -> None:
        first = await submitted(store, "run-1")
        with pytest.raises(RunExists, match="run-1"):
            await store.submit("other", "secret", owner=STRANGERS[0], run_id="run-1")
        assert await store.get("run-1", OWNER) == first
        assert await told(store, "run-1") == [(1, "run_created")]

    run(program())


@every_database
def test_runs_without_an_id_get_one_each(store: RunStore) -> None:
    async def program() -> None:
        assert len({(await submitted(store)).run_id for _ in range(5)}) == 5

    run(program())


@every_database
@TEXTS
def test_text_of_any_kind_comes_back_as_it_was_written(store: RunStore, text: str) -> None:
    value = {"text": [text, {text: None}]}
    name = text[:200] or "x"

    async def program() -> None:
        owner = Owner(user=name, tenant=name)
        new = await store.submit(name, value, owner=owner, model=name, run_id="r")
        held = await store.claim(name, length=LENGTH, run_id=new.run_id, jobs=[name])
        assert held is not None
        held = await store.step(held, value, checkpoint=value)
        held = await store.ask(held, text, checkpoint=value)
        await store.answer(new.run_id, owner, text)
        seen = await store.get(new.run_id, owner)
        assert (seen.run_id, seen.owner, seen.job, seen.model) == ("r", owner, name, name)
        assert (seen.given, seen.checkpoint, seen.question, seen.answer) == (
            value,
            value,
            text,
            text,
        )
        held = await store.claim("worker", length=LENGTH, run_id=new.run_id)
        assert held is not None
        await store.finish(held, value, reason=text)
        seen = await store.get(new.run_id, owner)
        assert (seen.result, seen.end_reason) == (value, text)
        data = [event.data for event in await store.events(new.run_id, owner)]
        assert data[2:5] == [value, {"question": text}, {"answer": text[:MOST]}]
        assert [found.run_id for found in await store.runs(owner)] == [new.run_id]

    run(program())


@every_database
def test_a_wrong_owner_and_an_unknown_id_get_the_same_answer(store: RunStore) -> None:
    async def program() -> None:
        mine = (await in_state(store, "failed")).run
        asks: list[Callable[[str, Owner], Any]] = [
            store.get,
            store.cancel,
            store.retry,
            lambda run_id, owner: store.answer(run_id, owner, "yes"),
        ]
        for ask in asks:
            for run_id, owner in [*((mine.run_id, it) for it in STRANGERS), ("nowhere", OWNER)]:
                with pytest.raises(UnknownRun) as caught:
                    await ask(run_id, owner)
                assert str(caught.value) == f"there is no run {run_id!r} for this owner"
        for stranger in STRANGERS:
            assert await store.events(mine.run_id, stranger) == []
            assert await store.runs(stranger) == []
        assert await store.events("nowhere", OWNER) == []
        assert await store.get(mine.run_id, OWNER) == mine

    run(program())


@every_database
def test_older_runs_are_listed_from_a_run_on_also_of_one_moment(store: RunStore) -> None:
    async def program() -> None:
        for run_id in ("b", "c", "a", "d"):
            await submitted(store, run_id)
        changed(store, sa.update(RUNS).values(created=7.5))
        found, before = [], None
        while page := await store.runs(OWNER, before=before, most=2):
            found += [each.run_id for each in page]
            before = found[-1]
        assert found == ["d", "c", "b", "a"]
        with pytest.raises(UnknownRun):
            await store.runs(Owner("bob", OWNER.tenant), before="a")

    run(program())


@every_database
def test_an_owners_newest_runs_are_listed_first_and_no_more_than_asked_for(store: RunStore) -> None:
    async def program() -> None:
        for number, run_id in enumerate(["b", "c", "a"]):
            await submitted(store, run_id)
            at = sa.update(RUNS).where(RUNS.c.run_id == run_id).values(created=float(number))
            changed(store, at)
        assert [found.run_id for found in await store.runs(OWNER)] == ["a", "c", "b"]
        assert [found.run_id for found in await store.runs(OWNER, most=2)] == ["a", "c"]

    run(program())


@every_database
def test_events_are_read_from_a_number_on_and_no_more_than_asked_for(store: RunStore) -> None:
    async def program() -> None:
        held = await claimed(store)
        for number in range(3):
            held = await store.step(held, {"number": number}, checkpoint=number)
        run_id = held.run.run_id
        assert [event.seq for event in await store.events(run_id, OWNER)] == [1, 2, 3, 4, 5]
        some = await store.events(run_id, OWNER, after=2, most=2)
        assert [(event.seq, event.type, event.data) for event in some] == [
            (3, "node_finished", {"number": 0}),
            (4, "node_finished", {"number": 1}),
        ]
        assert await store.events(run_id, OWNER, after=5) == []

    run(program())


@every_database
def test_a_question_is_answered_once_and_the_answer_waits_for_the_next_worker(
    store: RunStore,
) -> None:
    async def program() -> None:
        held = await in_state(store, "awaiting_input")
        run_id = held.run.run_id
        assert (held.run.question, held.run.worker, held.run.until) == ("Which one?", None, None)
        first = await store.answer(run_id, OWNER, "the red one")
        assert (first.status, first.answer) == (QUEUED, "the red one")
        with pytest.raises(IllegalMove, match="is queued; possible is cancel"):
            await store.answer(run_id, OWNER, "the blue one")
        held = await claimed(store, "worker-2", run_id)
        assert (held.run.answer, held.run.checkpoint) == ("the red one", 2)
        held = await store.step(held, {"node": "used it"}, checkpoint=3)
        assert held.run.answer is None
        data = [event.data for event in await store.events(run_id, OWNER)]
        assert {"answer": "the red one"} in data
        assert {"answer": "the blue one"} not in data

    run(program())


@every_database
@pytest.mark.parametrize(("model", "then"), [(None, "fake"), ("fake-slow", "fake-slow")])
def test_a_failed_run_goes_on_from_its_checkpoint_with_another_model_where_one_is_named(
    store: RunStore, model: str | None, then: str
) -> None:
    async def program() -> None:
        held = await claimed(store)
        held = await store.step(held, {"node": "reserve"}, checkpoint={"at": 1})
        failed = (await store.fail(held, "TIMEOUT", "too slow")).run
        assert (failed.error_code, failed.error_message) == ("TIMEOUT", "too slow")
        again = await store.retry(failed.run_id, OWNER, model=model)
        assert (again.status, again.model, again.checkpoint) == (QUEUED, then, {"at": 1})
        assert (again.error_code, again.error_message) == (None, None)
        held = await claimed(store, "worker-2", failed.run_id)
        assert (held.lease.fence, held.run.seq) == (2, failed.seq + 1)

    run(program())


# --- the table of states


@every_database
@pytest.mark.parametrize("state", STATES)
def test_each_move_is_possible_exactly_where_the_table_says_so(store: RunStore, state: str) -> None:
    async def program() -> None:
        for name, move in MOVES.items():
            if name == "submit":
                continue
            held = await in_state(store, state)
            run_id = held.run.run_id
            before, events = await store.get(run_id, OWNER), await told(store, run_id)
            assert before.status == state
            sources = (*move.sources, *(MOVES["claim"].sources if name == "expire" else ()))
            done = await moved(store, held, name)
            after, then = await store.get(run_id, OWNER), await told(store, run_id)
            assert done == (state in sources), (state, name)
            if not done:
                unchanged = after if name != "expire" else before
                assert (after, then) == (unchanged, events)
                continue
            told_of = "run_started" if name == "expire" else move.event  # by whom it went on
            assert after.status == (RUNNING if name == "expire" else move.target)
            assert then == [*events, *([(before.seq + 1, told_of)] if told_of else [])]
            assert after.seq == len(then)

    run(program())


@every_database
@pytest.mark.parametrize("state", ["completed", "cancelled"])
def test_a_final_state_is_final_for_everybody(store: RunStore, state: str) -> None:
    async def program() -> None:
        held = await in_state(store, state)
        before = await store.get(held.run.run_id, OWNER)
        for move in ("answer", "retry", "cancel", "claim", "expire", *OF_WORKERS):
            ask = written if move == "renew" else moved
            assert not await ask(store, held, move)
        assert await store.claim("worker-3", length=LENGTH) is None
        assert await store.get(held.run.run_id, OWNER) == before

    run(program())


# --- claims


@every_database
def test_of_many_who_claim_a_run_at_once_one_gets_it_and_nobody_fails(store: RunStore) -> None:
    run_id = run(submitted(store)).run_id
    claims = together(8, lambda n: store.claim(f"w-{n}", length=LENGTH, run_id=run_id))
    (held,) = [one for one in claims if one is not None]
    assert (held.lease.fence, held.run.seq) == (1, 2)
    assert run(told(store, run_id)) == [(1, "run_created"), (2, "run_started")]
    assert run(store.get(run_id, OWNER)) == held.run


@every_database
def test_many_workers_take_each_run_once(store: RunStore) -> None:
    async def work(which: int) -> list[str]:
        taken = []
        while held := await store.claim(f"worker-{which}", length=LENGTH):
            taken.append(held.run.run_id)
            await store.finish(held, which)
        return taken

    async def fill() -> list[str]:
        return [(await submitted(store)).run_id for _ in range(24)]

    there = run(fill())
    taken = [run_id for one in together(8, work) for run_id in one]
    taken += run(work(9))  # what was locked just when the last ones looked
    assert sorted(taken) == sorted(there)


@every_database
def test_the_oldest_run_is_claimed_first_and_only_of_the_jobs_that_are_named(
    store: RunStore,
) -> None:
    async def program() -> None:
        for number, run_id in enumerate(["d", "c", "b", "a"]):
            await store.submit(f"job-{run_id}", owner=OWNER, run_id=run_id)
            at = sa.update(RUNS).where(RUNS.c.run_id == run_id).values(created=float(number))
            changed(store, at)
        claims: list[tuple[list[str] | None, str | None]] = [
            ([], None),
            (["job-e"], None),
            (["job-a", "job-b"], "b"),
            (["job-b"], None),
            (None, "d"),
            (None, "c"),
            (None, "a"),
            (None, None),
        ]
        for jobs, run_id in claims:
            held = await store.claim("worker-1", length=LENGTH, jobs=jobs)
            assert (held and held.run.run_id) == run_id
        assert await store.claim("worker-2", length=LENGTH, run_id="") is None

    run(program())


@every_database
def test_runs_whose_lease_is_over_come_before_those_that_wait_the_longest_over_first(
    store: RunStore,
) -> None:
    async def program() -> None:
        for run_id, until_then in (("a", 20.0), ("b", 10.0), ("c", 60.0)):
            await claimed(store, "dead", (await submitted(store, run_id)).run_id, until_then)
        await submitted(store, "d")
        changed(store, sa.update(RUNS).where(RUNS.c.run_id == "d").values(created=0.0))
        await later(store, 30.0)
        taken = [await store.claim("worker-1", length=LENGTH) for _ in range(4)]
        assert [held and held.run.run_id for held in taken] == ["b", "a", "d", None]

    run(program())


@every_database
def test_those_that_wait_and_those_that_are_being_done_are_left_whoevers_they_are(
    store: RunStore,
) -> None:
    async def program() -> None:
        for state in STATES:
            await in_state(store, state)
        await store.submit("order", owner=STRANGERS[0])
        assert await store.left() == 3  # two that wait, and one that is being done

    run(program())


@every_database
def test_a_named_run_is_claimed_only_if_its_job_is_among_those_named(store: RunStore) -> None:
    async def program() -> None:
        run_id = (await submitted(store)).run_id
        assert await store.claim("w", length=LENGTH, run_id=run_id, jobs=["other"]) is None
        assert await store.claim("w", length=LENGTH, run_id=run_id, jobs=["order"])

    run(program())


@on_postgresql  # SQLite has one writer at a time, whatever the row
def test_a_claim_does_not_wait_for_a_run_that_another_is_just_claiming(opened: Opened) -> None:
    async def program() -> None:
        first, second = opened(), opened()
        runs = [(await submitted(first)).run_id for _ in range(2)]
        gate = Gate(first)
        claiming = asyncio.create_task(first.claim("worker-1", length=LENGTH))
        await gate.reached()
        held = await asyncio.wait_for(second.claim("worker-2", length=LENGTH), 5)
        gate.open()
        other = await claiming
        assert held is not None
        assert other is not None
        assert {held.run.run_id, other.run.run_id} == set(runs)

    run(program())


@every_database
def test_a_workers_second_claim_of_its_run_keeps_the_fence_and_tells_no_second_start(
    store: RunStore,
) -> None:
    async def program() -> None:
        first = await claimed(store)
        run_id = first.run.run_id
        await later(store, 5)
        again = await claimed(store, "worker-1", run_id)
        assert (again.lease.fence, again.run.seq) == (1, 2)
        assert again.lease.until > first.lease.until - 5
        assert await told(store, run_id) == [(1, "run_created"), (2, "run_started")]
        assert await store.claim("worker-2", length=LENGTH, run_id=run_id) is None
        assert (await store.step(again, {}, checkpoint=1)).run.seq == 3

    run(program())


@pytest.mark.parametrize(("back", "taken"), [(0.001, False), (10.0, False), (10.001, True)])
def test_a_small_step_back_of_the_clock_takes_no_lease_from_the_living(
    back: float, taken: bool
) -> None:
    clock = Clock()
    with in_memory(clock) as store:
        clock.now = 100.0
        held = now(claimed(store))
        clock.now -= back
        found = now(store.claim("worker-2", length=LENGTH))
        assert (found is not None) == taken
        assert now(store.renew(held)) != taken
        assert now(store.get(held.run.run_id, OWNER)).until == clock.now + LENGTH


@every_database
def test_a_clock_that_is_set_back_makes_no_lease_of_the_dead_last(store: RunStore) -> None:
    async def program() -> None:
        first = await claimed(store)
        await later(store, -3_600.0)
        moved = await store.claim("worker-2", length=LENGTH)
        assert moved is not None
        assert moved.lease.fence == 2
        with pytest.raises(LeaseLost):
            await store.step(first, {}, checkpoint=None)
        assert await store.claim("worker-3", length=LENGTH) is None

    run(program())


@every_database
def test_a_run_whose_lease_is_over_is_taken_over_with_a_higher_fence_by_anybody(
    store: RunStore,
) -> None:
    async def program() -> None:
        first = await claimed(store)
        first = await store.step(first, {}, checkpoint={"at": 1})
        run_id = first.run.run_id
        await later(store, LENGTH)
        second = await store.claim("worker-2", length=LENGTH)
        assert second is not None
        assert (second.run.run_id, second.lease.fence) == (run_id, 2)
        assert (second.run.checkpoint, second.run.worker) == ({"at": 1}, "worker-2")
        await later(store, LENGTH)
        third = await claimed(store, "worker-2", run_id)  # the same one is a new one by then
        assert (third.lease.fence, third.run.seq) == (3, 5)
        starts = [e for e in await store.events(run_id, OWNER) if e.type == "run_started"]
        assert [(e.data["worker"], e.data["fence"]) for e in starts] == [
            ("worker-1", 1),
            ("worker-2", 2),
            ("worker-2", 3),
        ]

    run(program())


@pytest.mark.parametrize(("at", "whose"), [(9.999, "worker-1"), (10.0, "worker-2")])
def test_a_lease_ends_at_its_very_time_for_claims_renewals_and_writes(
    at: float, whose: str
) -> None:
    clock = Clock()
    with in_memory(clock) as store:
        for move in OF_WORKERS:
            clock.now = 0.0
            held = now(claimed(store))
            clock.now = at
            if whose == "worker-1":
                assert now(store.claim("worker-2", length=LENGTH, run_id=held.run.run_id)) is None
                assert now(written(store, held, move))
            else:
                assert not now(written(store, held, move))
                assert now(store.get(held.run.run_id, OWNER)) == held.run  # nobody took it
                assert now(claimed(store, "worker-2", held.run.run_id)).lease.fence == 2


def test_a_renewal_gives_the_whole_length_from_now() -> None:
    clock = Clock()
    with in_memory(clock) as store:
        held = now(claimed(store))
        clock.now = 9.0
        assert now(store.renew(held))
        assert now(store.get(held.run.run_id, OWNER)).until == 19.0
        clock.now = 18.5
        assert now(store.renew(held))
        assert now(store.get(held.run.run_id, OWNER)).until == 28.5


def test_what_is_claimed_again_lasts_its_whole_length_from_then() -> None:
    clock = Clock()
    with in_memory(clock) as store:
        held = now(claimed(store))
        clock.now = 4.0
        run_id = held.run.run_id
        for length, until_then in ((30.0, 34.0), (5.0, 9.0), (30.0, 34.0)):
            again = now(claimed(store, "worker-1", run_id, length=length))
            assert (again.lease.until, again.lease.length) == (until_then, length)
            assert now(store.get(run_id, OWNER)).until == until_then
            assert now(store.claim("worker-2", length=LENGTH, run_id=run_id)) is None
        assert now(claimed(store, "worker-1", run_id, length=5.0)).lease.fence == 1
        assert now(store.renew(again))  # by its older claim, which was longer
        assert now(store.get(run_id, OWNER)).until == 34.0
        assert now(store.claim("worker-2", length=LENGTH, run_id=run_id)) is None


@every_database
@pytest.mark.parametrize("hours", [1, -1])
def test_a_worker_whose_clock_is_an_hour_off_claims_nothing_early(
    store: RunStore, hours: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        right = time.time()
        held = await claimed(store)
        monkeypatch.setattr(time, "time", lambda: right + hours * 3600)
        assert await store.claim("worker-2", length=LENGTH) is None
        assert await store.claim("worker-2", length=LENGTH, run_id=held.run.run_id) is None
        assert await store.renew(held)
        seen = await store.get(held.run.run_id, OWNER)
        assert seen.until is not None
        assert right + LENGTH - 1 < seen.until < right + LENGTH + 60
        await later(store, LENGTH + 1)
        assert not await store.renew(held)
        other = await store.claim("worker-2", length=LENGTH)
        assert other is not None
        assert right < other.lease.until < right + LENGTH + 60

    run(program())


@every_database
def test_a_length_that_is_none_is_refused_before_anything_is_written(store: RunStore) -> None:
    lengths: list[Any] = [float("nan"), float("inf"), 0, -1, True, "x", None, 1e10]

    async def program() -> None:
        new = await submitted(store)
        for length in lengths:
            with pytest.raises(PolicyError, match=r"length is .*must be above 0"):
                await store.claim("worker-1", length=length)
        assert await store.get(new.run_id, OWNER) == new

    run(program())


@every_database
def test_a_worker_without_a_name_is_refused_before_anything_is_written(store: RunStore) -> None:
    nameless: list[Any] = ["", None]

    async def program() -> None:
        new = await submitted(store)
        for worker in nameless:
            with pytest.raises(PolicyError, match="give each worker a name"):
                await store.claim(worker, length=LENGTH)
        assert await store.get(new.run_id, OWNER) == new

    run(program())


# --- writes of a worker


async def _taken_over(store: RunStore, held: Held) -> Held:
    await later(store, LENGTH)
    await claimed(store, "worker-2", held.run.run_id)
    return held


async def _over(store: RunStore, held: Held) -> Held:
    await later(store, LENGTH)
    return held


async def _cancelled(store: RunStore, held: Held) -> Held:
    await store.cancel(held.run.run_id, OWNER)
    return held


async def _nobodys(store: RunStore, held: Held) -> Held:
    changed(store, sa.update(RUNS).values(worker=None))
    return held


async def _ended(store: RunStore, held: Held) -> Held:
    changed(store, sa.update(RUNS).values(status=CANCELLED))  # and its worker was not taken off
    return held


async def _older_claim(store: RunStore, held: Held) -> Held:
    await later(store, LENGTH)
    newer = await claimed(store, "worker-1", held.run.run_id)
    return Held(newer.run, held.lease)  # it knows all but that it was asleep


async def _another(store: RunStore, held: Held) -> Held:
    lease = held.lease
    return Held(held.run, type(lease)("worker-2", lease.fence, lease.until, lease.length))


async def _waiting(store: RunStore, held: Held) -> Held:
    """The owner's answer has come: the run waits, as its worker knew it."""
    held = await store.ask(held, "Which one?", checkpoint=2)
    await store.answer(held.run.run_id, OWNER, "the red one")
    return held


@every_database
@pytest.mark.parametrize(
    "what", [_taken_over, _over, _cancelled, _nobodys, _ended, _older_claim, _another, _waiting]
)
def test_who_does_not_hold_a_run_any_more_changes_nothing(
    store: RunStore, what: Callable[[RunStore, Held], Any]
) -> None:
    async def program() -> None:
        held = await what(store, await claimed(store))
        run_id = held.run.run_id
        before, events = await store.get(run_id, OWNER), await told(store, run_id)
        for move in OF_WORKERS:
            assert not await written(store, held, move), move
            assert await store.get(run_id, OWNER) == before, move
            assert await told(store, run_id) == events, move

    run(program())


@every_database
def test_a_late_write_is_told_whose_the_run_is_by_now(store: RunStore) -> None:
    async def program() -> None:
        held = await _taken_over(store, await claimed(store))
        with pytest.raises(LeaseLost, match=r"step: run .* running, held by worker-2 with fence 2"):
            await store.step(held, {}, checkpoint=1)
        changed(store, sa.delete(RUNS))
        with pytest.raises(LeaseLost, match="not there any more"):
            await store.step(held, {}, checkpoint=1)

    run(program())


@every_database
@pytest.mark.parametrize("move", WRITES)
def test_a_write_that_is_asked_for_again_after_a_lost_answer_is_written_once(
    store: RunStore, move: str
) -> None:
    async def program() -> None:
        held = await claimed(store)
        run_id = held.run.run_id
        first = await WRITES[move](store, held)
        events = await told(store, run_id)
        assert await WRITES[move](store, held) == first
        assert await store.get(run_id, OWNER) == first.run
        assert await told(store, run_id) == events
        assert len(events) == 2 + bool(MOVES[move].event)

    run(program())


OTHERS: dict[str, Callable[[RunStore, Held], Any]] = {
    "what is told": lambda store, held: store.step(held, {"node": "ship"}, checkpoint=1),
    "the checkpoint": lambda store, held: store.step(held, {"node": "reserve"}, checkpoint=9),
    "the move": lambda store, held: store.finish(held, "shipped"),
}


@every_database
@pytest.mark.parametrize("other", OTHERS)
def test_another_write_with_the_same_held_is_refused_and_says_which_one_to_use(
    store: RunStore, other: str
) -> None:
    async def program() -> None:
        held = await claimed(store)
        new = await WRITES["step"](store, held)
        with pytest.raises(LeaseLost, match="running: use the Held that the last write gave"):
            await OTHERS[other](store, held)
        assert await store.get(new.run.run_id, OWNER) == new.run
        assert (await OTHERS[other](store, new)).run.seq == new.run.seq + 1

    run(program())


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("move", WRITES)
def test_who_comes_after_the_end_of_its_own_lease_is_told_so(store: RunStore, move: str) -> None:
    async def program() -> None:
        held = await _over(store, await claimed(store))
        with pytest.raises(LeaseLost, match=f"^{move}: run .* your lease on it is over$"):
            await WRITES[move](store, held)
        assert not await store.renew(held)

    run(program())


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_another_has_handed_back_since_is_not_taken_for_ones_own(store: RunStore) -> None:
    async def program() -> None:
        held = await claimed(store)
        await store.hand_back(held)
        assert (await store.hand_back(held)).run.status == QUEUED  # its answer may have been lost
        await store.hand_back(await claimed(store, "worker-2", held.run.run_id))
        with pytest.raises(LeaseLost, match="held by nobody with fence 2"):
            await store.hand_back(held)

    run(program())


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_who_writes_to_a_run_that_was_cancelled_is_told_so(store: RunStore) -> None:
    async def program() -> None:
        held = await _cancelled(store, await claimed(store))
        with pytest.raises(LeaseLost, match="is cancelled, held by nobody"):
            await store.step(held, {}, checkpoint=1)

    run(program())


@every_database
def test_a_step_that_was_written_is_known_again_also_after_the_lease(store: RunStore) -> None:
    async def program() -> None:
        held = await claimed(store)
        await store.step(held, {}, checkpoint=1)
        await later(store, LENGTH)
        assert (await store.step(held, {}, checkpoint=1)).run.seq == 3
        await claimed(store, "worker-2", held.run.run_id)
        with pytest.raises(LeaseLost):
            await store.step(held, {}, checkpoint=1)

    run(program())


@every_database
def test_a_worker_that_has_missed_an_event_writes_nothing(store: RunStore) -> None:
    async def program() -> None:
        old = await claimed(store)
        new = await store.step(old, {}, checkpoint=1)
        new = await store.step(new, {}, checkpoint=2)
        for move in WRITES:
            if move not in ("renew", "hand back"):  # which tell nothing
                assert not await written(store, old, move)
        assert await store.get(old.run.run_id, OWNER) == new.run

    run(program())


@every_database
@pytest.mark.parametrize("move", WRITES)
def test_a_run_that_nobody_works_on_any_more_is_held_by_nobody(store: RunStore, move: str) -> None:
    async def program() -> None:
        held = await claimed(store)
        after = (await WRITES[move](store, held)).run
        expected = ("worker-1", held.lease.until) if move == "step" else (None, None)
        assert (after.worker, after.until) == expected
        assert (after.fence, after.created) == (1, held.run.created)
        assert after.updated >= held.run.updated

    run(program())


@every_database
def test_a_run_that_is_handed_back_is_there_for_others_at_once(store: RunStore) -> None:
    async def program() -> None:
        held = await claimed(store)
        await store.hand_back(await store.step(held, {}, checkpoint=1))
        other = await store.claim("worker-2", length=LENGTH)
        assert other is not None
        assert (other.lease.fence, other.run.checkpoint) == (2, 1)

    run(program())


@every_database
def test_what_a_run_ended_with_stays(store: RunStore) -> None:
    async def program() -> None:
        held = await in_state(store, "queued")
        held = await claimed(store, "worker-2", held.run.run_id)
        done = (await store.finish(held, {"sum": 3}, reason="done")).run
        assert (done.result, done.end_reason) == ({"sum": 3}, "done")
        assert (done.question, done.answer) == (None, None)
        last = (await store.events(done.run_id, OWNER))[-1]
        assert (last.type, last.data) == (
            "run_completed",
            {"result": {"sum": 3}, "end_reason": "done"},
        )
        assert done.status in ENDED

    run(program())


# --- the numbers of events


@every_database
def test_with_many_writers_a_runs_events_have_no_gap_and_no_double(store: RunStore) -> None:
    run_id = run(submitted(store)).run_id

    async def work(which: int) -> None:
        turns = 0
        while turns < 2:
            held = await store.claim(f"worker-{which}", length=LENGTH, run_id=run_id)
            if held is None:
                continue
            held = await store.step(held, {"by": which}, checkpoint=which)
            await store.hand_back(held)
            turns += 1

    together(6, work)
    events = run(store.events(run_id, OWNER))
    assert [event.seq for event in events] == list(range(1, 1 + 1 + 6 * 2 * 2))
    assert [event.type for event in events[1:]] == ["run_started", "node_finished"] * 12
    assert run(store.get(run_id, OWNER)).seq == len(events)


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@every_database
def test_a_number_is_not_seen_before_its_event_and_the_next_writer_waits_for_it(
    opened: Opened, url: str
) -> None:
    first, second, watcher = opened(), opened(), opened()

    def waits() -> object:
        if url.startswith("sqlite"):
            return second._engine.pool.checkedout()  # type: ignore[attr-defined]
        with watcher._engine.connect() as looking:
            return looking.exec_driver_sql(WAITS).scalar()

    async def program() -> None:
        held = await claimed(first)
        run_id = held.run.run_id
        gate = Gate(first)
        stepping = asyncio.create_task(first.step(held, {}, checkpoint=1))
        await gate.reached()  # event 3 is written, and not committed
        cancelling = asyncio.create_task(second.cancel(run_id, OWNER))
        await until(lambda: cancelling.done() or waits())
        assert await told(watcher, run_id) == [(1, "run_created"), (2, "run_started")]
        assert (await watcher.get(run_id, OWNER)).seq == 2
        assert not cancelling.done()
        gate.open()
        assert (await stepping).run.seq == 3
        assert ((ended := await cancelling).status, ended.seq) == (CANCELLED, 4)
        assert await told(watcher, run_id) == [
            (1, "run_created"),
            (2, "run_started"),
            (3, "node_finished"),
            (4, "run_cancelled"),
        ]

    run(program())


# --- beside the plain decisions on leases

WORKERS = ("a", "b", "c")
MOVES_OF_WORKERS = ["step", "step", "renew", "renew", "hand back", "finish"]
OPERATIONS = st.one_of(
    st.tuples(st.just("claim"), st.sampled_from(WORKERS)),
    st.tuples(st.sampled_from(MOVES_OF_WORKERS), st.integers(0, 5)),
    st.tuples(st.just("wait"), st.sampled_from([0.5, 9.5, 10.0])),
)


@given(st.lists(OPERATIONS, min_size=10, max_size=25))
@example([("claim", "a"), ("wait", 10.0), ("claim", "a"), ("renew", 0), ("step", 0)])
@settings(max_examples=50, phases=(Phase.explicit, Phase.generate))  # smaller ones take minutes
def test_the_store_decides_as_the_plain_functions_of_leases_do(
    operations: list[tuple[str, Any]],
) -> None:
    clock = Clock()
    with in_memory(clock) as store:
        run_id = now(submitted(store)).run_id
        plain: lease.Lease | None = None
        waiting, done = True, False
        claims: list[Held] = []  # one for each fence, as its worker knows it
        for name, what in operations:
            if name == "wait":
                clock.now += what
                continue
            if name == "claim":
                free = plain
                if plain is not None and waiting:
                    free = lease.release(plain, now=clock.now)
                expected = None if done else lease.claim(free, what, now=clock.now, length=LENGTH)
                held = now(store.claim(what, length=LENGTH, run_id=run_id))
                assert (held and held.lease) == expected
                if held is not None and expected is not None:
                    claims[expected.fence - 1 :] = [held]
                    plain, waiting = expected, False
                continue
            if not claims:
                continue
            mine = claims[what % len(claims)]
            newest = lease.is_held_by(plain, mine.lease)
            assert plain is not None
            may = newest and not (waiting or done or lease.expired(plain, clock.now))
            if name == "renew":
                assert now(store.renew(mine)) == may
                if may:
                    plain = lease.renew(plain, mine.lease, now=clock.now)
                continue
            assert now(written(store, mine, name)) == may
            if may:
                seen = now(store.get(run_id, OWNER))
                claims[what % len(claims)] = Held(seen, mine.lease)
                done, waiting = done or name == "finish", name == "hand back"
        fences = [
            event.data["fence"]
            for event in now(store.events(run_id, OWNER))
            if event.type == "run_started"
        ]
        assert fences == list(range(1, len(fences) + 1))


# --- answers and names


@every_database
def test_an_answer_that_names_its_question_is_never_one_to_the_next(store: RunStore) -> None:
    async def program() -> None:
        held = await store.ask(await claimed(store), "delete the draft?", checkpoint=1)
        run_id, first = held.run.run_id, held.run.seq
        await store.answer(run_id, OWNER, "yes", seq=first)
        held = await store.ask(await claimed(store, "worker-2", run_id), "all?", checkpoint=2)
        with pytest.raises(IllegalMove):
            await store.answer(run_id, OWNER, "yes", seq=first)
        assert (await store.get(run_id, OWNER)).status == "awaiting_input"
        assert (await store.answer(run_id, OWNER, "no", seq=held.run.seq)).answer == "no"

    run(program())


@pytest.mark.parametrize("name", ["run_id", "tenant", "user", "job", "model"])
@pytest.mark.parametrize("wrong", [None, 7, "x" * 201])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_a_name_that_is_no_short_text_is_refused_before_anything_is_written(
    store: RunStore, name: str, wrong: Any
) -> None:
    given: dict[str, Any] = {
        "run_id": "r",
        "tenant": "acme",
        "user": "ann",
        "job": "j",
        "model": "",
    }
    given[name] = wrong
    if (name, wrong) == ("run_id", None):  # it gets one
        return
    owner = Owner(user=given["user"], tenant=given["tenant"])

    async def program() -> None:
        with pytest.raises(BadRun, match=f"^{name} is"):
            await store.submit(
                given["job"], owner=owner, model=given["model"], run_id=given["run_id"]
            )
        assert await store.left() == 0

    run(program())


@pytest.mark.parametrize("run_id", ["a\0b", "\ud83d", "b\udc00"])
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_an_id_that_no_address_can_hold_is_refused(store: RunStore, run_id: str) -> None:
    async def program() -> None:
        with pytest.raises(BadRun, match=r"^run_id is .* no NUL and no half of a pair$"):
            await submitted(store, run_id)
        assert await store.left() == 0

    run(program())


NONE: Any = None
DOORS: dict[str, Callable[[Any], Any]] = {  # what each says -> what was asked for
    "owner is 'ann', and must be the Owner": lambda s: s.submit("order", owner="ann"),
    "owner is None, and must be the Owner": lambda s: s.runs(NONE),
    "owner is 7, and must be the Owner": lambda s: s.events("r", 7),
    r"owner is \('ann', 'acme'\), and must": lambda s: s.cancel("r", ("ann", "acme")),
    "run_id is 7, and must be a text": lambda s: s.get(7, OWNER),
    "run_id is None, and must be a text": lambda s: s.retry(NONE, OWNER),
    "run_id is b'r', and must": lambda s: s.claim("w", length=1.0, run_id=b"r"),
    "jobs is 'order', and must be a list": lambda s: s.claim("w", length=1.0, jobs="order"),
    "jobs is 7, and must be a list": lambda s: s.left(7),
    "job is None, and must be a text": lambda s: s.left([NONE]),
    "most is 2.5, and must be a whole number": lambda s: s.runs(OWNER, most=2.5),
    "most is True, and must be a whole": lambda s: s.events("r", OWNER, most=True),
    "after is -1, and must be a whole": lambda s: s.events("r", OWNER, after=-1),
    "after is '3', and must be a whole": lambda s: s.events("r", OWNER, after="3"),
    "said is None, which is no answer": lambda s: s.answer("r", OWNER, NONE),
    "seq is 'x', and must be a whole": lambda s: s.answer("r", OWNER, "yes", seq="x"),
    "model is 7, and must be a text": lambda s: s.retry("r", OWNER, model=7),
    "held is None, and must be the Held": lambda s: s.renew(NONE),
    "held is 'w', and must be the Held": lambda s: s.step("w", {}, checkpoint=1),
    "held is 7, and must be the Held": lambda s: s.hand_back(7),
    "worker is 7, and must be a text": lambda s: s.claim(7, length=1.0),
}


@pytest.mark.parametrize("says", DOORS)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_is_none_of_what_is_wanted_is_refused_at_the_door(store: RunStore, says: str) -> None:
    with pytest.raises((BadRun, PolicyError), match=f"^{says}"):
        run(DOORS[says](store))


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_what_a_step_tells_is_a_dict(store: RunStore) -> None:
    told: Any = "reserve"

    async def program() -> None:
        with pytest.raises(BadRun, match=r"^data is 'reserve', and must be a dict$"):
            await store.step(await claimed(store), told, checkpoint=1)

    run(program())


@every_database
def test_a_store_that_is_closed_says_so_whatever_it_is_asked(store: RunStore) -> None:
    async def program() -> None:
        held = await claimed(store)
        run_id = held.run.run_id
        other = store.through(store._call)
        other.news.close()  # on PostgreSQL it has a listener of its own
        store.close()
        asked = {
            "submit": submitted(store),
            "get": store.get(run_id, OWNER),
            "runs": store.runs(OWNER),
            "left": store.left(),
            "events": store.events(run_id, OWNER),
            "cancel": store.cancel(run_id, OWNER),
            "answer": store.answer(run_id, OWNER, "yes"),
            "retry": store.retry(run_id, OWNER),
            "claim": store.claim("w", length=LENGTH),
            "renew": store.renew(held),
            "now": store.now(),
            "the same by another way": other.now(),
            **{move: write(store, held) for move, write in WRITES.items()},
        }
        for name, call in asked.items():
            with pytest.raises(StoreClosed, match="is closed: open it anew"):
                assert await call == name

    run(program())


def test_a_run_tells_when_it_was_made_and_when_it_was_changed_last() -> None:
    clock = Clock()
    with in_memory(clock) as store:
        clock.now = 1.0
        run_id = now(submitted(store)).run_id
        clock.now = 2.0
        held = now(claimed(store, run_id=run_id))
        assert (held.run.created, held.run.updated) == (1.0, 2.0)
        for move in ("step", "ask"):
            clock.now += 1.0
            held = now(WRITES[move](store, held))
            assert held.run.updated == clock.now
        clock.now = 5.0
        answered = now(store.answer(run_id, OWNER, "yes"))
        assert (answered.created, answered.updated) == (1.0, 5.0)


def test_each_start_tells_its_worker_its_fence_and_its_model() -> None:
    with in_memory(Clock()) as store:
        held = now(claimed(store))
        now(WRITES["fail"](store, held))
        now(store.retry(held.run.run_id, OWNER, model="fake-slow"))
        now(claimed(store, "worker-2", held.run.run_id))
        events = now(store.events(held.run.run_id, OWNER))
    assert [event.data for event in events if event.type == "run_started"] == [
        {"worker": "worker-1", "fence": 1, "model": "fake"},
        {"worker": "worker-2", "fence": 2, "model": "fake-slow"},
    ]


def test_a_run_that_was_handed_back_keeps_its_place_among_those_that_wait() -> None:
    clock = Clock()
    with in_memory(clock) as store:
        for name in ("first", "second"):
            clock.now += 1.0
            now(submitted(store, name))
        clock.now += 1.0
        now(store.hand_back(now(claimed(store, run_id="first"))))
        found = now(store.claim("worker-2", length=LENGTH))
    assert found is not None
    assert found.run.run_id == "first"


def test_of_runs_that_came_at_one_moment_the_first_by_name_is_claimed() -> None:
    with in_memory(Clock()) as store:
        for name in "cab":
            now(submitted(store, name))
        found = [now(store.claim("w", length=LENGTH)) for _ in "cab"]
    assert [held.run.run_id for held in found if held] == ["a", "b", "c"]


def test_a_run_is_handed_back_once_also_where_the_answers_of_a_step_and_of_that_were_lost() -> None:
    with in_memory(Clock()) as store:
        held = now(claimed(store))
        now(WRITES["step"](store, held))
        back = now(store.hand_back(held))
        assert (back.run.status, back.run.seq) == (QUEUED, 3)
        assert now(store.hand_back(held)) == back
