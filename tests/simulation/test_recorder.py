"""The line recorder: the same places by either mechanism, on every Python that is installed."""

import asyncio
import json
import sys
import threading
from functools import cache
from types import FrameType
from typing import Any

import pytest

from labkit.simulation import Observer, simulate
from labkit.simulation.breakpoints import statements
from labkit.simulation.recorder import RecorderBusy, recording

from . import pythons
from .kit import line_of, scenario

HERE = __file__
WAYS = [
    (minor, mechanism)
    for minor in pythons.MINORS
    for mechanism in ("settrace", "monitoring")
    if (minor, mechanism) != ("3.11", "monitoring")
]


STEPS = [4, pytest.param(1, marks=pytest.mark.slow)]  # one scenario of four; all of them


@cache
def places_by(executable: str, mechanism: str, step: int, seed: str = "1") -> dict[str, Any]:
    told = ["tests/simulation/dump_places.py", mechanism, str(step)]
    return dict(json.loads(pythons.run(executable, *told, PYTHONHASHSEED=seed)))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(("minor", "mechanism"), WAYS, ids=map("-".join, WAYS))
def test_places_are_the_same_on_every_python(minor: str, mechanism: str, step: int) -> None:
    executable = pythons.python(minor)
    if executable is None:
        pytest.skip(f"Python {minor} is not installed here")
    found = places_by(executable, mechanism, step)
    reference = places_by(sys.executable, "settrace", step)
    assert set(found) == set(reference)
    assert all(dump["rows"] for dump in found.values())
    for name, dump in found.items():
        for ours, theirs in zip(reference[name]["rows"], dump["rows"], strict=False):
            assert theirs == ours, name
        assert dump["digest"] == reference[name]["digest"], name
        assert dump["hash"] == reference[name]["hash"], name


@pytest.mark.parametrize("step", STEPS)
def test_places_are_the_same_whatever_the_hash_seed(step: int) -> None:
    first, other = (places_by(sys.executable, "settrace", step, seed) for seed in "12")
    assert first == other


def lines_of(work: Any) -> list[tuple[str, int]]:
    """(function, line) of every line of this file that `work()` passes."""
    passed: list[tuple[str, int]] = []

    def on_line(frame: FrameType, number: int, caller: int, line: int) -> None:
        passed.append((frame.f_code.co_name, line))

    def body() -> None:
        with recording({HERE: statements(HERE)}, on_line):
            work()

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return passed


def over_four_lines() -> int:
    return max(  # head
        1,
        2,
    )


def twice_the_same_line() -> None:
    for _ in range(3): len("x")  # fmt: skip # noqa: E701
    len("y")  # after


def test_a_statement_over_many_lines_is_one_place() -> None:
    assert lines_of(over_four_lines) == [("over_four_lines", line_of(HERE, "return max(  # head"))]


def test_a_line_equal_to_the_frames_previous_one_is_dropped() -> None:
    lines = [line_of(HERE, "for _ in range(3): len"), line_of(HERE, 'len("y")')]
    assert lines_of(twice_the_same_line) == [("twice_the_same_line", line) for line in lines]


def test_the_same_line_of_two_calls_is_two_places() -> None:
    def work() -> None:
        over_four_lines()
        over_four_lines()

    assert [name for name, _ in lines_of(work)].count("over_four_lines") == 2


def test_lambdas_and_comprehensions_are_part_of_their_line() -> None:
    def work() -> None:
        sorted([-number for number in (2, 1)], key=lambda number: number)

    assert [name for name, _ in lines_of(work)] == ["work"]


def test_a_frame_that_takes_over_an_address_has_a_number_of_its_own() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        for _ in range(50):
            over_four_lines()  # each call's frame is free for the next one's

    places = simulate(scenario(client)).recorded
    inner = [place for place in places if place.function == "over_four_lines"]
    (outer,) = {place.frame for place in places if place.function == "client"}
    assert len({place.frame for place in inner}) == 50
    assert {place.caller for place in inner} == {outer}


def between() -> int:
    return over_four_lines()


def __between__() -> int:  # noqa: N807 - names like this are not watched
    return over_four_lines()


def test_a_caller_that_is_not_watched_is_no_caller() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        for _ in range(10):
            between()
            __between__()  # its frame takes over the address of the one before

    inner = [p for p in simulate(scenario(client)).recorded if p.function == "over_four_lines"]
    assert [place.caller != 0 for place in inner] == [True, False] * 10


def test_a_generator_keeps_its_number_over_its_waits() -> None:
    async def ticking() -> Any:
        for number in range(3):
            await asyncio.sleep(0.1)
            yield number

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        async for _ in ticking():
            pass

    places = [p for p in simulate(scenario(client)).recorded if p.function == "ticking"]
    assert len({place.frame for place in places}) == 1
    assert len(places) > 6


def test_recording_steps_aside_for_a_tool_that_holds_the_tracing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if sys.version_info < (3, 12):
        monkeypatch.setattr(sys, "gettrace", lambda: print)
    else:
        monitoring: Any = sys.monitoring
        for tool in range(6):
            if monitoring.get_tool(tool) is None:
                monitoring.use_tool_id(tool, "a test")
    try:
        with pytest.raises(RecorderBusy, match=r"debugger"):
            _ = simulate(scenario(quick)).recorded
    finally:
        if sys.version_info >= (3, 12):
            for tool in range(6):
                if monitoring.get_tool(tool) == "a test":
                    monitoring.free_tool_id(tool)
    monkeypatch.undo()
    assert simulate(scenario(quick)).recorded


async def quick(provider: Any, policy: Any, observe: Observer) -> int:
    observe("here")
    await asyncio.sleep(1)
    return over_four_lines()


def test_two_threads_record_at_once() -> None:
    alone = simulate(scenario(quick)).recorded
    found: list[Any] = []

    def work() -> None:
        found.extend(simulate(scenario(quick)).recorded == alone for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 80


def test_two_recordings_at_once_take_a_slot_each() -> None:
    meet = threading.Barrier(2)
    counts: list[int] = []

    def body() -> None:
        passed: list[int] = []
        with recording({HERE: statements(HERE)}, lambda *line: passed.append(line[3])):
            meet.wait(10)
            over_four_lines()
            meet.wait(10)
        counts.append(passed.count(line_of(HERE, "return max(  # head")))

    threads = [threading.Thread(target=body) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [1, 1]
