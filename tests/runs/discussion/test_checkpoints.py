"""Checkpoints of one claim: copied at a take-over, and no zombie's is ever gone on from."""

from __future__ import annotations

import asyncio
import sqlite3
from operator import add
from typing import Annotated, Any, TypedDict

import psycopg
import psycopg_pool
import pytest
from langgraph.checkpoint.base import id as ids
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from labkit.recovery.run_states import LeaseLost
from labkit.runs.discussion import checkpoints
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.checkpoints import Checkpoints
from labkit.stores.errors import StoreDown
from tests.simulation.kit import virtually

from .kit import BOTH, Table, at_table


class State(TypedDict):
    """Who did each step."""

    by: Annotated[list[str], add]


class Lease:
    """As much of a renewal as a saver looks at."""

    lost = ""

    async def lost_by_now(self) -> str:
        """Why it is lost, or ""."""
        return self.lost


def claim(saver: Any, fence: int, named: dict[str, Any] | None = None) -> Checkpoints:
    """The checkpoints of one worker's claim."""
    return Checkpoints(saver, "run", fence, named, Lease())  # type: ignore[arg-type]


async def step(saver: Any, config: Any, who: str) -> list[str]:
    """Do the next of three steps as `who`; the state then."""
    made: Any = StateGraph(State)
    for name in "abc":
        made.add_node(name, _does(name, who))
    made.set_entry_point("a")
    made.add_edge("a", "b")
    made.add_edge("b", "c")
    app = made.compile(checkpointer=saver)
    state = await app.aget_state(config)
    given = None if state.values else {"by": []}
    await app.ainvoke(given, config, interrupt_after="*", durability="sync")
    found: list[str] = (await app.aget_state(config)).values["by"]
    return found


def _does(name: str, who: str) -> Any:
    async def node(state: State) -> dict[str, Any]:
        return {"by": [f"{name} {who}"]}

    return node


async def one_step_as(who: str, kept: Checkpoints) -> list[str]:
    """The same, by a claim."""
    return await step(kept, kept.config, who)


def test_a_zombies_late_checkpoint_is_never_gone_on_from() -> None:
    async def program() -> None:
        saver = InMemorySaver()
        zombie = claim(saver, 1)
        await one_step_as("zombie", zombie)
        other = claim(saver, 2, zombie.named)
        await other.take_over()
        assert await one_step_as("other", other) == ["a zombie", "b other"]
        assert await one_step_as("zombie", zombie) == ["a zombie", "b zombie"]  # it got through
        third = claim(saver, 3, other.named)
        await third.take_over()
        assert await one_step_as("third", third) == ["a zombie", "b other", "c third"]

    asyncio.run(program())


def test_with_one_thread_for_a_run_a_zombies_late_checkpoint_is_gone_on_from() -> None:
    async def program() -> None:
        saver, config = InMemorySaver(), {"configurable": {"thread_id": "run"}}
        await step(saver, config, "zombie")
        before = await saver.aget_tuple(config)
        assert before is not None
        await step(saver, config, "other")
        late = {"configurable": {**before.config["configurable"]}}
        await step(saver, late, "zombie")  # it goes on from what it knows
        assert (await step(saver, config, "third"))[1:] == ["b zombie", "c third"]

    asyncio.run(program())


def test_a_worker_whose_clock_is_an_hour_behind_goes_on_from_its_own_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def program() -> None:
        saver = InMemorySaver()
        first = claim(saver, 1)
        await one_step_as("first", first)
        now = ids.time.time_ns
        monkeypatch.setattr(ids, "_last_v6_timestamp", None)
        monkeypatch.setattr(ids.time, "time_ns", lambda: now() - 3_600_000_000_000)
        late = claim(saver, 2, first.named)
        await late.take_over()
        assert await one_step_as("late", late) == ["a first", "b late"]
        assert late.named["id"] < first.named["id"]  # by its name it is the older one
        assert await one_step_as("late", late) == ["a first", "b late", "c late"]

    asyncio.run(program())


@pytest.mark.parametrize("waits", [True, False])
def test_what_was_done_of_a_step_is_copied_only_where_the_row_says_that_it_waits(
    waits: bool,
) -> None:
    async def program() -> None:
        saver = InMemorySaver()
        first = claim(saver, 1)
        await one_step_as("first", first)
        config = {"configurable": {"thread_id": "run/1", "checkpoint_ns": ""}}
        found = await saver.aget_tuple(config)
        assert found is not None
        await first.aput_writes(found.config, [("by", ["b first"])], "task", "path")
        await first.aput_writes(found.config, [("by", ["b second"])], "task-2")
        named = {**first.named, "asks": []} if waits else first.named
        second = claim(saver, 2, named)
        await second.take_over()
        taken = await second.aget_tuple(second.config)
        assert taken is not None
        assert taken.checkpoint["channel_values"] == found.checkpoint["channel_values"]
        wanted = [("task", "by", ["b first"]), ("task-2", "by", ["b second"])] if waits else []
        assert taken.pending_writes == wanted
        assert second.named == {"thread": "run/2", "id": first.named["id"]}

    asyncio.run(program())


def test_a_call_that_was_answered_is_not_asked_for_again_by_the_next_worker() -> None:
    async def program(table: Table) -> None:
        worker = table.worker("a")
        run = await table.submit(given=BOTH)
        await table.say(run)
        await table.until(run, "awaiting_input")
        worker.process.kill()
        table.worker("b")
        await table.store.answer(run.run_id, run.owner, "bare")
        run = await table.until(run, "awaiting_input")
        assert [each["id"] for each in asked(run)] == ["ask-2"]
        await table.say(run)
        run = await table.until(run, "completed")
        assert len(table.desk.effects) == 2
        assert table.threads() == [f"run-01/{fence}" for fence in range(1, run.fence + 1)]

    at_table(program)


def test_without_a_lease_nothing_is_put() -> None:
    async def program() -> None:
        saver = InMemorySaver()
        kept = claim(saver, 1)
        kept._renewal.lost = "another has taken it over"
        with pytest.raises(LeaseLost, match="another has taken it over"):
            await one_step_as("zombie", kept)
        assert dict(saver.storage) == {}

    asyncio.run(program())


FAILURES = [
    sqlite3.OperationalError("database is locked"),
    psycopg.OperationalError("the connection is lost\nDETAIL: a secret"),
    psycopg.errors.AdminShutdown("terminating connection"),
    psycopg_pool.PoolTimeout("no connection"),
    ConnectionResetError("reset"),
    TimeoutError(),
]


@pytest.mark.parametrize("error", FAILURES, ids=lambda each: type(each).__name__)
def test_a_database_that_is_gone_has_one_name_and_tells_no_more_than_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        saver = InMemorySaver()
        first = claim(saver, 1)
        await one_step_as("first", first)

        async def fails(*more: Any) -> Any:
            raise error

        for call in ("aput", "aget_tuple"):
            monkeypatch.setattr(saver, call, fails)
            with pytest.raises(StoreDown) as caught:
                await claim(saver, 2, first.named).take_over()
            assert "secret" not in str(caught.value)
            assert str(caught.value)
        with pytest.raises(StoreDown):
            await one_step_as("a", first)

    asyncio.run(program())


@pytest.mark.parametrize("call", ["aput", "aput_writes"])
def test_what_a_step_has_done_is_kept_by_a_store_that_comes_back_and_is_not_done_again(
    call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        saver = InMemorySaver()
        kept = claim(saver, 1)
        left = [sqlite3.OperationalError("database is locked")] * 3
        put = getattr(saver, call)

        async def flaky(*more: Any) -> Any:
            if left:
                raise left.pop()
            return await put(*more)

        monkeypatch.setattr(checkpoints, "AGAIN", 0.0)
        monkeypatch.setattr(saver, call, flaky)
        await one_step_as("first", kept)
        assert left == []
        assert kept.named["id"]

    asyncio.run(program())


def test_a_store_that_says_nothing_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(*more: Any) -> Any:
        await asyncio.sleep(3600.0)

    async def program() -> None:
        saver = InMemorySaver()
        monkeypatch.setattr(saver, "aget_tuple", silent)
        with pytest.raises(StoreDown, match="no answer within 15"):
            await checkpoints.at(saver, {"thread": "run-1/1", "id": "x"})
        assert asyncio.get_running_loop().time() == 15.0

    virtually(program())


def test_another_error_of_a_saver_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> None:
        saver = InMemorySaver()

        async def fails(*more: Any) -> Any:
            raise TypeError("cannot be stored")

        monkeypatch.setattr(saver, "aput", fails)
        with pytest.raises(TypeError, match="cannot be stored"):
            await one_step_as("a", claim(saver, 1))

    asyncio.run(program())


def test_a_checkpoint_that_is_not_there_any_more_is_told_and_not_begun_anew() -> None:
    with pytest.raises(LookupError, match="not there any more"):
        asyncio.run(claim(InMemorySaver(), 2, {"thread": "run/1", "id": "x"}).take_over())
