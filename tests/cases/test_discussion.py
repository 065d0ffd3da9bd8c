"""Cases 67 to 70: interrupts that wait beside each other, approvals, memories and their borders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send, interrupt

from labkit.recovery.run_states import IllegalMove
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.runs.discussion.approval import VALID, approval_of
from labkit.runs.discussion.asking import asked
from labkit.runs.discussion.checkpoints import Checkpoints
from labkit.runs.discussion.memory import BadNamespace, below
from labkit.runs.discussion.opening import _opened
from labkit.runs.manager import RunPolicy
from labkit.runs.record import AgentRun
from tests.runs.discussion.kit import Table, at_table, call, wants, whole
from tests.runs.kit import ANN
from tests.runs.storing import run
from tests.stores.postgres import new_schema

from .public import case

INTERRUPTS, APPROVAL, BORDERS, FINISHED = (case(number) for number in (67, 68, 69, 70))
KINDS = ["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.socket)]
on_each = pytest.mark.parametrize("parts", KINDS, indirect=True)
Parts = Callable[[], Any]


@pytest.fixture
def parts(request: pytest.FixtureRequest, tmp_path: Path) -> Parts:
    """A saver and a store of the kind that the test asks for, for as long as a block lasts."""
    kind = request.param
    if kind == "postgresql":
        url = new_schema(request.getfixturevalue("postgresql"))
    else:
        url = f"sqlite:///{tmp_path / 'runs.db'}"

    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Any, Any]]:
        async with AsyncExitStack() as stack:
            yield (
                (InMemorySaver(), InMemoryStore())
                if kind == "memory"
                else await _opened(stack, url)
            )

    return opened


# --- 67


class State(TypedDict):
    """What came of the tools."""

    results: Annotated[list[str], add]


class Lease:
    """One that is never lost."""

    async def lost_by_now(self) -> str:
        """It is not."""
        return ""


def tools_of(committed: Counter[str]) -> Any:
    """A step for each tool of the case, beside each other; "!" marks one that asks."""

    async def begin(state: State) -> State:
        return {"results": []}

    async def tool(name: str) -> State:
        said = f":{interrupt({'id': name[0]})}" if name.endswith("!") else ""
        committed[name[0]] += 1
        return {"results": [name[0].upper() + said]}

    made: Any = StateGraph(State)
    made.add_node("begin", begin)
    made.add_node("tool", tool)
    made.add_edge(START, "begin")
    names = INTERRUPTS["input"]["tools"]
    made.add_conditional_edges("begin", lambda state: [Send("tool", name) for name in names])
    made.add_edge("tool", END)
    return made


@on_each
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_case_67_each_answer_goes_to_its_own_question_and_what_is_done_is_not_done_again(
    order: tuple[int, int], parts: Parts
) -> None:
    answers, committed = INTERRUPTS["input"]["answers"], Counter[str]()

    async def program() -> list[str]:
        async with parts() as (saver, _):
            named, given = None, {"results": []}
            for fence, answered in enumerate((None, *order), start=1):  # each by a new worker
                kept = Checkpoints(saver, "run", fence, named, Lease())  # type: ignore[arg-type]
                await kept.take_over()
                app = tools_of(committed).compile(checkpointer=kept)
                waiting = {
                    each.value["id"]: each.id
                    for each in (await app.aget_state(kept.config)).interrupts
                }
                # What is shown is what is really pending, each with an id of its own.
                wanted = [name[0] for name in INTERRUPTS["input"]["tools"] if name.endswith("!")]
                left = [wanted[number] for number in order[fence - 2 :]] if fence > 1 else []
                assert sorted(waiting) == sorted(left)
                if answered is not None:
                    if len(waiting) > 1:
                        with pytest.raises(RuntimeError):  # a bare value is nobody's
                            await app.ainvoke(Command(resume="bare"), kept.config)
                        assert committed == {"c": 1}
                    given = Command(resume={waiting[wanted[answered]]: answers[answered]})
                await app.ainvoke(given, kept.config, durability="sync")
                named = {**kept.named, "asks": []}
            return (await app.aget_state(kept.config)).values["results"]

    results = run(program())
    assert sorted(results) == INTERRUPTS["expect"]["results"]
    assert committed == INTERRUPTS["expect"]["committed"]
    assert INTERRUPTS["expect"]["bare_value_with_two_pending"] == "error"


# --- 68


def pay(amount: dict[str, int]) -> Any:
    """A proposal that wants to pay."""
    return whole("Pay.", "tool_calls", (wants("pay", **amount),))


def at_a_till(program: Any, *proposals: Any) -> list[Any]:
    """The payments in a discussion with such proposals, while `program(table, run)` answers."""

    async def all_of_it(table: Table) -> list[Any]:
        table.worker("a", tools=ToolRegistry(Tool(name="pay", service=table.desk)))
        table.model.says["proposer"] = [*proposals, "Plan."]
        started = await table.until(await table.submit(), "awaiting_input")
        await program(table, started)
        ended = await table.until(started, "completed", "awaiting_input")
        table.desk.effects.append(ended.status)
        return table.desk.effects

    return at_table(all_of_it, RunPolicy(lease=60.0, watchdog=VALID))


APPROVED, REPLAYED = APPROVAL["input"]["approved"], APPROVAL["input"]["replayed"]


def test_case_68_a_yes_to_one_call_is_no_yes_to_the_same_tool_with_other_arguments() -> None:
    async def stale(table: Table, run: AgentRun) -> None:
        """A yes that was made for the former arguments."""
        ask = asked(run)[0]
        assert ask["arguments"] == REPLAYED
        former = approval_of(call("pay", **APPROVED))["digest"]
        await table.say(run, digest=former)

    payments = at_a_till(stale, pay(REPLAYED))
    assert payments.count(REPLAYED) == APPROVAL["expect"]["executed_1000"]
    assert payments == ["completed"]


def test_case_68_the_model_that_changes_its_mind_needs_a_yes_of_its_own() -> None:
    async def once(table: Table, run: AgentRun) -> None:
        await table.say(run)

    # It wants more in its next proposal: that waits, whatever was approved before.
    assert at_a_till(once, pay(APPROVED), pay(REPLAYED)) == [APPROVED, "awaiting_input"]


def test_case_68_a_yes_that_is_sent_twice_pays_once() -> None:
    async def twice(table: Table, run: AgentRun) -> None:
        ask = asked(run)[0]
        await table.say(run)
        word = {"ask": ask["id"], "answer": "approve", "digest": ask["digest"]}
        with pytest.raises(IllegalMove):
            await table.store.answer(run.run_id, ANN, word, seq=run.seq)
        await table.until(run, "completed")
        with pytest.raises(IllegalMove):
            await table.store.answer(run.run_id, ANN, word)

    payments = at_a_till(twice, pay(APPROVED))
    assert payments.count(APPROVED) == APPROVAL["expect"]["double_approve_executions"]


@pytest.mark.parametrize("how", ["expired", "reject"])
def test_case_68_a_yes_that_is_over_and_a_no_pay_nothing_and_the_models_read_why(how: str) -> None:
    read: list[str] = []

    async def no(table: Table, run: AgentRun) -> None:
        if how == "expired":
            await table.at(asked(run)[0]["until"])
        await table.say(run, "approve" if how == "expired" else "reject")
        await table.until(run, "completed")
        read.extend(table.model.read)

    payments = at_a_till(no, pay(APPROVED))
    assert payments.count(APPROVED) == APPROVAL["expect"][f"{how}_executions"]
    assert any("[tool] pay: not run: " in each for each in read)


# --- 69


@on_each
def test_case_69_a_namespace_has_what_is_in_it_and_below_it_and_nothing_of_its_neighbours(
    parts: Parts,
) -> None:
    spaces, expected = BORDERS["input"]["namespaces"], dict(BORDERS["expect"])
    error = expected.pop("separator_label")

    async def program() -> None:
        async with parts() as (_, store):
            for space in (*spaces, ["a", "b:c"], ["a", "b", "c"]):
                await store.aput(tuple(space), "note", {"in": "/".join(space)})
            for asked_for, wanted in expected.items():
                found = await below(store, tuple(asked_for.split("/")))
                assert sorted(item.value["in"] for item in found) == wanted, asked_for
            assert [item.value["in"] for item in await below(store, ("a", "b"))] == ["a/b/c"]
            for refused in (("t", "a.b"), ("",), ("", "x"), ()):
                with pytest.raises(BadNamespace):
                    await below(store, refused)

    run(program())
    assert error == "error"


# --- 70


@pytest.mark.parametrize("number", range(len(FINISHED["input"]["ends"])))
def test_case_70_only_a_whole_answer_in_a_run_that_ends_well_is_remembered(number: int) -> None:
    end = FINISHED["input"]["ends"][number]
    memory, cursor = (FINISHED["expect"][f"{name}_after"][number] for name in ("memory", "cursor"))
    said = json.dumps({"facts": ["User likes tea."]})
    finish = {"eof": "", "length": "length", "cancel": "stop", "stop": "stop"}[end]

    async def program(table: Table) -> None:
        table.model.says["critic"] = ["No.\nVERDICT: REVISE"]
        if end != "cancel":  # there it is the demo model, which takes a second
            table.model.says["keeper"] = [whole(said, finish)]
        worker = table.worker("a")
        run = await table.submit(given="Which? [needs clarification] [needs approval]")
        for _ in "?!":
            await table.say(run)
        if end == "cancel":
            await table.when(lambda: "keeper" in table.model.asked)
            await worker.manager.cancel(run.run_id, ANN)
        run = await table.until(run)
        assert table.memories is not None
        known = [kept.text for kept in await table.memories.of(ANN)]
        assert known == ([memory] if memory else [])
        events = await table.events(run)
        told = [event.data["remembered"] for event in events if "remembered" in event.data]
        assert (told or [0])[-1] == cursor

    at_table(program)
