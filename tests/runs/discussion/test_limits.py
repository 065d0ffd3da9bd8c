"""What is promised in numbers, and what nobody sees until it is gone: budgets, ids, quiet retries.

The numbers stand here as users are told them, and are not read from the code.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langsmith import utils as langsmith

from labkit.recovery.tools import Permitted, permit
from labkit.runs.discussion import opening
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.memory import Memories, UnknownMemory, facts_in, space_of
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.opening import open_discussion
from labkit.runs.discussion.report import report
from labkit.runs.discussion.speaking import Speaker, object_in
from labkit.runs.discussion.talk import CRITIC, turn
from labkit.runs.discussion.toolbox import toolbox
from labkit.runs.record import AgentRun
from labkit.runs.store import RunStore
from tests.runs.conftest import on_postgresql
from tests.runs.kit import ANN
from tests.runs.storing import run as running
from tests.simulation.kit import virtually

from .kit import ASKS, BOTH, Desk, Scripted, Table, at_table, talk, wants, whole

MAIL, OTHER = wants("send_mail", to="team", text="v1"), wants("send_mail", to="team", text="v2")


def memories_of(store: InMemoryStore, last: str | None) -> Memories:
    """Memories of runs whose last step was done by the claim of that thread."""

    async def completed(run_id: str, owner: Any) -> str | None:
        return last

    return Memories(store, completed)


# --- models: what they may cost, and who hears of them


def test_a_discussion_asks_a_real_model_as_often_as_is_allowed_and_no_more() -> None:
    async def program(table: Table) -> None:
        made = Models(real_calls=2)
        made.add("lab:real", table.model)
        table.worker("a", models=made)
        run = await table.submit(model="lab:real")
        run = await table.until(run, "failed", "completed")
        assert (run.status, run.error_code) == ("failed", "BudgetExhausted")
        assert len(table.model.asked) == 2

    at_table(program)


class Watched(Scripted):
    """Notes whether LangSmith would be told of a call."""

    seen: list[Any] = []  # noqa: RUF012  # pydantic copies it

    async def _agenerate(self, *more: Any, **options: Any) -> Any:
        self.seen.append(langsmith.tracing_is_enabled())
        return await super()._agenerate(*more, **options)


@pytest.fixture
def _traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment says that everything is to be told to LangSmith, which is nowhere."""
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    read: Any = langsmith.get_env_var  # it remembers what it has read
    read.cache_clear()
    yield
    monkeypatch.undo()
    read.cache_clear()


@pytest.mark.usefixtures("_traced")
def test_a_discussion_is_told_to_no_tracer_whatever_the_environment_says() -> None:
    async def program(table: Table) -> None:
        table.model = model = Watched()
        table.worker("a")
        await table.done()
        assert len(model.seen) > 5
        assert not any(model.seen)

    assert langsmith.tracing_is_enabled()
    at_table(program)


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "end_turn", "tool_use"])
def test_each_provider_has_its_word_for_an_answer_that_is_whole(finish: str) -> None:
    said = AIMessage("Sound.", response_metadata={"stop_reason": finish})
    model = Scripted(says={CRITIC: [said]})
    speaker = Speaker(model, random=Random(7), observe=lambda kind, **told: None)
    assert virtually(speaker(CRITIC, talk(turn("proposer", "Plan")))).text == "Sound."


def test_a_json_that_goes_too_deep_is_no_object() -> None:
    depth = 200_000
    assert object_in('{"a":' * depth + "1" + "}" * depth) == {}


# --- what is asked of a person


def test_each_call_of_a_later_proposal_has_an_id_of_its_own() -> None:
    async def program(table: Table) -> None:
        table.model.says["proposer"] = [whole("v", "tool_calls", (each,)) for each in (MAIL, OTHER)]
        table.worker("a")
        run = await table.submit(rounds=2)
        seen = []
        while (run := await table.until(run, "awaiting_input", "completed")).status != "completed":
            seen += [ask["id"] for ask in asked(run)]
            await table.say(run)
        assert seen == ["ask-1", "ask-2"]

    at_table(program)


def test_an_approval_is_waited_for_an_hour() -> None:
    async def program(table: Table) -> None:
        table.model.says["proposer"] = [whole("Plan", "tool_calls", (MAIL,))]
        table.worker("a")
        run = await table.until(await table.submit(), "awaiting_input")
        left = asked(run)[0]["until"] - table.clock()
        assert 3590.0 < left <= 3600.0

    at_table(program)


def test_what_waits_at_once_is_told_in_one_event_each_by_its_id_kind_and_tool() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.until(await table.submit(given=BOTH), "awaiting_input")
        (told,) = [e.data for e in await table.events(run) if e.type == "awaiting_input"]
        assert told["question"] == "May create_ticket run? May send_mail run?"
        first, second = (
            {"id": "ask-1", "tool": "create_ticket"},
            {"id": "ask-2", "tool": "send_mail"},
        )
        assert told["asks"] == [{**each, "kind": "approval"} for each in (first, second)]

    at_table(program)


@pytest.mark.parametrize("length", [1000, 1001])
def test_an_argument_of_a_tool_has_at_most_1000_characters(length: int) -> None:
    tools, schemas = toolbox(Desk())
    permitted = permit("create_ticket", {"title": "x" * length}, tools, ANN)
    assert isinstance(permitted, Permitted) == (length == 1000)
    title = schemas[0]["function"]["parameters"]["properties"]["title"]
    assert title["maxLength"] == 1000


# --- memories


async def filled(facts: InMemoryStore, count: int) -> None:
    """So many facts of earlier runs, the last one the newest."""
    for number in range(count):
        value = {"text": f"fact {number}", "run": "old", "thread": "old/1", "at": float(number)}
        await facts.aput(space_of(ANN), f"old-{number}", value)


def test_the_newest_five_facts_are_loaded_and_fifty_are_listed() -> None:
    async def program(table: Table) -> None:
        table.memories = memories_of(table.facts, "old/1")
        await filled(table.facts, 60)
        table.worker("a")
        run = await table.done()
        loaded = (await table.events(run))[2].data["memories"]
        assert loaded == [f"fact {number}" for number in range(59, 54, -1)]
        assert len(await table.memories.of(ANN)) == 50

    at_table(program)


def test_a_fact_has_at_most_200_characters_whoever_says_it() -> None:
    async def program(table: Table) -> None:
        facts = facts_in("stop", {"facts": ["x" * 201]})
        assert facts == ["x" * 200]
        run = await table.submit()
        memories = memories_of(table.facts, f"{run.run_id}/{run.fence}")
        await memories.keep(run, facts, at=1.0)
        (memory,) = await memories.of(ANN)
        corrected = await memories.correct(ANN, memory.key, "y" * 201)
        assert (memory.text, corrected.text) == ("x" * 200, "y" * 200)

    at_table(program)


@pytest.mark.parametrize("last", [None, "", "run-01/7"], ids=["goes on", "cancelled", "another"])
def test_a_fact_that_does_not_count_is_neither_corrected_nor_deleted(last: str | None) -> None:
    async def program(table: Table) -> None:
        run = await table.submit()
        memories = memories_of(table.facts, last)
        await memories.keep(run, ["old"], at=1.0)
        (item,) = await table.facts.asearch(space_of(ANN))
        with pytest.raises(UnknownMemory):
            await memories.correct(ANN, item.key, "mine")
        with pytest.raises(UnknownMemory):
            await memories.delete(ANN, item.key)
        (kept,) = await table.facts.asearch(space_of(ANN))
        assert kept.value["text"] == "old"

    at_table(program)


def test_a_second_try_with_fewer_facts_leaves_nothing_of_the_first() -> None:
    async def program(table: Table) -> None:
        run = await table.submit()
        memories = memories_of(table.facts, f"{run.run_id}/{run.fence}")
        await memories.keep(run, ["a", "b", "c"], at=1.0)
        await memories.keep(run, ["d"], at=2.0)
        assert [memory.text for memory in await memories.of(ANN)] == ["d"]

    at_table(program)


class Stumbles(InMemoryStore):
    """A store that is gone once, at the third fact."""

    puts = 0

    async def aput(self, *more: Any, **options: Any) -> None:
        self.puts += 1
        if self.puts == 3:
            raise sqlite3.OperationalError("database is locked")
        await super().aput(*more, **options)


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
def test_a_second_try_whose_answer_was_cut_takes_nothing_from_the_first(finish: str) -> None:
    async def program(table: Table) -> None:
        assert table.memories is not None
        facts = json.dumps({"facts": ["a", "b", "c"]})
        table.model.says["keeper"] = [facts, whole(facts, finish)]
        table.facts = Stumbles()
        table.memories = Memories(table.facts, table.memories._completed)
        table.worker("a")
        run = await table.done()
        assert (run.fence, table.model.asked.count("keeper")) == (1, 2)
        assert [memory.text for memory in await table.memories.of(ANN)] == ["a", "b"]

    at_table(program)


# --- texts


def test_a_conclusion_is_kept_as_each_database_can_keep_it() -> None:
    async def program(table: Table) -> None:
        table.model.says["summarizer"] = ["Take\0 it."]
        table.worker("a")
        run = await table.done()
        assert run.result["conclusion"] == "Take? it."
        told = [event.data.get("conclusion") for event in await table.events(run)]
        assert "Take? it." in told

    at_table(program)


def test_a_role_in_a_report_is_a_text_like_all_others() -> None:
    async def program(table: Table) -> AgentRun:
        return await table.submit()

    told = report(at_table(program), talk(turn("<b>critic</b>", "Sound.")), [])
    assert "<b>" not in told
    assert r"\<b\>critic" in told


# --- a database that is gone for a moment


class Blinks(InMemorySaver):
    """In memory, but gone at the call of that number, once `left` is set; both ends count."""

    left = 0
    name = ""

    async def aget_tuple(self, *more: Any) -> Any:
        self._look("aget_tuple")
        return await super().aget_tuple(*more)

    async def aput(self, *more: Any) -> Any:
        self._look("aput")
        return await super().aput(*more)

    def _look(self, name: str) -> None:
        if name == self.name:
            self.left -= 1
            if self.left == 0:
                raise sqlite3.OperationalError("database is locked")


@pytest.mark.parametrize(
    ("name", "number"), [*(("aget_tuple", n) for n in range(1, 6)), ("aput", 1), ("aput", 2)]
)
def test_wherever_the_database_blinks_after_a_take_over_the_same_claim_goes_on(
    name: str, number: int
) -> None:
    async def program(table: Table) -> None:
        table.saver = saver = Blinks()
        table.worker("a")
        run = await table.until(await table.submit(given=ASKS), "awaiting_input")
        saver.name, saver.left = name, number
        await table.say(run, "5,000")
        run = await table.until(run, "completed")
        assert saver.left <= 0  # it was gone
        assert run.fence == 2
        assert (await table.types(run)).count("run_started") == 2
        assert len(table.model.asked) == run.result["requests"]

    at_table(program)


def test_a_database_that_comes_back_is_soon_heard_of() -> None:
    async def program(table: Table) -> None:
        table.saver = Blinks()
        table.saver.name, table.saver.left = "aput", 1
        table.worker("a")
        await table.done()
        assert table.clock() < 20.0

    at_table(program)


@on_postgresql
def test_while_one_service_is_open_another_may_be_opened(
    url: str, store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY", 2_000)
    how: Any = {"ledger": str(tmp_path / "effects.db"), "worker": "w", "lease": 30.0}

    async def program() -> None:
        async with (
            open_discussion(url, store, models=Models(), **how),
            open_discussion(url, store, models=Models(), **how),
        ):
            pass

    running(program())
