"""The transport on a real process: calls, its end, and that only its opener may close it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from anyio import create_memory_object_stream

from labkit.services import transport
from labkit.services.tool_program import TOOLS, answer
from labkit.services.transport import TOOL_PROGRAM, ServerGone, ToolServer, tool_server
from tests.services.processes import left_over, nothing_is_left, python, until, written

pytestmark = [
    pytest.mark.socket,
    pytest.mark.skipif(os.name == "nt", reason="asks for sessions of processes"),
]
assert nothing_is_left  # a fixture, by its name


def within(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, seconds))


def test_calls_beside_each_other_get_each_their_own_answer(tmp_path: Path) -> None:
    async def work() -> None:
        async with tool_server(TOOL_PROGRAM, folder=tmp_path) as server:
            asked = [server.tool(name).run({}, "key") for name in ("read_policy", "look_up")]
            assert list(await asyncio.gather(*asked)) == [*reversed(TOOLS.values())]

    within(20, work())


BACKWARDS = """
import json
for asked in reversed([json.loads(input()) for _ in range(2)]):
    print(json.dumps({"id": asked["id"], "result": asked["name"]}), flush=True)
"""


def test_answers_may_come_in_any_order(tmp_path: Path) -> None:
    async def work() -> None:
        async with tool_server(python(BACKWARDS), folder=tmp_path) as server:
            told = await asyncio.gather(server.call("first", {}), server.call("second", {}))
            assert list(told) == ["first", "second"]

    within(20, work())


def test_a_tool_that_is_not_there_is_said(tmp_path: Path) -> None:
    said = json.loads(answer('{"id": 7, "name": "x", "arguments": {}}'))
    assert said == {"id": 7, "result": "no tool x; there is: look_up, read_policy"}


def test_naively_a_transport_that_is_closed_by_another_task_fails_and_lives_on(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        let_go = asyncio.Event()
        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def opens() -> None:
            context = tool_server(TOOL_PROGRAM, folder=tmp_path)
            await context.__aenter__()
            opened.set_result(context)
            await let_go.wait()

        owner = asyncio.create_task(opens())
        context = await opened
        with pytest.raises(RuntimeError, match="a different task than it was entered in"):
            await context.__aexit__(None, None, None)
        owner.cancel()
        await asyncio.wait([owner])

    within(20, work())


def test_a_server_that_ends_by_itself_is_given_the_time(tmp_path: Path) -> None:
    last_words = "import sys, time; sys.stdin.read(); time.sleep(0.2); open('end', 'w').write('.')"

    async def work() -> None:
        async with tool_server(python(last_words), folder=tmp_path):
            pass

    within(20, work())
    assert written(tmp_path / "end") == "."


def test_a_server_that_does_not_end_is_ended_with_all_that_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PATIENCE", 0.1)

    async def work() -> None:
        async with tool_server(["sh", "-c", "sleep 60 & sleep 60"], folder=tmp_path):
            await until(lambda: len(left_over()) >= 3)

    within(20, work())


def test_a_cancel_ends_the_server_and_leaves(tmp_path: Path) -> None:
    async def work() -> None:
        opened = asyncio.Event()

        async def holds() -> None:
            async with tool_server(["sh", "-c", "sleep 60 & sleep 60"], folder=tmp_path):
                opened.set()
                await asyncio.Event().wait()

        holding = asyncio.create_task(holds())
        await opened.wait()
        for _ in range(3):
            holding.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([holding])
        assert holding.cancelled()

    within(20, work())


@pytest.mark.parametrize(
    "source",
    [
        "input()",
        "input(); print('nonsense'); input()",
        "input(); print('{}'); input()",
        "input(); print('7'); input()",
        "input(); print('half a line', end='')",
        "input(); print('[' * 100_000 + ']' * 100_000); input()",
    ],
)
def test_a_call_to_a_server_that_goes_or_talks_nonsense_is_unknown(
    source: str, tmp_path: Path
) -> None:
    async def work() -> None:
        async with tool_server(python(source), folder=tmp_path) as server:
            for _ in range(2):  # the second one does not wait for what cannot come
                with pytest.raises(ServerGone, match="whether the call took effect is unknown"):
                    await server.call("look_up", {})

    within(5, work())


def test_a_call_that_is_cancelled_leaves_the_others_alone(tmp_path: Path) -> None:
    async def work() -> None:
        async with tool_server(TOOL_PROGRAM, folder=tmp_path) as server:
            call = asyncio.create_task(server.call("look_up", {"order": 17}))
            await asyncio.sleep(0)
            call.cancel()
            assert await server.call("read_policy", {}) == TOOLS["read_policy"]

    within(20, work())


def test_a_second_answer_to_a_call_is_no_answer() -> None:
    async def work() -> None:
        to, asked = create_memory_object_stream[bytes](1)
        says, out = create_memory_object_stream[bytes](1)
        with to, asked, says, out:
            server = ToolServer(to, out)  # type: ignore[arg-type]  # it only sends and receives
            listening = asyncio.create_task(server.listen())
            call = asyncio.create_task(server.call("look_up", {}))
            await asked.receive()
            says.send_nowait(b'{"id": 1, "result": "one"}\n{"id": 1, "result": "two"}\n')
            assert await call == "one"
            says.close()
            await listening

    within(5, work())


def test_a_call_that_has_ended_is_waited_for_no_more(tmp_path: Path) -> None:
    async def work() -> None:
        async with tool_server(TOOL_PROGRAM, folder=tmp_path) as server:
            await server.call("look_up", {"order": 17})
            call = asyncio.create_task(server.call("read_policy", {}))
            await asyncio.sleep(0)
            assert len(server._waiting) == 1
            call.cancel()
            await asyncio.wait([call])
            assert server._waiting == {}

    within(20, work())


def test_a_server_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(FileNotFoundError, match="no-such-program"):
            async with tool_server(["no-such-program"], folder=tmp_path):
                pass

    within(20, work())


def test_a_call_in_flight_when_the_server_is_left_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "PATIENCE", 0.1)

    async def work() -> None:
        async with tool_server(
            python("import time; input(); time.sleep(60)"), folder=tmp_path
        ) as it:
            calling = asyncio.create_task(it.call("look_up", {}))
            await asyncio.sleep(0)
        with pytest.raises(ServerGone):
            await calling

    within(20, work())
