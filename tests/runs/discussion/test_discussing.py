"""A discussion as a job: kept step by step, gone on with by anybody, and never told twice."""

from __future__ import annotations

import asyncio
import sqlite3
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from labkit.recovery.errors import ProviderError
from labkit.runs.discussion.asking import asked
from labkit.runs.record import AgentRun
from tests.runs.kit import ANN, BOB, RunPolicy

from .kit import ASKS, BOTH, Desk, Table, at_table, models

ROUND = ["coordinator", "proposer", "coordinator", "critic"]
FRESH = ["recall", *ROUND, *ROUND, "coordinator", "summarise", "remember"]
EVERYTHING = f"{BOTH} [needs clarification]"


async def with_a_person(table: Table, run: AgentRun) -> AgentRun:
    """A run to its end, while a person answers whatever it asks."""
    while (now := await table.until(run, "awaiting_input", "completed")).status != "completed":
        await table.say(now)
    return now


def test_each_step_is_told_once_and_in_order() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.done()
        assert (run.end_reason, run.result["conclusion"]) == ("consensus", "Take plan v2.")
        assert await table.steps(run) == FRESH
        assert [event.seq for event in await table.events(run)] == list(range(1, run.seq + 1))

    at_table(program)


def test_each_step_is_kept_before_the_next_one_begins() -> None:
    async def program(table: Table) -> None:
        kept: list[int] = []
        ask = table.model.__class__._agenerate

        async def noted(*more: Any, **options: Any) -> Any:
            kept.append(table.kinds().count("kept"))
            return await ask(table.model, *more, **options)

        object.__setattr__(table.model, "_agenerate", noted)
        table.worker("a")
        await table.done()
        # The last coordinator asks nobody.
        assert kept == [1, 2, 3, 4, 5, 6, 7, 8, 10, 11]

    at_table(program)


def test_an_event_tells_what_is_new_in_each_step() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await with_a_person(table, await table.submit(given=EVERYTHING))
        told = [event.data for event in await table.events(run) if event.type == "node_finished"]
        first = {each["node"]: each for each in reversed(told)}
        assert first["ask_human"]["text"] == "What is the budget? -> approve"
        assert first["proposer"]["tools"] == ["create_ticket", "send_mail"]
        assert (first["critic"]["role"], first["critic"]["tools"]) == ("critic", [])
        assert first["coordinator"]["instruction"] == "What is the budget?"
        assert first["summarise"]["conclusion"] == "Take plan v2."
        assert first["remember"]["remembered"] == 7
        assert not {"memories", "conclusion"} & set(told[-1])

    at_table(program)


@pytest.mark.parametrize("order", [("ask-1", "ask-2"), ("ask-2", "ask-1")])
def test_of_calls_that_wait_beside_each_other_each_is_told_when_it_is_done(
    order: tuple[str, ...],
) -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.submit(given=BOTH)
        for name in order:
            run = await table.until(run, "awaiting_input")
            (ask,) = [ask for ask in asked(run) if ask["id"] == name]
            await table.say(run, ask=name, digest=ask["digest"])
        run = await table.until(run, "completed")
        told = [event.data for event in await table.events(run)]
        done = [each["tools"] for each in told if each.get("node") == "tool"]
        wanted = {"ask-1": ["create_ticket"], "ask-2": ["send_mail"]}
        assert done == [wanted[name] for name in order]

    at_table(program)


@pytest.mark.parametrize(
    "word", ["approve", {"ask": "ask-9", "answer": "approve"}, {}, {"ask": None}, ["ask-1"]]
)
def test_a_word_to_nothing_that_was_asked_has_no_effect_and_is_asked_for_again(word: Any) -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(given=BOTH), "awaiting_input")
        await table.store.answer(run.run_id, ANN, word, seq=run.seq)
        again = await table.until(run, "awaiting_input")
        assert again.seq == run.seq + 3
        assert asked(again) == asked(run)
        assert table.desk.effects == []

    at_table(program)


def test_an_answer_is_used_also_where_a_worker_died_before_it_and_a_second_one_is_refused() -> None:
    async def program(table: Table) -> None:
        first = table.worker("a")
        run = await table.until(await table.submit(given=ASKS), "awaiting_input")
        await table.say(run, "5,000")
        with pytest.raises(Exception, match="possible is"):
            await table.store.answer(run.run_id, ANN, {"ask": "question-1", "answer": "7"})
        await table.until(run, "running")
        first.process.kill()
        table.worker("b")
        run = await table.until(run, "completed")
        texts = [event.data.get("text") for event in await table.events(run)]
        assert "What is the budget? -> 5,000" in texts

    at_table(program)


class Flaky(InMemorySaver):
    """In memory, but gone in each `(start, end)` of `gone`; `after`: what was asked is done."""

    gone: tuple[tuple[float, float], ...] = ()
    after = False

    async def aput(self, *more: Any) -> Any:
        return await self._answered(super().aput(*more))

    async def aput_writes(self, *more: Any) -> Any:
        return await self._answered(super().aput_writes(*more))

    async def aget_tuple(self, *more: Any) -> Any:
        return await self._answered(super().aget_tuple(*more))

    async def _answered(self, work: Any) -> Any:
        now = asyncio.get_running_loop().time()
        down = any(start <= now < end for start, end in self.gone)
        if down and not self.after:
            work.close()
        answer = None if down and not self.after else await work
        if down:
            raise sqlite3.OperationalError("database is locked")
        return answer


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("start", [0.0, 1.02, 2.5, 4.01, 5.9])
def test_a_database_that_is_gone_in_the_middle_costs_no_step_and_tells_none_twice(
    start: float, after: bool
) -> None:
    async def program(table: Table) -> None:
        table.saver = Flaky()
        table.saver.gone, table.saver.after = ((start, start + 6.0),), after
        table.worker("a")
        run = await with_a_person(table, await table.submit(given=EVERYTHING))
        steps = ["recall", "coordinator", "ask_human", *FRESH[1:3], "tool", "tool", *FRESH[3:]]
        assert await table.steps(run) == steps
        assert run.fence == 4
        assert len(table.desk.effects) == 2
        assert run.result["requests"] == len(table.model.asked) == 11  # none is paid twice

    at_table(program)


def test_a_lease_that_is_lost_meanwhile_ends_the_wait_for_a_database() -> None:
    async def program(table: Table) -> None:
        table.saver = Flaky()
        table.saver.gone = ((0.0, 1e9),)
        worker = table.worker("a")
        run = await table.submit()
        await table.until(run, "running")
        await table.store.cancel(run.run_id, ANN)
        await table.when(lambda: not worker.manager.at_work)

    at_table(program)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [None, 25.0], ids=["killed", "frozen past its lease"])
def test_wherever_its_worker_is_struck_another_goes_on_and_all_is_as_if_nothing_had_been(
    frozen: float | None,
) -> None:
    async def struck(table: Table, at: float) -> Any:
        worker = table.worker("a")
        run = await table.submit(given=EVERYTHING)
        person = asyncio.create_task(with_a_person(table, run))
        await table.at(at)
        if frozen is None:
            worker.process.kill()
        else:
            worker.process.freeze(frozen)
        table.worker("b")
        run = await person
        await asyncio.sleep(60.0)  # whoever woke has had its time
        assert await table.get(run) == run
        assert (await table.types(run)).count("run_started") == run.fence
        turns = [e.data.get("text") for e in await table.events(run) if "text" in e.data]
        assert table.memories is not None
        facts = [memory.text for memory in await table.memories.of(ANN)]
        again = len(table.model.asked) - run.result["requests"]
        return turns, facts, table.desk.effects, run.result, again <= 1

    fresh = at_table(lambda table: struck(table, 40.0))
    assert (len(fresh[0]), len(fresh[1]), len(fresh[2])) == (7, 1, 2)
    for tick in range(10):
        assert at_table(lambda table, at=tick * 1.26: struck(table, at)) == fresh, tick


def test_a_failed_run_is_gone_on_with_by_another_model_also_while_another_call_waits() -> None:
    class Broken(Desk):
        async def perform(self, request: Any) -> str:
            raise ProviderError("no such mailbox", status=400, code="invalid_request")

    async def program(table: Table) -> None:
        desk, table.desk = table.desk, Broken()
        worker = table.worker("a")
        run = await table.submit(given=BOTH)
        await table.say(run)
        run = await table.until(run, "failed")
        await worker.manager.shutdown()
        table.desk = desk
        table.worker("b")
        await table.store.retry(run.run_id, ANN, model="fake-slow")
        run = await table.until(run, "awaiting_input")
        assert [ask["id"] for ask in asked(run)] == ["ask-2"]
        await table.say(run)
        run = await table.until(run, "completed")
        assert len(desk.effects) == 2
        assert (await table.steps(run)).count("proposer") == 2

    at_table(program)


def test_after_a_retry_with_another_model_what_was_done_is_not_done_again() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(model="fake-broken"), "failed")
        assert run.error_code == "QUOTA_EXCEEDED"
        await table.store.retry(run.run_id, ANN, model="fake")
        run = await table.until(run, "completed")
        assert await table.steps(run) == FRESH

    at_table(program)


def test_a_run_that_is_cancelled_while_a_tool_runs_is_over_and_its_effect_stands_once() -> None:
    async def program(table: Table) -> None:
        worker = table.worker("a")
        run = await table.submit(given=BOTH)
        await table.say(run)
        await table.when(lambda: table.desk.effects)
        await worker.manager.cancel(run.run_id, ANN)
        await asyncio.sleep(30.0)
        assert (await table.types(run))[-1] == "run_cancelled"
        assert len(table.desk.effects) == 1
        assert worker.manager.at_work == 0

    at_table(program)


def test_eight_rounds_end_and_two_users_at_once_see_their_own() -> None:
    async def program(table: Table) -> None:
        table.model.says["critic"] = ["No.\nVERDICT: REVISE"]
        table.worker("a")
        long = await table.submit(rounds=8)
        given = {"question": ASKS, "rounds": 1}
        other = await table.store.submit("discussion", given, owner=BOB, model="fake")
        long = await table.until(long, "completed")
        assert (long.end_reason, (await table.steps(long)).count("proposer")) == ("rounds", 8)
        assert (await table.store.get(other.run_id, BOB)).status == "awaiting_input"
        assert await table.store.events(other.run_id, ANN) == []

    at_table(program)


@pytest.mark.slow
def test_fifty_runs_over_three_workers_all_end_and_share_nothing() -> None:
    async def program(table: Table) -> None:
        for name in "abc":
            table.worker(name)
        runs = [await table.submit(given=f"Which {n}?") for n in range(50)]
        for run in runs:
            run = await table.until(run, "completed")
            assert (run.fence, await table.steps(run)) == (1, FRESH)
        assert len(table.threads()) == 50

    at_table(program, RunPolicy(lease=10.0, watchdog=2.0, capacity=20))


def test_a_question_without_rounds_has_three() -> None:
    async def program(table: Table) -> None:
        table.worker("a", models=models())
        run = await table.store.submit(
            "discussion", {"question": "Which?"}, owner=ANN, model="fake"
        )
        assert (await table.until(run, "completed")).end_reason == "consensus"

    at_table(program)
