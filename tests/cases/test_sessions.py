"""Cases 43, 47 to 49, 61, 62 and 64: stops, sessions, and progress that is saved in time."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from labkit.recovery.checkpoint import Checkpointer, MemorySessions
from labkit.recovery.dispatch import Concurrency, Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.session import (
    DONE,
    NOT_STARTED,
    TOOL,
    UNKNOWN,
    USER,
    Session,
    StaleSession,
    begin_turn,
    finish_turn,
)
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import TurnServices, run_turn
from labkit.stores.session_files import SessionFiles
from tests.recovery.turns import OWNER, POLICY, World, asks, call, play_turn, say
from tests.simulation.kit import virtually

from .public import case

# --- 43


class SlowStore(MemorySessions):
    """Takes some turns of the loop over each write: a scope of anyio cancels at each, and in
    virtual time no clock moves while somebody does something at each turn."""

    async def write(self, session: Session) -> int:
        for _ in range(case(43)["input"]["write_ms"]):
            await asyncio.sleep(0)
        return await super().write(session)


async def interrupted(way: str) -> tuple[Session, Session, bool]:
    """The session as it is stored when the task is done, as it is in memory, how it ended."""
    told, store = case(43)["input"], SlowStore()
    keeper, shown = Checkpointer(Session("ann"), store.write), asyncio.Event()

    def show(text: str) -> None:
        if text == told["deltas"][-1]:
            shown.set()

    services = TurnServices(
        ask=asks([*map(say, told["deltas"]), 60.0]),
        show=show,
        policy=POLICY,
        random=Random(0),
        observe=lambda kind, **told: None,
        tools=ToolRegistry(),
        owner=OWNER,
    )
    turn = run_turn("Hi", keeper, services)
    if way == "anyio scope":
        cancelled = await in_a_scope(turn, shown)
        return store.kept["ann"], keeper.session, cancelled
    task = asyncio.create_task(turn)
    await shown.wait()
    for _ in range(way.count("x2") + 1):
        task.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([task])
    return store.kept["ann"], keeper.session, task.cancelled()


async def in_a_scope(turn: Awaitable[str], shown: asyncio.Event) -> bool:
    """As a server does where the reader is gone: the scope around the answer is cancelled."""
    with anyio.CancelScope() as scope:

        async def disconnect() -> None:
            await shown.wait()
            scope.cancel()

        watching = asyncio.create_task(disconnect())
        await turn
    await watching
    return scope.cancelled_caught


@pytest.mark.parametrize("way", case(43)["input"]["ways"])
def test_case_43_the_checkpoint_survives_a_cancel_and_a_disconnect(way: str) -> None:
    stored, memory, cancelled = virtually(interrupted(way))
    expect = case(43)["expect"]["each"]
    assert cancelled
    assert (stored.messages[0].role == USER) == expect["user_saved"]
    assert [draft.text for draft in stored.drafts] == [expect["text"]]
    assert "interrupted" in expect["state_in"]
    assert stored.turn is None
    assert (stored == memory) == expect["saved_when_done"]


# --- 47


@pytest.mark.parametrize("first", ["release", "cancel A"])
def test_case_47_a_place_at_the_gate_is_handed_on_past_who_is_cancelled(first: str) -> None:
    told, expect = case(47)["input"], case(47)["expect"]

    async def work() -> tuple[list[str], int, float]:
        release, runs, clock = asyncio.Event(), [], asyncio.get_running_loop().time

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            if message.session == "H":
                await release.wait()
            else:
                runs.append(message.session)
                await asyncio.sleep(1)

        gate = Concurrency(limit=told["limit"])
        dispatcher = Dispatcher(handle, answer=lambda message, text: None, concurrency=gate)
        for session in ("H", *told["waiters"]):
            dispatcher.take(Inbound(session, "Hi"))
        await asyncio.sleep(5)
        assert told["same_tick"] == ["release", "cancel A"]
        if first == "release":
            release.set()
        stopping = asyncio.create_task(dispatcher.stop("A"))
        release.set()
        await dispatcher.idle()
        assert await stopping == 1
        return runs, dispatcher._gate._value, clock()  # type: ignore[attr-defined]

    assert virtually(work()) == (expect["runs"], expect["free_after"], 6)


def test_case_47_the_lock_of_a_session_is_handed_on_too() -> None:
    async def work() -> list[str]:
        runs: list[str] = []

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            await asyncio.sleep(1)
            runs.append(message.text)

        dispatcher = Dispatcher(handle, answer=lambda message, text: None)
        for text in ("/h", "/a", "/b"):
            dispatcher.take(Inbound("S", text))
        await asyncio.sleep(0.5)
        lane = dispatcher.lanes["S"]
        asyncio.get_running_loop().call_at(1, lane.tasks[1].cancel)  # as its wake-up is under way
        await dispatcher.idle()
        assert dispatcher.lanes == {}
        return runs + [message.text for message in dispatcher._left]

    assert virtually(work()) == ["/h", "/a", "/b"]


# --- 48


def call_that_outlives(world: World, started: list[str], written: list[float]) -> ToolRegistry:
    """A tool whose work goes on when nobody waits for it any more, as in a thread."""
    told = case(48)["input"]

    async def far_side() -> str:
        await asyncio.sleep(told["effect_at"])
        written.append(asyncio.get_running_loop().time())
        return "written"

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        started.append(key)
        return await asyncio.shield(asyncio.create_task(far_side()))

    return ToolRegistry(Tool(name="write", run=run, limit=told["timeout"]))


def test_case_48_a_call_that_is_given_up_is_unknown_and_is_not_begun_again() -> None:
    expect, started, written = case(48)["expect"], [], []
    status: list[str] = []

    async def look(world: World, task: asyncio.Task[Any]) -> None:
        await asyncio.sleep(0.06)
        status.extend(world.statuses().values())
        assert written == []
        await asyncio.sleep(0.44)

    play_turn(
        [[call("c1", "write")], [say("It may have been written.")]],
        store=MemorySessions(),
        tools=lambda world: call_that_outlives(world, started, written),
        meanwhile=look,
    )
    assert status == [UNKNOWN] == [expect["at_0.06"]]
    assert (len(started), len(written)) == (expect["starts"], expect["writes"])


def test_case_48_a_call_that_waits_for_its_batch_never_starts() -> None:
    expect, started, written = case(48)["expect"]["queued_variant"], [], []

    async def stop(world: World, task: asyncio.Task[Any]) -> None:
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(1)

    world = play_turn(
        [[call("c1", "write"), call("c2", "write", index=1)]],
        store=MemorySessions(),
        tools=lambda world: call_that_outlives(world, started, written),
        meanwhile=stop,
    )
    assert world.statuses() == {"c1": UNKNOWN, "c2": NOT_STARTED}
    assert expect == {"writes": len(started) - 1, "outcome": "cancelled"}
    assert isinstance(world.error, asyncio.CancelledError)


# --- 49


async def late_write(load: Callable[[str], Session], write: Any, let: asyncio.Event) -> Session:
    """Run 1 is cancelled while its write is blocked; run 2 writes; then run 1 is let through."""

    async def blocked(session: Session) -> int:
        await let.wait()
        written: int = await write(session)
        return written

    first = Checkpointer(load("ann"), blocked)
    saving = asyncio.create_task(first.save(begin_turn(first.session, "old")))
    await asyncio.sleep(0)
    saving.cancel()
    second = Checkpointer(load("ann"), write)
    await second.save(finish_turn(begin_turn(second.session, "new"), "answer"))
    let.set()
    await asyncio.wait([saving])
    assert saving.cancelled()
    with pytest.raises(asyncio.CancelledError) as left:
        await saving
    assert isinstance(left.value.__cause__, StaleSession)  # and it is told
    return second.session


def test_case_49_the_late_write_of_a_cancelled_run_is_refused(tmp_path: Path) -> None:
    assert case(49)["input"]["order"][-1] == "run1.save v1 old"
    assert case(49)["expect"]["late_write"] == "rejected"

    async def in_memory() -> None:
        store = MemorySessions()
        newest = await late_write(store.load, store.write, asyncio.Event())
        assert store.load("ann") == newest

    virtually(in_memory())

    async def in_files() -> None:
        with closing(SessionFiles(tmp_path)) as files:
            newest = await late_write(files.load, files.write, asyncio.Event())
            files.release("ann")
            assert files.load("ann") == newest
            assert newest.messages[0].content == case(49)["expect"]["latest"]

    asyncio.run(in_files())


# --- 61 and 62


@pytest.mark.parametrize("turns", range(12))
def test_case_61_the_mailbox_is_the_running_turns_and_nothing_jumps_the_queue(turns: int) -> None:
    told, expect = case(61)["input"], case(61)["expect"]

    async def work() -> tuple[list[str], int]:
        handled: list[str] = []
        active, most, ends = 0, 0, asyncio.Event()

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            nonlocal active, most
            active += 1
            most = max(most, active)
            if message.text == "T1":
                await ends.wait()
                assert len(mailbox) == told["size"]
            else:
                handled.append(message.text)
                await asyncio.sleep(1)
            active -= 1

        room = Concurrency(room=told["size"])
        dispatcher = Dispatcher(handle, answer=lambda message, text: None, concurrency=room)
        *early, last = told["messages"]
        for text in ("T1", *early):
            dispatcher.take(Inbound("S", text))
            await asyncio.sleep(0.1)
        ends.set()
        for _ in range(turns):  # the last one comes at any step around the end of T1
            await asyncio.sleep(0)
        dispatcher.take(Inbound("S", last))
        await dispatcher.idle()
        return handled, most

    handled, most = virtually(work())
    assert handled == expect["handled"]
    assert len(handled) - len(set(handled)) == expect["duplicates"]
    assert most == expect["max_active"]


def test_case_62_a_lock_for_each_session_a_gate_for_all_and_state_for_each_turn() -> None:
    told, expect = case(62)["input"], case(62)["expect"]

    async def work() -> tuple[dict[str, float], dict[str, list[str]], int]:
        clock, started, shown = asyncio.get_running_loop().time, {}, {}
        store, active, most = MemorySessions(), [], 0

        async def send(arguments: Mapping[str, Any], key: str) -> str:
            return "sent=true"

        tools = ToolRegistry(Tool(name="send", run=send))  # one for all

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            nonlocal most
            name = message.session
            started[message.text] = clock()
            active.append(name)
            most = max(most, len(active))
            assert active.count(name) == 1
            calls = [[call("c1", "send")]] if name == "A" else []
            services = TurnServices(
                ask=asks(*calls, [float(told["each"]), say(f"answer for {name}")]),
                show=shown.setdefault(name, []).append,
                policy=replace(POLICY, stall=60),
                random=Random(0),
                observe=lambda kind, **told: None,
                tools=tools,
                owner=OWNER,
            )
            await run_turn("Hi", Checkpointer(store.load(name), store.write), services)
            active.remove(name)

        gate = Concurrency(limit=told["cap"], room=0)
        dispatcher = Dispatcher(handle, answer=lambda message, text: None, concurrency=gate)
        for name in told["sessions"]:
            number = 1 + sum(key.startswith(name) for key in sent)
            sent.append(f"{name}{number}")
            dispatcher.take(Inbound(name, f"{name}{number}"))
        await dispatcher.idle()
        flags = {
            name: [row.content for row in session.messages if row.role == TOOL]
            for name, session in store.kept.items()
        }
        assert flags["A"][0] == "sent=true"
        assert bool(flags["B"]) == expect["B_sent_flag"]
        return started, shown, most

    sent: list[str] = []
    started, shown, most = virtually(work())
    exact = {name: at for name, at in expect["starts"].items() if name != "A2_min"}
    assert {name: started[name] for name in exact} == exact
    assert started["A2"] >= expect["starts"]["A2_min"]
    assert most == expect["max_in_flight"]
    assert shown["B"] == ["answer for B"]


# --- 64


@pytest.mark.socket
def test_case_64_a_process_that_dies_between_two_tools_has_kept_the_first(tmp_path: Path) -> None:
    told, expect = case(64)["input"], case(64)["expect"]
    root = Path(__file__).parents[2]
    line = [sys.executable, "-m", "tests.stores.session_writer", "work", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(line, cwd=root, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        ran = [process.stdout.readline(), process.stdout.readline()]
        process.kill()
        ran += process.stdout.readlines()
    assert ran[1] == f"ran {told['kill_during']}\n"
    with closing(SessionFiles(tmp_path)) as files:
        session = files.load("written")
    assert session.turn is not None
    assert [row.call_id for row in session.turn.steps if row.role == TOOL] == expect["completed"]
    assert list(session.turn.running) == expect["unknown"]
    assert ran.count("ran A\n") == expect["executions_A"]
    rows = [row for row in begin_turn(session, "And?").messages if row.role == TOOL]
    status = {row.call_id: row.status for row in rows}
    assert [name for name in told["calls"] if status[name] == DONE] == expect["completed"]
    assert [name for name in told["calls"] if status[name] == UNKNOWN] == expect["unknown"]
    assert [name for name in told["calls"] if status[name] == NOT_STARTED] == expect["not_started"]
    assert rows[0].content == "result of A"
    assert len(ran) == 2 + expect["auto_resumed"]
