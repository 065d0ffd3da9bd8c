"""The virtual loop: asyncio as it is, on a clock that is a number."""

# ruff: noqa: RUF006, ASYNC110, SIM105 - such clients are what is tested

import asyncio
import math
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from labkit.simulation import Observer, simulate
from labkit.simulation.errors import Deadlock, Halt, Livelock
from labkit.simulation.loop import VirtualLoop

from . import programs
from .kit import kinds, line_of, scenario, virtually

TICK = 0.002
HERE = __file__


def logged(run: Any, program: programs.Program) -> list[str]:
    log: list[str] = []
    run(program(lambda thing: log.append(str(thing)), TICK))
    return log


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_does_what_it_does_on_the_standard_loop(name: str) -> None:
    program = programs.PROGRAMS[name]
    real = logged(asyncio.run, program)
    assert real
    assert logged(virtually, program) == real


def test_a_thousand_waits_of_a_tenth_are_exactly_a_hundred() -> None:
    async def program() -> float:
        for _ in range(1_000):
            await asyncio.sleep(0.1)
        return asyncio.get_running_loop().time()

    assert virtually(program()) == 100.0


def test_time_starts_at_zero_and_moves_only_when_nothing_is_ready() -> None:
    async def program() -> list[float]:
        asyncio.get_running_loop().call_later(5, print)
        times = [asyncio.get_running_loop().time()]
        for _ in range(100):
            await asyncio.sleep(0)
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(86_400)
        return [*times, asyncio.get_running_loop().time()]

    assert virtually(program()) == [0.0, 0.0, 86_400.0]


def test_equal_deadlines_fire_in_the_order_they_were_set() -> None:
    async def program() -> list[int]:
        order: list[int] = []
        for number in range(200):
            asyncio.get_running_loop().call_at(7.0, order.append, number)
        await asyncio.sleep(8)
        return order

    assert virtually(program()) == list(range(200))


def test_deadlines_that_differ_by_rounding_are_equal() -> None:
    async def program() -> list[str]:
        order: list[str] = []
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0.1)
        await asyncio.sleep(0.2)
        loop.call_later(0.4, order.append, "first")  # 0.30000000000000004 + 0.4
        loop.call_at(0.7, order.append, "second")
        await asyncio.sleep(1)
        return order

    assert virtually(program()) == ["first", "second"]


def test_cancelled_timers_do_not_pile_up_or_move_time() -> None:
    async def program() -> tuple[float, int]:
        loop = asyncio.get_running_loop()
        for _ in range(10_000):
            loop.call_later(3_600, print).cancel()
        await asyncio.sleep(1)
        return loop.time(), len(loop._timers)  # type: ignore[attr-defined]

    time, timers = virtually(program())
    assert time == 1.0
    assert timers <= 1_001


def test_a_wait_that_is_no_number_is_an_error_and_an_endless_one_is_never() -> None:
    async def not_a_number() -> None:
        asyncio.get_running_loop().call_later(math.nan, print)

    with pytest.raises(ValueError, match="NaN"):
        virtually(not_a_number())
    with pytest.raises(ValueError, match="NaN"):
        virtually(asyncio.sleep(math.nan))
    with pytest.raises(Halt) as caught:
        virtually(asyncio.sleep(math.inf))
    assert isinstance(caught.value.error, Deadlock)


def test_driving_a_loop_that_is_driven_is_a_clear_error() -> None:
    async def program() -> None:
        work = asyncio.sleep(0)
        try:
            asyncio.get_running_loop().run_until_complete(work)
        finally:
            work.close()

    with pytest.raises(RuntimeError, match="running already"):
        virtually(program())


# Deadlock and livelock


async def waits_for_nobody(provider: Any, policy: Any, observe: Observer) -> None:
    observe("before")
    helper = asyncio.create_task(forever_in_a_generator(), name="helper")
    await asyncio.Event().wait()  # the client stands here
    await helper


async def forever_in_a_generator() -> None:
    async for _ in never_yields():  # the helper came by here
        pass


async def never_yields() -> AsyncIterator[int]:
    await asyncio.get_running_loop().create_future()  # the helper stands here
    yield 0


def test_a_deadlock_names_every_waiting_task_and_its_line() -> None:
    run = simulate(scenario(waits_for_nobody))
    assert isinstance(run.error, Deadlock)
    client = line_of(HERE, "await asyncio.Event().wait()  # the client")
    helper = line_of(HERE, "await asyncio.get_running_loop().create_future()  # the helper")
    assert f"task 'client' at test_loop.py:{client} in waits_for_nobody" in str(run.error)
    assert f"task 'helper' at test_loop.py:{helper} in never_yields" in str(run.error)
    assert kinds(run.trace) == ["client before", "lab end"]
    assert run.trace[-1]["error"] == "Deadlock"


def test_a_deadlock_of_many_tasks_names_some_and_counts_the_rest() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        await asyncio.gather(*(forever_in_a_generator() for _ in range(20)))

    assert "and 13 more" in str(simulate(scenario(client)).error)


async def spins_by_turns(provider: Any, policy: Any, observe: Observer) -> None:
    asyncio.create_task(asyncio.sleep(5), name="innocent")
    while True:
        await asyncio.sleep(0)  # spins here


async def spins_by_events(provider: Any, policy: Any, observe: Observer) -> None:
    while True:
        observe("again")  # or here


async def spins_by_tiny_waits(provider: Any, policy: Any, observe: Observer) -> None:
    while True:
        await asyncio.sleep(0.001)  # or slowly here


@pytest.mark.parametrize(
    ("client", "line", "bound"),
    [
        (spins_by_turns, "await asyncio.sleep(0)  # spins", "100,000 turns and events at t=0 s"),
        (spins_by_events, 'observe("again")  # or', "100,000 turns and events at t=0 s"),
        (spins_by_tiny_waits, "await asyncio.sleep(0.001)", "200,000 turns and events in one run"),
    ],
    ids=["turns", "events", "tiny waits"],
)
def test_a_livelock_names_the_task_that_spins_and_its_line(
    client: Any, line: str, bound: str
) -> None:
    error = simulate(scenario(client)).error
    assert isinstance(error, Livelock)
    assert bound in str(error)
    place = f"task 'client' at test_loop.py:{line_of(HERE, line)} in {client.__name__}"
    assert place in str(error)
    assert "innocent" not in str(error)


def test_the_bounds_can_be_moved() -> None:
    error = simulate(scenario(spins_by_turns), limit=50).error
    assert "50 turns and events at t=0 s" in str(error)
    assert len(simulate(scenario(spins_by_events), limit=50).trace) <= 51
    error = simulate(scenario(spins_by_tiny_waits), total=70).error
    assert "70 turns and events in one run" in str(error)


def test_a_client_that_catches_everything_is_a_livelock_all_the_same() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        while True:
            try:
                observe("attempt")
                await asyncio.sleep(0)
                raise ValueError("again")
            except BaseException:
                pass

    run = simulate(scenario(client), limit=1_000)
    assert isinstance(run.error, Livelock)
    assert len(run.trace) < 1_002


def test_past_a_limit_events_stop_counting_before_anything_is_raised_in_the_client() -> None:
    loop = VirtualLoop(limit=3)
    assert [loop.spend() for _ in range(6)] == [True] * 3 + [False] * 3
    with pytest.raises(Halt):
        loop.spend()


def test_a_halt_that_is_set_from_outside_ends_the_run_at_the_next_turn() -> None:
    log: list[str] = []

    async def program() -> None:
        loop: Any = asyncio.get_running_loop()
        loop.halt = Halt(None)
        await asyncio.sleep(0)
        log.append("went on")

    with pytest.raises(Halt):
        virtually(program())
    assert log == []


def test_many_turns_with_time_moving_are_no_livelock() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        for _ in range(1_000):
            await asyncio.sleep(1)

    assert simulate(scenario(client), limit=20).error is None


# The end


def test_close_cancels_what_is_left_and_lets_it_clean_up() -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            await asyncio.sleep(1)
            log.append("cleaned")

    async def program() -> None:
        asyncio.create_task(work())
        await asyncio.sleep(0)

    virtually(program())
    assert log == ["cleaned"]


def test_close_gives_up_on_a_task_that_does_not_end() -> None:
    async def deaf() -> None:
        while True:
            try:
                await asyncio.sleep(0)
            except BaseException:
                pass

    async def program() -> str:
        asyncio.create_task(deaf())
        await asyncio.sleep(0)
        return "over"

    assert virtually(program()) == "over"


def test_a_closed_loop_can_be_closed_again() -> None:
    loop = VirtualLoop()
    loop.run_until_complete(asyncio.sleep(1))
    loop.close()
    loop.close()
    assert loop.is_closed()


def test_errors_that_nobody_awaited_are_in_the_trace() -> None:
    async def fail() -> None:
        raise ValueError("unseen")

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        asyncio.create_task(fail(), name="forgotten")
        asyncio.get_running_loop().call_soon(int, "x")
        await asyncio.sleep(1)

    run = simulate(scenario(client))
    told = [(e["error"], e.get("task")) for e in run.trace if e.kind == "unhandled"]
    assert told == [("ValueError", "forgotten"), ("ValueError", None)]
    assert re.search("invalid literal", str(run.trace))
