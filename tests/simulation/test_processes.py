"""Processes: a killed one runs nothing more, a frozen one goes on at the thaw, the others go on."""

import asyncio
import gc
import math
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any

import pytest

from labkit.simulation import (
    STREAM_JUDGES,
    Deadlock,
    Fault,
    Observer,
    Process,
    Run,
    SimulationError,
    simulate,
)
from labkit.simulation.loop import VirtualLoop

from .kit import kinds, line_of, scenario, two_workers, virtually
from .pythons import MINORS, python, run

HERE = __file__
Told = list[tuple[float, str]]
Work = Callable[[Told], Coroutine[Any, Any, Any]]


def say(told: Told, what: str) -> None:
    """Note what happens, with its virtual time."""
    told.append((asyncio.get_running_loop().time(), what))


def process(told: Told, name: str = "worker") -> Process:
    return Process(name, lambda kind, **data: say(told, kind))


async def ticks(told: Told, name: str = "tick", every: float = 1.0) -> None:
    """Ticks five times, and tells of its clean-up."""
    try:
        for _ in range(5):
            await asyncio.sleep(every)
            say(told, name)
    finally:
        say(told, "tidied")


def played(program: Callable[[Told], Coroutine[Any, Any, Any]]) -> Told:
    """What happened until the program's end: what the closing of the loop adds is left out."""
    told: Told = []

    async def ends() -> Told:
        await program(told)
        return list(told)

    found: Told = virtually(ends())
    return found


# Killed


def test_of_a_killed_process_not_one_line_runs_and_the_other_goes_on() -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.start(ticks(told))
        other = process(told, "other").start(ticks(told, "other"))
        await asyncio.sleep(1.5)
        assert worker.alive
        worker.kill()
        assert (worker.alive, worker.state) == (False, "killed")
        await other

    one, *rest = played(program)
    others = [(float(n), "other") for n in range(2, 6)]
    assert [one, *rest] == [(1, "tick"), (1, "other"), (1.5, "killed"), *others, (5, "tidied")]


async def a_task(told: Told) -> None:
    await asyncio.create_task(ticks(told))


async def a_task_that_is_let_go(told: Told) -> None:
    asyncio.create_task(ticks(told))  # noqa: RUF006


async def a_task_of_a_task(told: Told) -> None:
    await asyncio.create_task(a_task(told))


async def a_group(told: Told) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ticks(told))


async def gathered(told: Told) -> None:
    await asyncio.gather(ticks(told), ticks(told))


async def a_timer(told: Told) -> None:
    asyncio.get_running_loop().call_later(2, say, told, "late")


async def a_deadline(told: Told) -> None:
    try:
        async with asyncio.timeout(2):
            await asyncio.sleep(9)
    except TimeoutError:
        say(told, "late")


async def a_wait_for(told: Told) -> None:
    await asyncio.wait_for(ticks(told), 60)


async def a_generator(told: Told) -> None:
    async for _ in endless(told):
        say(told, "got")


async def endless(told: Told) -> AsyncIterator[None]:
    try:
        while True:
            await asyncio.sleep(1)
            yield
    finally:
        say(told, "closed")


WORK: tuple[Work, ...] = (
    a_task,
    a_task_that_is_let_go,
    a_task_of_a_task,
    a_group,
    gathered,
    a_timer,
    a_deadline,
    a_wait_for,
    a_generator,
)


@pytest.mark.parametrize("work", WORK)
def test_whatever_a_process_starts_directly_or_not_dies_with_it(work: Work) -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.start(work(told))
        await asyncio.sleep(1.5)
        worker.kill()
        await asyncio.sleep(60)

    told = played(program)
    assert told[-1] == (1.5, "killed")
    assert all(time == 1 for time, _ in told[:-1])


def test_what_is_started_outside_belongs_to_no_process() -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.start(asyncio.sleep(9))
        outside = asyncio.create_task(ticks(told, "outside"))
        worker.kill()
        await outside

    assert played(program)[-2:] == [(5, "outside"), (5, "tidied")]


def test_a_process_that_another_one_starts_outlives_it() -> None:
    async def program(told: Told) -> None:
        async def parent() -> None:
            process(told, "child").start(ticks(told, "child"))
            await ticks(told, "parent")

        worker = process(told, "parent")
        worker.start(parent())
        await asyncio.sleep(1.5)
        worker.kill()
        await asyncio.sleep(60)

    assert [what for time, what in played(program) if time > 1.5] == ["child"] * 4 + ["tidied"]


def test_a_task_in_a_context_of_its_own_belongs_to_whom_that_says() -> None:
    async def program(told: Told) -> None:
        service = process(told, "service")

        async def work() -> None:
            asyncio.create_task(ticks(told, "nobody's"), context=Context())  # noqa: RUF006
            service.start(ticks(told, "the service's"))

        worker = process(told)
        await worker.start(work())
        worker.kill()
        await asyncio.sleep(60)

    assert [what for time, what in played(program) if time == 5][::2] == [
        "nobody's",
        "the service's",
    ]


def test_a_process_that_kills_itself_goes_on_to_its_next_suspension() -> None:
    async def program(told: Told) -> None:
        worker = process(told)

        async def work() -> None:
            worker.kill()
            say(told, "goes on")
            await asyncio.sleep(0)
            say(told, "never")

        worker.start(work())
        await asyncio.sleep(60)

    assert played(program) == [(0, "killed"), (0, "goes on")]


def test_a_killed_process_takes_no_more_work() -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.kill()
        worker.kill()
        worker.freeze(3)
        with pytest.raises(SimulationError, match="worker was killed: make another process"):
            worker.start(ticks(told))
        await asyncio.sleep(60)

    assert played(program) == [(0, "killed")]


def test_one_that_is_killed_while_it_is_frozen_never_thaws() -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.start(ticks(told))
        worker.freeze(3)
        await asyncio.sleep(1)
        worker.kill()
        await asyncio.sleep(60)

    assert played(program) == [(0, "frozen"), (1, "killed")]


# Frozen


def test_what_was_due_in_the_frozen_time_runs_at_the_thaw_in_the_order_in_which_it_was_due() -> (
    None
):
    async def program(told: Told) -> None:
        loop = asyncio.get_running_loop()

        async def work() -> None:
            for due in (4, 2, 3, 12, 13):
                loop.call_at(due, say, told, f"due at {due}")
            await ticks(told)

        worker = process(told)
        worker.start(work())
        await asyncio.sleep(1.5)
        worker.freeze(10.5)
        assert (worker.alive, worker.state) == (True, "frozen")
        await asyncio.sleep(60)
        assert worker.state == "running"

    told = played(program)
    timers = [each for each in told if each[1] not in ("tick", "tidied")]
    at_the_thaw = [(12, f"due at {due}") for due in (2, 3, 4, 12)]
    assert timers == [(1.5, "frozen"), (12, "thawed"), *at_the_thaw, (13, "due at 13")]
    rest = [each for each in told if each not in timers]
    assert rest == [(1, "tick"), *((t, "tick") for t in (12, 13, 14, 15)), (15, "tidied")]


def test_what_comes_in_the_moment_of_the_thaw_waits_behind_what_was_due_before() -> None:
    async def program(told: Told) -> None:
        loop = asyncio.get_running_loop()
        answer, question = loop.create_future(), loop.create_future()

        async def waits(future: Awaitable[str]) -> None:
            say(told, await future)

        worker = process(told)
        for future in (answer, question):
            worker.start(waits(future))
        await asyncio.sleep(1)
        worker.freeze(9)
        loop.call_at(5, question.set_result, "came at 5")
        loop.call_at(10, answer.set_result, "came at 10")
        await asyncio.sleep(60)

    came = [(10, "came at 5"), (10, "came at 10")]
    assert played(program) == [(1, "frozen"), (10, "thawed"), *came]


def test_a_timer_that_is_due_with_the_thaw_waits_behind_what_was_due_before() -> None:
    async def program(told: Told) -> None:
        loop, worker = asyncio.get_running_loop(), process(told)

        async def work() -> None:
            loop.call_at(2, say, told, "due at 2")
            worker.freeze(4)
            loop.call_at(4, say, told, "due at 4, and set behind the thaw")

        await worker.start(work())
        await asyncio.sleep(9)

    at_the_thaw = [(4, "due at 2"), (4, "due at 4, and set behind the thaw")]
    assert played(program) == [(0, "frozen"), (4, "thawed"), *at_the_thaw]


@pytest.mark.parametrize(("first", "second", "thaw"), [(5, 9, 11), (9, 1, 9), (3, 3, 5)])
def test_of_two_freezes_that_overlap_the_later_end_counts(
    first: float, second: float, thaw: float
) -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.start(ticks(told))
        worker.freeze(first)
        await asyncio.sleep(2)
        worker.freeze(second)
        await asyncio.sleep(60)

    told = played(program)
    assert [each for each in told if each[1] != "tick"][:-1] == [
        (0, "frozen"),
        (2, "frozen"),
        (thaw, "thawed"),
    ]
    assert min(time for time, what in told if what == "tick") == thaw + 1  # it had not begun


def test_the_thaw_of_one_process_wakes_no_other() -> None:
    async def program(told: Told) -> None:
        for name, seconds in (("early", 3), ("late", 9)):
            worker = Process(name, lambda kind, **data: None)
            worker.start(ticks(told, name))
            await asyncio.sleep(0)
            worker.freeze(seconds)
        await asyncio.sleep(60)

    first = {what: time for time, what in reversed(played(program))}
    assert (first["early"], first["late"]) == (3, 9)


def test_a_process_that_is_started_while_frozen_begins_at_the_thaw() -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        worker.freeze(4)

        async def work() -> None:
            say(told, "begins")

        await worker.start(work())

    assert played(program) == [(0, "frozen"), (4, "thawed"), (4, "begins")]


def test_a_process_that_freezes_itself_goes_on_to_its_next_suspension_and_thaws() -> None:
    async def program(told: Told) -> None:
        worker = process(told)

        async def work() -> None:
            worker.freeze(4)
            say(told, "goes on")
            await asyncio.sleep(1)
            say(told, "woke")

        await worker.start(work())

    assert played(program) == [(0, "frozen"), (0, "goes on"), (4, "thawed"), (4, "woke")]


def test_a_worker_that_sleeps_past_its_lease_wakes_as_if_nothing_had_happened() -> None:
    """The lease is another's by then, which only a look at the store can tell it."""

    async def program(told: Told) -> None:
        lease = {"holder": "", "until": 0.0}

        async def holds(name: str) -> None:
            now = asyncio.get_running_loop().time
            while lease["until"] > now():  # noqa: ASYNC110 - a worker looks now and then
                await asyncio.sleep(1)
            lease.update(holder=name, until=now() + 5)
            for _ in range(4):
                await asyncio.sleep(2)
                lease["until"] = max(lease["until"], now() + 5)
                say(told, f"{name} believes, {lease['holder']} holds")

        first, second = (process(told, name) for name in ("a", "b"))
        first.start(holds("a"))
        await asyncio.sleep(1)
        second.start(holds("b"))
        first.freeze(9)
        await asyncio.sleep(30)

    told = played(program)
    assert (10, "a believes, b holds") in told
    assert (7, "b believes, b holds") in told


# What the trace tells, and how the run ends


def test_the_trace_tells_who_was_killed_frozen_and_thawed() -> None:
    made = simulate(scenario(two_workers, judges=STREAM_JUDGES))
    assert [(e.time, e.actor, e.kind) for e in made.trace] == [
        (1, "worker-1", "step"),
        (1, "worker-2", "step"),
        (1.5, "worker-1", "killed"),
        (1.5, "worker-2", "frozen"),
        (13.5, "worker-2", "thawed"),
        (13.5, "worker-2", "step"),
        (14.5, "worker-2", "step"),
        (14.5, "worker-2", "tidied"),
        (14.5, "lab", "end"),
    ]
    assert made.trace[3]["seconds"] == 12.0
    assert (made.result, made.findings) == ("done", ())


def test_its_tasks_have_its_name() -> None:
    async def program() -> list[str]:
        worker = process([], "worker-1")
        tasks = [worker.start(asyncio.sleep(0)) for _ in range(2)]
        await asyncio.wait(tasks)
        return [task.get_name() for task in tasks]

    assert virtually(program()) == ["worker-1", "worker-1 2"]


def test_what_the_caller_has_in_its_context_is_there_in_the_process() -> None:
    language = ContextVar("language", default="")

    async def program() -> str:
        language.set("English")

        async def work() -> str:
            return language.get()

        return await process([]).start(work())

    assert virtually(program()) == "English"


async def waits_for_the_dead(provider: Any, policy: Any, observe: Observer) -> None:
    worker = Process("worker-1", observe.of("worker-1"))
    task = worker.start(is_stopped())
    await asyncio.sleep(1)
    worker.kill()
    await task  # the client stands here


async def is_stopped() -> None:
    await asyncio.sleep(9)  # the worker stands here


def test_a_deadlock_tells_which_task_waits_for_nothing_since_its_process_was_killed() -> None:
    error = simulate(scenario(waits_for_the_dead)).error
    assert isinstance(error, Deadlock)
    client = f"task 'client' at test_processes.py:{line_of(HERE, 'await task  # the client')}"
    worker = f"task 'worker-1' at test_processes.py:{line_of(HERE, 'await asyncio.sleep(9)  #')}"
    assert f"{client} in waits_for_the_dead; " in str(error)
    assert f"{worker} in is_stopped (process 'worker-1': killed)" in str(error)


def test_to_wait_for_a_frozen_one_is_no_deadlock_and_a_livelock_tells_of_it() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        worker = Process("worker-1", observe.of("worker-1"))
        task = worker.start(is_stopped())
        worker.freeze(1_000)
        await task

    async def spins(provider: Any, policy: Any, observe: Observer) -> None:
        asyncio.get_running_loop().call_soon(observe_often, observe)
        await client(provider, policy, observe)

    def observe_often(observe: Observer) -> None:
        for _ in range(30):
            observe("again")

    ended = simulate(scenario(client))
    assert (ended.error, ended.time) == (None, 1_009)
    assert "(process 'worker-1': frozen)" in str(simulate(scenario(spins), limit=10).error)


def ends_with(*, frozen: bool) -> Run:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        async def fails() -> None:
            raise ValueError("nobody is left to see it")

        async def looks() -> None:
            await asyncio.wait([asyncio.create_task(fails())])
            await asyncio.sleep(9)

        worker = Process("worker-1", observe.of("worker-1"))
        worker.start(looks())
        await asyncio.sleep(1)
        worker.freeze(60) if frozen else worker.kill()
        await asyncio.sleep(1)

    return simulate(scenario(client, judges=STREAM_JUDGES))


def test_what_a_kill_left_is_no_finding_and_what_is_only_frozen_is() -> None:
    assert kinds(ends_with(frozen=False).trace) == ["worker-1 killed", "lab end"]
    assert ends_with(frozen=False).findings == ()
    frozen = ends_with(frozen=True)
    assert kinds(frozen.trace)[1:] == ["lab left_over", "lab unhandled", "lab end"]
    assert [finding.name for finding in frozen.findings] == ["left_over_task"]


@pytest.mark.parametrize("frozen", [False, True], ids=["killed", "frozen"])
def test_when_the_loop_closes_their_tasks_end_in_the_usual_way(
    frozen: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    told: Told = []
    tasks: list[asyncio.Task[None]] = []

    async def holds() -> None:
        async with asyncio.Lock(), asyncio.timeout(3):
            await ticks(told)

    async def program() -> None:
        worker = process(told)
        tasks.extend(worker.start(each) for each in (holds(), a_generator(told), a_group(told)))
        await asyncio.sleep(1.5)
        tasks.append(worker.start(a_task(told)))  # which does not come to its first line
        worker.freeze(60) if frozen else worker.kill()
        await asyncio.sleep(20)
        told.append((0, "over"))

    loop = VirtualLoop()
    loop.run_until_complete(program())
    loop.close()
    after = [what for _, what in told[told.index((0, "over")) + 1 :]]
    assert sorted(after) == ["closed", "tidied", "tidied"]
    assert all(task.done() for task in tasks)
    del tasks[:]
    gc.collect()
    assert (loop.unhandled, capsys.readouterr().err) == ([], "")


def test_what_is_stopped_while_the_loop_closes_hinders_nothing() -> None:
    async def program(told: Told) -> None:
        worker = process(told)

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                worker.kill()
                await asyncio.sleep(1)
                say(told, "tidied")

        worker.start(work())
        await asyncio.sleep(1)

    told: Told = []
    virtually(program(told))
    assert told == [(1, "killed"), (2, "tidied")]


def test_a_crash_as_a_process_is_frozen_ends_the_run_there() -> None:
    at = 3
    assert simulate(scenario(two_workers)).trace[at].kind == "frozen"
    made = simulate(scenario(two_workers), faults=Fault("crash", at))
    assert kinds(made.trace)[at:] == ["worker-2 frozen", "lab fault", "lab end"]


# The same run each time


def test_a_recording_of_processes_is_the_same_run() -> None:
    made = simulate(scenario(two_workers))
    assert {place.task for place in made.recorded} == {"client", "worker-1", "worker-2"}
    assert [place.time for place in made.recorded if place.task == "worker-1"][-1] == 1.0


PROGRAM = """
from tests.simulation.kit import scenario, two_workers
from labkit.simulation import explore, simulate
found = explore(scenario(two_workers), faults=("kill", "freeze"), pairs=20)
print(simulate(scenario(two_workers)).trace, found.counts)
print([(outcome.faults, found.run(outcome).hash) for outcome in found.outcomes])
"""


@pytest.mark.socket
@pytest.mark.parametrize("minor", MINORS)
def test_processes_do_the_same_whatever_the_hash_seed(minor: str) -> None:
    executable = sys.executable if f"3.{sys.version_info.minor}" == minor else python(minor)
    if executable is None:
        pytest.skip(f"no Python {minor} here")
    told = [run(executable, "-c", PROGRAM, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert told[0] == told[1]


# Bad input


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1, -0.5, True, "3", None, 1j], ids=repr)
def test_a_freeze_needs_a_number_of_seconds(seconds: Any) -> None:
    async def program(told: Told) -> None:
        worker = process(told)
        with pytest.raises(SimulationError, match="for a number of seconds, from 0, not "):
            worker.freeze(seconds)
        assert worker.state == "running"

    assert played(program) == []


def test_a_process_outside_a_simulation_is_refused() -> None:
    said = "a process needs a running VirtualLoop"
    with pytest.raises(SimulationError, match=said):
        process([])

    async def program() -> None:
        process([])

    with pytest.raises(SimulationError, match=said):
        asyncio.run(program())
