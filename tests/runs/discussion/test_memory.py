"""What is remembered: few stable facts, of completed runs alone, each its owner's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from labkit.recovery.stream.record import Owner
from labkit.runs.discussion.memory import (
    LOADED,
    LONGEST,
    BadNamespace,
    Memories,
    UnknownMemory,
    below,
    facts_in,
)
from labkit.runs.record import AgentRun
from tests.runs.kit import ANN, BOB

from .kit import ASKS, Table, at_table, whole

TEA = json.dumps({"facts": ["User likes tea."]})


async def texts(table: Table, owner: Owner = ANN, **how: Any) -> list[str]:
    """What is remembered of a user."""
    assert table.memories is not None
    return [memory.text for memory in await table.memories.of(owner, **how)]


async def kept(table: Table, *facts: Any) -> AgentRun:
    """A completed run whose facts are these."""
    table.model.says["keeper"] = [json.dumps({"facts": list(facts)})]
    return await table.done()


@pytest.mark.parametrize(
    ("facts", "known"),
    [
        ([], []),
        (["a"], ["a"]),
        (["a", "b", "c", "d"], ["a", "b", "c"]),
        (["x" * 500], ["x" * LONGEST]),
        (["  a\n "], ["a"]),
        (["", "  ", "a"], ["a"]),
        ([7, None, ["x"], {"a": 1}, "a"], ["a"]),
        ("not a list", None),
        (None, None),
    ],
    ids=lambda each: str(each)[:20],
)
def test_facts_are_at_most_three_short_texts(facts: Any, known: list[str] | None) -> None:
    assert facts_in("stop", {"facts": facts}) == known


@pytest.mark.parametrize("finish", ["", "length", "content_filter", "tool_calls"])
def test_an_answer_that_does_not_end_by_stop_has_no_facts(finish: str) -> None:
    assert facts_in(finish, {"facts": ["half"]}) is None
    assert facts_in("stop", ["half"]) is None


@pytest.mark.parametrize("finish", ["stop", "end_turn"])
def test_an_answer_that_is_whole_in_the_words_of_any_provider_has_facts(finish: str) -> None:
    assert facts_in(finish, {"facts": ["whole"]}) == ["whole"]


def test_a_fact_is_seen_at_no_moment_before_its_run_is_completed() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await table.submit()
        table.model.says["keeper"] = [TEA]
        stored = False
        while (await table.get(run)).status != "completed":
            stored = stored or bool(table.facts.search(("memories",)))
            assert await texts(table) == [] or (await table.get(run)).status == "completed"
            await asyncio.sleep(0.02)
        assert stored  # it was there, and was not seen
        assert await texts(table) == ["User likes tea."]

    at_table(program)


def test_a_fact_of_a_run_that_is_cancelled_after_it_was_kept_never_counts() -> None:
    async def program(table: Table) -> None:
        worker = table.worker("a")
        table.model.says["keeper"] = [TEA]
        run = await table.submit()
        await table.when(lambda: table.facts.search(("memories",)))
        await worker.manager.cancel(run.run_id, ANN)
        assert (await table.get(run)).status == "cancelled"
        assert await texts(table) == []

    at_table(program)


def test_memories_are_corrected_and_deleted_by_their_owner_alone() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await kept(table, "likes tea", "likes cake")
        memories = table.memories
        assert memories is not None
        first, second = await memories.of(ANN)
        assert (first.run_id, first.text) == (run.run_id, "likes tea")
        for stranger in (BOB, Owner("ann", "other")):
            assert await memories.of(stranger) == []
            with pytest.raises(UnknownMemory):
                await memories.correct(stranger, first.key, "mine")
            with pytest.raises(UnknownMemory):
                await memories.delete(stranger, first.key)
        better = await memories.correct(ANN, first.key, f" {'coffee ' * 50}")
        assert better == first._replace(text=("coffee " * 50)[:LONGEST])
        await memories.delete(ANN, second.key)
        with pytest.raises(UnknownMemory):
            await memories.delete(ANN, second.key)
        assert await memories.of(ANN) == [better]

    at_table(program)


class Held(InMemoryStore):
    """A store whose next put of a fact waits for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.go.set()

    async def aput(self, namespace: tuple[str, ...], *more: Any, **options: Any) -> None:
        if namespace[-1] == "facts":
            await self.go.wait()
        await super().aput(namespace, *more, **options)


def stored(table: Table) -> list[str]:
    """The texts that are in the store, whether they count or not."""
    return sorted(
        item.value["text"] for item in table.facts.search(("memories",)) if "text" in item.value
    )


async def corrected_late(table: Table) -> tuple[Memories, asyncio.Task[Any], Held]:
    """A memory that is deleted while a correction of it is about to be written."""
    table.facts = held = Held()
    assert table.memories is not None
    table.memories = Memories(held, table.memories._completed)
    table.worker("a")
    await kept(table, "likes tea")
    (fact,) = await table.memories.of(ANN)
    held.go.clear()
    correcting = asyncio.create_task(table.memories.correct(ANN, fact.key, "likes coffee"))
    await asyncio.sleep(0.1)
    await table.memories.delete(ANN, fact.key)
    return table.memories, correcting, held


def test_a_memory_that_is_deleted_while_it_is_corrected_is_gone() -> None:
    async def program(table: Table) -> None:
        memories, correcting, held = await corrected_late(table)
        held.go.set()
        with pytest.raises(UnknownMemory):
            await correcting
        assert stored(table) == []
        assert await memories.of(ANN) == []

    at_table(program)


def test_a_memory_that_is_deleted_stays_so_when_its_corrector_dies() -> None:
    async def program(table: Table) -> None:
        memories, correcting, held = await corrected_late(table)
        found = table.facts.search(("memories",))
        assert [item.namespace[-1] for item in found] == ["gone"]
        assert "tea" not in str(found)
        correcting.cancel()
        space, key = (*found[0].namespace[:-1], "facts"), found[0].key
        run = (await table.store.runs(ANN))[0]
        value = {"text": "likes coffee", "run": run.run_id, "at": 1.0}
        held.put(space, key, {**value, "thread": run.checkpoint["thread"]})  # and no look after it
        assert await memories.of(ANN) == []
        assert stored(table) == []
        with pytest.raises(UnknownMemory):
            await memories.correct(ANN, key, "again")

    at_table(program)


def test_what_other_claims_have_kept_goes_with_a_memory() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        run = await kept(table, "likes tea", "likes cake")
        other = {"text": "my iban is X", "run": run.run_id, "at": 0.5, "thread": "run/0"}
        table.facts.put((table.facts.search(("memories",)))[0].namespace, "run-0-1", other)
        assert table.memories is not None
        first, _ = await table.memories.of(ANN, most=2)
        await table.memories.delete(ANN, first.key)
        assert stored(table) == ["likes cake"]

    at_table(program)


def test_what_will_never_count_does_not_stay_in_the_store() -> None:
    async def program(table: Table) -> None:
        worker = table.worker("a")
        table.model.says["keeper"] = [TEA]
        run = await table.submit()
        await table.when(lambda: stored(table))
        assert await texts(table) == []
        assert stored(table) == ["User likes tea."]  # it may still count
        await worker.manager.cancel(run.run_id, ANN)
        assert await texts(table) == []
        assert stored(table) == []

    at_table(program)


def test_a_step_that_is_done_again_leaves_no_double_and_nothing_of_the_first_try() -> None:
    async def program(table: Table) -> None:
        worker = table.worker("a")
        table.model.says["keeper"] = [json.dumps({"facts": ["a", "b", "c"]}), TEA]
        run = await table.submit()
        await table.when(lambda: len(table.facts.search(("memories",))) == 3)
        worker.process.kill()  # before the step is kept
        table.worker("b")
        await table.until(run, "completed")
        assert table.model.asked.count("keeper") == 2
        assert await texts(table) == ["User likes tea."]

    at_table(program)


def test_what_a_zombie_keeps_after_the_end_counts_never_not_in_the_place_of_a_correction() -> None:
    class Slow(InMemoryStore):
        async def aput(self, *more: Any, **options: Any) -> None:
            async def later() -> None:  # as a database does, whoever still waits for it
                await asyncio.sleep(0.5)
                self.put(*more, **options)

            await asyncio.shield(asyncio.create_task(later()))

    async def program(table: Table) -> None:
        assert table.memories is not None
        slow = Slow()
        slow._data = table.facts._data
        table.model.says["keeper"] = [json.dumps({"facts": ["old"]}), TEA]
        late = table.worker("a", memories=Memories(slow, table.memories._completed))
        run = await table.submit()
        await table.when(lambda: "keeper" in table.model.asked)
        await asyncio.sleep(0.2)  # it has its answer, and is about to keep it
        late.process.freeze(60.0)
        table.worker("b")
        await table.until(run, "completed")
        (key,) = [i.key for i in table.facts.search(("memories",)) if "tea" in i.value["text"]]
        await table.memories.correct(ANN, key, "likes coffee")
        await table.at(200.0)
        assert stored(table) == ["likes coffee", "old"]
        assert await texts(table) == ["likes coffee"]
        assert stored(table) == ["likes coffee"]  # what will never count is not kept

    at_table(program)


def test_the_newest_five_are_loaded_and_told_and_more_are_listed() -> None:
    async def program(table: Table) -> None:
        table.worker("a")
        for number in range(LOADED + 1):
            await kept(table, f"fact {number}")
        run = await table.done()
        loaded = (await table.events(run))[2].data["memories"]
        assert loaded == [f"fact {number}" for number in range(LOADED, 0, -1)]
        assert len(await texts(table)) == LOADED + 2
        assert len(await texts(table, most=2)) == 2
        assert any("Remembered: fact 5" in read for read in table.model.read)

    at_table(program)


@pytest.mark.parametrize(
    "user", ["a.b", "%", "_", "a/b", "langgraph", "\\", "用户", "\ud800", "\0"], ids=ascii
)
def test_any_name_of_a_user_has_memories_of_its_own(user: str) -> None:
    async def program(table: Table) -> None:
        store = table.store
        odd = Owner(user, "acme")
        table.worker("a")
        table.model.says["keeper"] = [TEA]
        given = {"question": "Which?", "rounds": 3}
        run = await store.submit("discussion", given, owner=odd, model="fake")
        await asyncio.sleep(30.0)
        assert (await store.get(run.run_id, odd)).status == "completed"
        assert await texts(table, odd) == ["User likes tea."]
        assert await texts(table) == []

    at_table(program)


@pytest.mark.parametrize("space", [(), ("",), ("a", ""), ("a.b",), ("a", 7)])
def test_what_is_no_namespace_is_refused(space: Any) -> None:
    with pytest.raises(BadNamespace):
        asyncio.run(below(InMemoryStore(), space))


def test_a_namespace_is_read_to_its_end_however_much_is_in_it() -> None:
    async def program() -> int:
        store = InMemoryStore()
        for number in range(450):
            await store.aput(("t", f"u{number % 3}"), str(number), {"number": number})
        return len({item.key for item in await below(store, ("t",))})

    assert asyncio.run(program()) == 450


def test_an_answer_that_was_cut_keeps_nothing_and_the_run_goes_on() -> None:
    async def program(table: Table) -> None:
        table.model.says["keeper"] = [whole(TEA, finish="length")]
        table.worker("a")
        run = await table.done(ASKS, "5,000")
        assert (await table.events(run))[-2].data["remembered"] == 0
        assert await texts(table) == []

    at_table(program)


def test_a_store_that_finds_too_much_is_not_trusted() -> None:
    class Sloppy(InMemoryStore):
        async def asearch(self, *more: Any, **options: Any) -> Any:
            return await super().asearch((), **options)

    async def program() -> list[str]:
        store = Sloppy()
        for space in (("t", "acme"), ("t", "acme-corp"), ("t", "acme", "team"), ("u", "acme")):
            await store.aput(space, "note", {"in": "/".join(space)})
        return sorted(item.value["in"] for item in await below(store, ("t", "acme")))

    assert asyncio.run(program()) == ["t/acme", "t/acme/team"]
