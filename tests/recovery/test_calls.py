"""Running tool calls: batches in order, each call to one result, and whatever a tool does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.calls import LONGEST, named, shortened
from labkit.recovery.deltas import Delta
from labkit.recovery.session import DONE, FAILED, REFUSED, TOOL, UNKNOWN, Message
from labkit.recovery.stream.record import ToolCall
from labkit.recovery.tools import Tool, ToolRegistry

from .turns import World, broken, call, play_turn, say

ANSWER = [say("done")]
Run = Callable[[Mapping[str, Any], str], Any]


def played(*tools: Tool, calls: Sequence[Delta] = (call("c1"),)) -> World:
    """A turn that makes these calls and then answers; each promise holds in any case."""
    world = play_turn([calls, ANSWER], tools=lambda world: ToolRegistry(*tools))
    told = [one for one in broken(world) if "never ran" not in one]  # these tools keep no ledger
    assert told == []
    return world


def result(run: Run, **options: Any) -> Message:
    """What the model is told of one call of that tool, and the turn goes on to its answer."""
    world = played(Tool(name="read", run=run, **options))
    assert world.answer == "done"
    (row,) = [row for row in world.session.messages if row.role == TOOL]
    return row


# --- batches


def spans(order: str) -> list[tuple[str, float, float]]:
    """When each call ran; `r` may run beside its neighbours, `w` may not, `x` is no tool."""
    ran: list[tuple[str, float, float]] = []

    def tool(name: str, concurrent: bool) -> Tool:
        async def run(arguments: Mapping[str, Any], key: str) -> str:
            clock = asyncio.get_running_loop().time
            start = clock()
            await asyncio.sleep(arguments["seconds"])
            ran.append((arguments["id"], start, clock()))
            return arguments["id"]

        return Tool(name=name, run=run, concurrent=concurrent)

    calls = [
        call(f"{name}{number}", name, f'{{"id": "{name}{number}", "seconds": {3 - number % 3}}}')
        for number, name in enumerate(order)
    ]
    calls = [
        Delta("tool_call", one.text, index=number, call_id=one.call_id, name=one.name)
        for number, one in enumerate(calls)
    ]
    world = played(tool("r", True), tool("w", False), calls=calls)
    given = [row.call_id for row in world.session.messages if row.role == TOOL]
    assert given == [one.call_id for one in calls]
    return sorted(ran, key=lambda one: one[1])


def test_neighbours_that_are_safe_run_side_by_side_and_any_other_is_a_barrier() -> None:
    ran = {name: (start, end) for name, start, end in spans("rrwrr")}
    assert ran["r0"][0] == pytest.approx(ran["r1"][0], abs=0.2)  # a write of the store apart
    assert ran["w2"][0] >= max(ran["r0"][1], ran["r1"][1])
    assert min(ran["r3"][0], ran["r4"][0]) >= ran["w2"][1]
    assert ran["r3"][0] == pytest.approx(ran["r4"][0], abs=0.2)


@given(st.text("rwx", min_size=1, max_size=6))
def test_no_call_that_is_not_safe_overlaps_with_another_and_batches_stay_in_order(
    order: str,
) -> None:
    ran = spans(order)
    assert len(ran) == len(order.replace("x", ""))
    for name, start, end in ran:
        for other, begun, ended in ran:
            if name != other and start < ended and begun < end:
                assert (name[0], other[0]) == ("r", "r")
            if ("w" in (name[0], other[0])) and int(name[1]) < int(other[1]):
                assert end <= begun


# --- whatever a tool does


def test_what_a_tool_gives_is_the_result() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        return "sent on Monday"

    row = result(run)
    assert (row.content, row.status) == ("sent on Monday", DONE)


def test_a_result_that_is_no_text_becomes_one() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> Any:
        return {"sent": True}

    assert result(run).content == "{'sent': True}"


@pytest.mark.parametrize("error", [LookupError("no such order"), TimeoutError("of its own")])
def test_a_tool_that_raises_is_a_result_and_the_turn_goes_on(error: Exception) -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise error

    row = result(run)
    assert row.status == FAILED
    assert row.content == f"Failed: {type(error).__name__}: {error}"


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [(SystemExit(3), "SystemExit: 3"), (Unspeakable(), "Unspeakable: it cannot be told")],
)
def test_a_tool_that_would_end_the_process_or_cannot_say_why_is_a_result_too(
    error: BaseException, told: str
) -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise error

    row = result(run)
    assert (row.status, row.content) == (FAILED, f"Failed: {told}")


def test_a_tool_that_hangs_is_given_up_after_its_limit_and_its_end_is_unknown() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.Event().wait()
        return ""

    row = result(run, limit=7.5)
    assert row.status == UNKNOWN
    assert row.content == "No answer within 7.5 s: it may have had its effect."


def test_a_tool_that_cancels_itself_has_failed_and_does_not_end_the_turn() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise asyncio.CancelledError

    assert result(run).status == FAILED


def test_a_tool_whose_own_task_was_cancelled_has_failed_and_does_not_end_the_turn() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        inner = asyncio.create_task(asyncio.sleep(10))
        await asyncio.sleep(0)
        inner.cancel()
        await inner
        return ""

    assert result(run).status == FAILED


def test_a_hundred_megabytes_are_cut_to_their_two_ends() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        return "begin" + "x" * 100_000_000 + "end"

    row = result(run)
    assert len(row.content) < LONGEST + 100
    assert row.content.startswith("begin")
    assert row.content.endswith("end")
    assert "99984008 characters left out" in row.content


def test_a_long_error_is_cut_too() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise ValueError("x" * 1_000_000)

    assert len(result(run).content) < LONGEST + 100


@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 12, 1000])
def test_a_text_is_cut_only_where_it_is_too_long_and_says_by_how_much(length: int) -> None:
    text = "".join(chr(97 + number % 26) for number in range(length))
    cut = shortened(text, 10)
    if length <= 10:
        assert cut == text
    else:
        assert cut == f"{text[:5]}\n... {length - 10} characters left out ...\n{text[-5:]}"
    assert shortened(text, 11).startswith(text[:6])


def test_the_tools_beside_one_that_raises_run_to_their_ends() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.sleep(arguments["seconds"])
        if arguments["seconds"] == 1:
            raise LookupError("no such order")
        return "found"

    calls = [call("a", arguments='{"seconds": 1}'), call("b", arguments='{"seconds": 2}', index=1)]
    world = played(Tool(name="read", run=run, concurrent=True), calls=calls)
    assert world.statuses() == {"a": FAILED, "b": DONE}


# --- what is asked before a call runs


async def never(arguments: Mapping[str, Any], key: str) -> str:
    raise AssertionError("it ran")


def test_a_user_who_may_not_call_it_is_told_and_nothing_runs() -> None:
    row = result(never, allowed=lambda owner: False)
    assert (row.status, row.content) == (REFUSED, "Not run: this user may not call it.")


def test_arguments_that_its_schema_refuses_are_told_and_nothing_runs() -> None:
    row = result(never, check=lambda arguments: "order is missing")
    assert (row.status, row.content) == (REFUSED, "Not run: order is missing.")


def test_a_check_that_fails_refuses_its_call_and_the_turn_goes_on() -> None:
    def check(arguments: Mapping[str, Any]) -> str:
        raise KeyError("order")

    world = played(Tool(name="read", run=never, check=check))
    assert world.error is None
    assert world.statuses() == {"c1": REFUSED}


@pytest.mark.parametrize(("takes_nothing", "status"), [(True, DONE), (False, REFUSED)])
def test_no_arguments_at_all_are_an_object_only_for_a_tool_that_takes_none(
    takes_nothing: bool, status: str
) -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        assert arguments == {}
        return "ran"

    tool = Tool(name="read", run=run, takes_nothing=takes_nothing)
    assert played(tool, calls=[call("c1", arguments=" ")]).statuses() == {"c1": status}


def test_each_call_has_a_key_of_its_own_which_another_session_does_not_have() -> None:
    keys: list[str] = []

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        keys.append(key)
        return ""

    played(Tool(name="read", run=run), calls=[call("a"), call("b", index=1)])
    played(Tool(name="read", run=run), calls=[call("a"), call("b", index=1)])
    assert keys[:2] == keys[2:]
    assert len(set(keys)) == 2


# --- ids


@given(st.lists(st.sampled_from(["", "call", "call-2", "x", "x-2"])), st.lists(st.text("x-2")))
def test_every_call_has_an_id_that_none_before_it_has(
    given_ids: list[str], taken: list[str]
) -> None:
    made = named([ToolCall(one, "read") for one in given_ids], taken)
    ids = [one.call_id for one in made]
    assert len(set(ids)) == len(ids)
    assert not set(ids) & set(taken)
    assert all(ids)


def test_an_id_that_is_the_first_of_its_kind_is_kept() -> None:
    calls = (ToolCall("a", "read"), ToolCall("b", "read", "{}"))
    assert named(calls, ["c"]) == calls
