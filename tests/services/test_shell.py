"""One program: its time limit, its cancel, its output, and that nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from labkit.recovery.tools import Tool, ToolRegistry
from labkit.services import shell
from labkit.services.shell import Ended, NotStarted, program_tool, run_program
from labkit.simulation import Refused
from tests.cases.public import case
from tests.services.processes import nothing_is_left, python, runs, survivors, until, written
from tests.simulation.kit import virtually

pytestmark = [
    pytest.mark.socket,
    pytest.mark.skipif(os.name == "nt", reason="these programs are written for sh"),
]
assert nothing_is_left  # a fixture, by its name

# A program that starts another one; each of them writes down who it is.
STARTS = """
import os, time
def told():
    with open("pids", "a") as file:
        print(os.getpid(), file=file)
told()
if os.fork() == 0:
    {leave}
    told()
    time.sleep(60)
while len(open("pids").read().split()) < 2:
    time.sleep(0.005)
time.sleep({seconds})
"""
STAYS = "pass"
LEAVES = "os.setsid()"
IS_A_DAEMON = "os.setsid(); os.fork() and os._exit(0)"
SLEEPS = "import os, time; print(os.getpid(), file=open('pids', 'a')); time.sleep(60)"
IS_BARE = f"os.execve({sys.executable!r}, ['x', '-c', {SLEEPS!r}], {{}})"
HIDES = f"os.setsid(); {IS_BARE}"


def run(argv: Sequence[str], folder: Path, **options: Any) -> Ended:
    return asyncio.run(run_program(argv, folder=folder, **options))


def use(tool: Tool, program: str) -> str:
    async def work() -> str:
        return await tool.run({"program": program}, "key")

    return asyncio.run(work())


def pids(folder: Path) -> list[int]:
    return [int(word) for word in written(folder / "pids").split()]


# --- output and end


def test_both_outputs_come_in_order_with_the_exit_code(tmp_path: Path) -> None:
    ended = run(["sh", "-c", "echo a; echo b >&2; echo c; exit 3"], tmp_path)
    assert ended == Ended(code=3, output="a\nb\nc\n")
    assert ended.text == "a\nb\nc\n[exit code 3]"


def test_a_program_runs_in_its_folder_without_input_and_without_our_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    asks = (
        "import os, sys; print(os.getcwd(), repr(sys.stdin.read()), 'SOME_API_KEY' in os.environ)"
    )
    assert run(python(asks), tmp_path).output == f"{tmp_path} '' False\n"


def test_a_program_is_in_a_session_of_its_own(tmp_path: Path) -> None:
    assert run(python("import os; print(os.getsid(0) == os.getpid())"), tmp_path).output == "True\n"


def test_what_is_not_utf8_is_replaced_also_at_the_end(tmp_path: Path) -> None:
    assert run(["printf", r"a\377b\342\202"], tmp_path).output == "a\ufffdb\ufffd"


def test_characters_may_come_in_pieces(tmp_path: Path) -> None:
    drips = (
        "import os, time\nfor byte in 'é€🙂'.encode(): os.write(1, bytes([byte])); time.sleep(0.01)"
    )
    assert run(python(drips), tmp_path).output == "é€🙂"


@pytest.mark.parametrize(
    ("most", "left", "output"),
    [
        (10, 0, "0123456789"),
        (9, 1, "01234\n[1 characters left out]\n6789"),
        (2, 8, "0\n[8 characters left out]\n9"),
    ],
    ids=["10", "9", "2"],
)
def test_of_too_much_output_the_first_and_the_last_half_stay(
    most: int, left: int, output: str, tmp_path: Path
) -> None:
    ended = run(["printf", "0123456789"], tmp_path, most=most)
    assert (ended.output, ended.left_out) == (output, left)


LOUD = "import sys\nfor _ in range(100): sys.stdout.write('x' * 10**6)"


def test_a_hundred_megabytes_cost_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    ended = run(python(LOUD), tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (ended.code, ended.left_out, len(ended.output)) == (0, 10**8 - 10_000, 10_034)
    assert peak < 8_000_000


def test_naively_a_hundred_megabytes_cost_all_their_memory(tmp_path: Path) -> None:
    async def naive() -> int:
        process = await asyncio.create_subprocess_exec(*python(LOUD), stdout=subprocess.PIPE)
        return len((await process.communicate())[0])

    tracemalloc.start()
    asyncio.run(naive())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak > 10**8


def test_a_program_that_closes_its_output_is_waited_for(tmp_path: Path) -> None:
    assert run(["sh", "-c", "exec >&- 2>&-; sleep 0.1; exit 4"], tmp_path).code == 4


def test_a_program_that_is_ended_by_a_signal_says_which(tmp_path: Path) -> None:
    assert run(["sh", "-c", "kill -9 $$"], tmp_path).text == "[exit code -9]"


# --- the time limit


def test_at_the_limit_the_output_so_far_stays_and_the_seconds_are_named(tmp_path: Path) -> None:
    started = time.monotonic()
    ended = run(["sh", "-c", "trap '' TERM INT HUP; echo begun; sleep 60"], tmp_path, limit=0.8)
    assert ended.text == "begun\n[ended after 0.8 seconds, its time limit]"
    assert time.monotonic() - started < 5


def test_a_program_that_goes_on_starting_others_is_ended_with_all_of_them(tmp_path: Path) -> None:
    ended = run(["sh", "-c", "while :; do sleep 60 & sleep 0.001; done"], tmp_path, limit=0.3)
    assert ended.limit == 0.3


# --- the program has ended, and what it has started has not


@pytest.mark.parametrize("leave", [STAYS, LEAVES, IS_A_DAEMON, IS_BARE])
def test_a_pipe_that_another_holds_open_is_not_waited_for(leave: str, tmp_path: Path) -> None:
    started = time.monotonic()
    ended = run(python(STARTS.format(leave=leave, seconds=0)), tmp_path, grace=0.1)
    assert time.monotonic() - started < 5
    assert (ended.code, ended.limit) == (0, None)
    assert len(pids(tmp_path)) == 2
    assert survivors(pids(tmp_path)) == []


def test_what_was_started_may_still_write_within_the_grace(tmp_path: Path) -> None:
    assert run(["sh", "-c", "(sleep 0.1; echo late) &"], tmp_path, grace=5).output == "late\n"


def test_a_pipe_that_nothing_can_end_is_left_after_the_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process would that has left session, parent and environment."""
    found: list[int] = []
    monkeypatch.setattr(shell, "end_tree", lambda pid, mark: found.append(pid))
    started = time.monotonic()
    ended = run(["sh", "-c", "sleep 60 & echo $!"], tmp_path, grace=0.1)
    assert time.monotonic() - started < 2
    os.killpg(found[0], 9)
    asyncio.run(until(lambda: not runs(int(ended.output))))
    assert ended.code == 0


def test_naively_a_pipe_that_another_holds_open_is_waited_for(tmp_path: Path) -> None:
    async def naive() -> str:
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", "sleep 60 &", stdout=subprocess.PIPE, start_new_session=True
        )
        talk = asyncio.create_task(process.communicate())
        done, _ = await asyncio.wait([talk], timeout=0.5)
        os.killpg(process.pid, 9)
        await talk
        return "came" if done else "hung"

    assert asyncio.run(naive()) == "hung"


# --- cancel

(_SH, _C, CASE) = shlex.split(case(65)["input"]["cmd"])


async def grows(file: Path) -> bool:
    """Whether anybody still writes to the file."""
    before = written(file)
    await asyncio.sleep(0.3)
    return written(file) != before


def test_case_65_a_cancel_ends_the_loop_in_the_background_and_leaves(tmp_path: Path) -> None:
    expect = case(65)["expect"]

    async def work() -> dict[str, Any]:
        before = psutil.Process().children(recursive=True)  # another test's server, say
        task = asyncio.create_task(run_program([_SH, _C, CASE], folder=tmp_path))
        await until(lambda: written(tmp_path / "M"))
        await asyncio.sleep(case(65)["input"]["cancel_at"])
        started = set(psutil.Process().children(recursive=True)) - set(before)
        assert started
        at = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        seconds = time.monotonic() - at
        states = [p.status() for p in started if p.is_running()]
        return {
            "file_grows": await grows(tmp_path / "M"),
            "alive": sum(state != psutil.STATUS_ZOMBIE for state in states),
            "zombies": states.count(psutil.STATUS_ZOMBIE),
            "within": expect["within"] if seconds < expect["within"] else seconds,
            "propagates": "CancelledError" if task.cancelled() else repr(task.exception()),
        }

    assert asyncio.run(work()) == expect


def test_case_65_naively_the_loop_in_the_background_lives_on(tmp_path: Path) -> None:
    async def naive() -> bool:
        process = await asyncio.create_subprocess_exec(
            _SH, _C, CASE, cwd=tmp_path, start_new_session=True
        )
        await until(lambda: written(tmp_path / "M"))
        process.kill()
        await process.wait()
        grown = await grows(tmp_path / "M")
        os.killpg(process.pid, 9)
        return grown

    assert asyncio.run(naive())


def test_naively_a_grandchild_in_a_session_of_its_own_survives_the_group(tmp_path: Path) -> None:
    async def naive() -> bool:
        process = await asyncio.create_subprocess_exec(
            *python(STARTS.format(leave=LEAVES, seconds=60)), cwd=tmp_path, start_new_session=True
        )
        await until(lambda: len(pids(tmp_path)) == 2)
        os.killpg(process.pid, 9)
        await process.wait()
        survivor = pids(tmp_path)[1]
        survived = runs(survivor)
        os.kill(survivor, 9)
        return survived

    assert asyncio.run(naive())


async def cancelled(argv: Sequence[str], folder: Path, begun: Callable[[], object]) -> None:
    """Run it, cancel it when it has begun, and see the cancel leave."""
    task = asyncio.create_task(run_program(argv, folder=folder))
    await until(begun)
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()


@pytest.mark.parametrize("leave", [STAYS, LEAVES, IS_A_DAEMON, IS_BARE, HIDES])
def test_a_cancel_ends_all_that_was_started_wherever_it_went(leave: str, tmp_path: Path) -> None:
    argv = python(STARTS.format(leave=leave, seconds=60))
    asyncio.run(cancelled(argv, tmp_path, lambda: len(pids(tmp_path)) == 2))
    assert survivors(pids(tmp_path)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the first process reaps")
@pytest.mark.parametrize("leave", [STAYS, LEAVES, HIDES])
def test_what_had_its_parent_still_is_reaped_too(leave: str, tmp_path: Path) -> None:
    argv = python(STARTS.format(leave=leave, seconds=60))
    asyncio.run(cancelled(argv, tmp_path, lambda: len(pids(tmp_path)) == 2))
    assert not any(map(psutil.pid_exists, pids(tmp_path)))


@pytest.mark.parametrize("cancels", [1, 2, 5])
def test_a_cancel_at_any_turn_of_the_start_or_the_end_leaves_nothing_alive(
    cancels: int, tmp_path: Path
) -> None:
    async def work(turns: int) -> None:
        task = asyncio.create_task(run_program(["sleep", "60"], folder=tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        for _ in range(cancels):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()

    for turns in range(25):  # it is running after a dozen
        asyncio.run(work(turns))


def a_slow_callback() -> None:
    """Our loop does nothing for a while, and the program does."""
    time.sleep(0.05)


def test_a_cancel_while_it_starts_loses_nothing_that_it_has_started_already(
    tmp_path: Path,
) -> None:
    async def work(turns: int) -> None:
        task = asyncio.create_task(run_program([_SH, _C, CASE], folder=tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        a_slow_callback()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()

    for turns in range(8):
        asyncio.run(work(turns))
    assert not asyncio.run(grows(tmp_path / "M"))


def test_a_second_cancel_does_not_leave_before_all_is_gone(tmp_path: Path) -> None:
    async def work() -> bool:
        task = asyncio.create_task(run_program([_SH, _C, CASE], folder=tmp_path))
        await until(lambda: written(tmp_path / "M"))
        while not task.done():
            task.cancel()
            await asyncio.sleep(0)
        assert task.cancelled()
        return await grows(tmp_path / "M")

    assert not asyncio.run(work())


def test_a_limit_around_it_is_not_taken_for_its_own(tmp_path: Path) -> None:
    async def work() -> None:
        async with asyncio.timeout(0.2):
            await run_program(["sleep", "60"], folder=tmp_path)

    with pytest.raises(TimeoutError):
        asyncio.run(work())


def test_many_run_beside_each_other(tmp_path: Path) -> None:
    async def work() -> list[Ended]:
        argv = ["sh", "-c", "sleep 60 & sleep 0.2; echo $$"]
        return await asyncio.gather(
            *[run_program(argv, folder=tmp_path, grace=0.1) for _ in range(12)]
        )

    found = asyncio.run(work())
    assert len({ended.output for ended in found}) == 12


# --- what cannot be run


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        ([], "is no program: give a list of words"),
        ("ls -l", "is no program: give a list of words"),
        (["ls", 3], "is no program: give a list of words"),
        ([""], "could not be started"),
        (["no-such-program"], "'no-such-program' could not be started: No such file"),
        (["./here"], "'./here' could not be started: Permission denied"),
        (["ls", "a\0b"], "could not be started: embedded null byte; name a program"),
        (["ls", "x" * 10**7], "could not be started: Argument list too long"),
    ],
)
def test_what_is_no_program_is_refused_with_its_cure(argv: Any, says: str, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("no program")
    with pytest.raises(NotStarted, match=says):
        run(argv, tmp_path)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=r"there is no folder .*nowhere': make it first"):
        run(["ls"], tmp_path / "nowhere")


@pytest.mark.parametrize("folder", [None, 7, b"here"])
def test_a_folder_of_a_wrong_type_is_named(folder: Any) -> None:
    with pytest.raises(NotStarted, match=r"there is no folder .*: make it first"):
        run(["ls"], folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 0},
        {"limit": float("nan")},
        {"limit": "5"},
        {"limit": None},
        {"most": 1},
        {"most": "9"},
    ],
)
def test_a_bound_that_is_none_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="seconds above 0, at least 2"):
        run(["ls"], tmp_path, **wrong)


def test_a_simulation_refuses_it_by_name(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="the loop's subprocess_exec was refused"):
        virtually(run_program(["ls"], folder=tmp_path))


# --- the tool


def test_the_tool_runs_its_own_programs_by_name_and_nothing_else(tmp_path: Path) -> None:
    tool = program_tool({"hello": ["echo", "hello"], "gone": ["no-such"]}, folder=tmp_path)
    assert ToolRegistry(tool).get("run_program") is tool
    assert not tool.concurrent
    assert tool.check({"program": "hello"}) == ""
    for wrong in ({}, {"program": "rm"}, {"program": ["hello"]}):
        assert tool.check(wrong) == "program must be one of: hello, gone"
    assert use(tool, "hello") == "hello\n[exit code 0]"
    assert "could not be started" in use(tool, "gone")


def test_the_tool_ends_a_program_before_anybody_gives_the_tool_up(tmp_path: Path) -> None:
    tool = program_tool({"long": ["sleep", "60"]}, folder=tmp_path, limit=0.2)
    told = use(tool, "long")
    assert told == "[ended after 0.2 seconds, its time limit]"
    assert tool.limit > 0.2 + shell.REAPING
