"""The steps of a discussion: it ends whatever its models say, and effects wait for a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.runs.discussion.approval import VALID
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.nodes import QUESTIONS
from labkit.runs.discussion.talk import TOOL
from labkit.runs.record import AgentRun
from tests.runs.kit import RunPolicy

from .kit import ACTS, ASKS, BOTH, Table, at_table, wants, whole

MAIL = {"to": "team", "text": "v1"}


def decides(**told: Any) -> str:
    """A coordinator's word."""
    return json.dumps(told)


async def said(table: Table, role: str, *words: Any, rounds: int = 3) -> AgentRun:
    """A run in which a role says that, as far as it gets without a person."""
    table.model.says[role] = list(words)
    table.worker("a")
    run = await table.submit(rounds=rounds)
    return await table.until(run, "completed", "awaiting_input")


@pytest.mark.parametrize(
    "word",
    [
        "nonsense",
        "",
        "[]",
        '{"action": "dispatch", "target": "mallory"}',
        '{"action": "finish", "target": null}',
        '{"action": ["dispatch"], "target": {"x": 1}, "reason": 7}',
        '{"action": "ask_human", "instruction": "  "}',
        '{"action": "ask_human"}',
        'Well: {"action": "dispatch", "target": "critic"} I think.',
    ],
)
def test_whatever_a_coordinator_says_the_discussion_goes_its_way(word: str) -> None:
    async def program(table: Table) -> None:
        run = await said(table, "coordinator", word)
        assert (run.status, run.end_reason) == ("completed", "consensus")

    at_table(program)


@pytest.mark.parametrize("target", ["proposer", "critic"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_coordinator_that_always_wants_the_same_ends_by_the_rounds(
    target: str, rounds: int
) -> None:
    async def program(table: Table) -> None:
        table.model.says["critic"] = ["No.\nVERDICT: REVISE"]
        run = await said(
            table, "coordinator", decides(action="dispatch", target=target), rounds=rounds
        )
        assert (run.status, run.end_reason) == ("completed", "rounds")
        assert table.model.asked.count("proposer") == rounds
        assert 1 <= table.model.asked.count("critic") <= rounds

    at_table(program)


def test_a_coordinator_that_asks_for_ever_asks_so_many_questions() -> None:
    async def program(table: Table) -> None:
        word = decides(action="ask_human", instruction="And why?", reason="curious")
        run = await said(table, "coordinator", word)
        for number in range(QUESTIONS):
            assert [ask["id"] for ask in asked(run)] == [f"question-{number + 1}"]
            run = await table.until(await table.say(run, "so"), "awaiting_input", "completed")
        assert run.status == "completed"

    at_table(program)


@pytest.mark.parametrize("word", [{}, {"answer": None}, {"answer": ["a", "b"]}, {"answer": "团队"}])
def test_a_persons_word_of_any_form_is_an_answer_to_a_question(word: dict[str, Any]) -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(given=ASKS), "awaiting_input")
        await table.store.answer(run.run_id, run.owner, {"ask": "question-1", **word}, seq=run.seq)
        assert (await table.until(run, "completed")).status == "completed"

    at_table(program)


def test_a_proposal_without_calls_waits_for_nobody() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.done()
        assert "tool" not in await table.steps(run)
        assert table.desk.effects == []

    at_table(program)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (wants("format_disk"), "no such tool"),
        (wants("send_mail", to="team"), "the arguments are"),
        (wants("send_mail", to="team", text=7), "a text of 1 to"),
        (wants("send_mail", to="team", text=float("nan")), "a text of 1 to"),
    ],
    ids=lambda each: str(each)[:40],
)
def test_a_call_that_may_not_run_is_told_to_the_models_and_no_person_is_asked(
    call: dict[str, Any], why: str
) -> None:
    async def program(table: Table) -> None:
        run = await said(table, "proposer", whole("Plan", "tool_calls", (call,)), "Plan")
        assert run.status == "completed"
        assert table.desk.effects == []
        assert any(f"[{TOOL}] {call['name']}: not run: " in read for read in table.model.read)
        assert any(why in read for read in table.model.read)

    at_table(program)


def test_a_proposal_has_at_most_eight_calls_and_says_what_is_left_out() -> None:
    async def program(table: Table) -> None:
        calls = tuple(wants("send_mail", to="team", text=f"v{n}") for n in range(11))
        run = await said(table, "proposer", whole("Plan", "tool_calls", calls), "Plan")
        assert [ask["id"] for ask in asked(run)] == [f"ask-{n}" for n in range(1, 9)]
        told = [event.data for event in await table.events(run) if "tools" in event.data]
        assert len(told[0]["tools"]) == 8
        assert told[0]["text"] == "Plan\n(3 more calls are left out: 8 at a time.)"

    at_table(program)


def test_an_effect_waits_for_a_yes_and_a_no_lets_it_be() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        await table.done(ACTS, "reject")
        assert table.desk.effects == []
        await table.done(ACTS, "approve")
        assert table.desk.effects == [{"title": "Try plan v1"}]

    at_table(program)


def test_the_same_call_twice_in_a_run_has_one_effect_and_another_one_its_own() -> None:
    async def program(table: Table) -> None:
        same, other = wants("send_mail", **MAIL), wants("send_mail", to="team", text="v2")
        proposals = [
            whole("Plan", "tool_calls", (same, other)),
            whole("Plan", "tool_calls", (same,)),
        ]
        run = await said(table, "proposer", *proposals)
        assert [ask["id"] for ask in asked(run)] == ["ask-1", "ask-2"]
        for _ in range(3):
            run = await table.until(await table.say(run), "awaiting_input", "completed")
        assert run.status == "completed"
        assert table.desk.effects == [MAIL, {"to": "team", "text": "v2"}]

    at_table(program)


def test_a_yes_that_comes_when_its_time_is_over_lets_nothing_run() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(given=ACTS), "awaiting_input")
        await table.at(asked(run)[0]["until"])
        await table.say(run)
        run = await table.until(run, "completed")
        assert table.desk.effects == []
        assert any("too late" in read for read in table.model.read)

    at_table(program, RunPolicy(lease=60.0, watchdog=VALID))


@pytest.mark.parametrize(("seconds", "late", "had"), [(60.0, 0.0, 0), (0.2, 60.0, 1)])
def test_a_call_that_was_begun_in_time_is_brought_to_its_end_when_that_time_is_over(
    seconds: float, late: float, had: int
) -> None:
    async def program(table: Table) -> None:
        first = table.worker("a")
        run = await table.until(await table.submit(given=ACTS), "awaiting_input")
        until = asked(run)[0]["until"]
        await table.at(until - 1.0)
        table.desk.seconds, table.desk.late = seconds, late
        await table.say(run)
        await table.at(until - 0.5)
        first.process.kill()
        assert len(table.desk.effects) == had
        table.desk.seconds, table.desk.late = 0.2, 0.0
        table.worker("b")
        await table.until(run, "completed")
        assert table.clock() > until
        assert len(table.desk.effects) == 1
        assert any("receipt 1" in read for read in table.model.read)
        assert not any("too late" in read for read in table.model.read)

    at_table(program, RunPolicy(lease=60.0, watchdog=60.0))


def test_a_call_that_failed_is_not_done_again_when_its_time_is_over() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(given=ACTS), "awaiting_input")
        until = asked(run)[0]["until"]
        table.desk.refuses = True
        await table.say(run)
        run = await table.until(run, "failed")
        assert (run.error_code, table.clock() < until) == ("AUTH", True)
        table.desk.refuses = False
        await table.at(until)
        await table.store.retry(run.run_id, run.owner)
        await table.until(run, "completed")
        assert table.desk.effects == []
        assert any("too late" in read for read in table.model.read)

    at_table(program, RunPolicy(lease=60.0, watchdog=60.0))


@pytest.mark.parametrize("error", [ProviderError("x", status=500), ValueError("odd"), KeyError()])
def test_a_memory_that_cannot_be_made_leaves_the_run_as_it_is(error: Exception) -> None:
    async def program(table: Table) -> None:
        run = await said(table, "keeper", error)
        assert run.status == "completed"
        events = await table.events(run)
        assert events[-2].data["remembered"] == 0

    at_table(program)


def test_without_memories_no_model_is_asked_for_them_and_none_are_loaded() -> None:
    async def program(table: Table) -> None:
        table.memories = None
        table.worker("a")
        run = await table.done(ASKS, "5,000")
        assert "keeper" not in table.model.asked
        assert (await table.events(run))[2].data["memories"] == []

    at_table(program)


def test_tokens_and_requests_are_those_of_the_steps_that_were_kept() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.done(BOTH, "approve", "reject")
        assert run.result["requests"] == len(table.model.asked)
        assert run.result["tokens"] > 0

    at_table(program)
