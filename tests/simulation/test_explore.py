"""`explore`: every point is struck, only what struck counts, and each verdict is told apart."""

import asyncio
import gc
import signal
import sys
import threading
import weakref
from typing import Any

import pytest

from labkit.scenarios.catalogue import find
from labkit.simulation import STREAM_JUDGES as JUDGES
from labkit.simulation import (
    Exploration,
    Fault,
    Observer,
    SimulationError,
    Unknown,
    explore,
    points,
    simulate,
)
from labkit.simulation.explore import MOST_PAIRS
from labkit.simulation.faults import KINDS, PHASES

from .kit import scenario, two_workers
from .pythons import run


class NoError(Exception):
    """What a client says no with."""


class BadNo(NoError):
    """One of the kind."""


async def two_waits(provider: Any, policy: Any, observe: Observer) -> str:
    for name in ("first", "second"):
        await asyncio.sleep(1)
        observe("woke", at=name)
    return "done"


async def helped(provider: Any, policy: Any, observe: Observer) -> str:
    return await asyncio.create_task(two_waits(provider, policy, observe), name="helper")


async def swallows(provider: Any, policy: Any, observe: Observer) -> str:
    try:
        return await two_waits(provider, policy, observe)
    except asyncio.CancelledError:
        return "stopped"


async def tidies(provider: Any, policy: Any, observe: Observer) -> str:
    try:
        return await helped(provider, policy, observe)
    finally:
        for step in range(3):
            await asyncio.sleep(1)
            observe("tidied", step=step)


async def forgets(provider: Any, policy: Any, observe: Observer) -> str:
    observe("started", by=asyncio.create_task(asyncio.sleep(99), name="forgotten").get_name())
    return await swallows(provider, policy, observe)


def ends_by(error: BaseException | None) -> Any:
    """A client that turns a cancel into `error`, or waits for ever after it."""

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            if error is not None:
                raise error from None
            await asyncio.Event().wait()

    return client


async def spins(provider: Any, policy: Any, observe: Observer) -> None:
    try:
        await asyncio.sleep(1)
    except asyncio.CancelledError:
        while True:
            observe("again")
            await asyncio.sleep(0)


def verdicts(found: Exploration) -> set[tuple[str, tuple[str, ...], str]]:
    return {(each.verdict, each.findings, each.error) for each in found.outcomes}


@pytest.mark.parametrize("client", [two_waits, helped])
def test_every_point_is_struck_in_both_phases(client: Any) -> None:
    asked = scenario(client, judges=JUDGES)
    found = explore(asked, faults=["cancel", "crash"])
    cancels = [
        (Fault("cancel", point.number, point.task, phase),)
        for phase in PHASES
        for point in points(asked, "cancel")
    ]
    crashes = [(Fault("crash", point.number),) for point in points(asked, "crash")]
    assert [outcome.faults for outcome in found.outcomes] == cancels + crashes
    assert (found.struck, found.missed) == (len(cancels) + len(crashes), 0)
    assert found.counts == {"held": found.struck, "broken": 0, "refused": 0, "unresolved": 0}


@pytest.mark.parametrize("client", [two_waits, helped, swallows, tidies, forgets])
def test_each_outcome_is_what_simulate_gives(client: Any) -> None:
    asked = scenario(client, judges=JUDGES)
    usual = {finding.name for finding in simulate(asked).findings}
    found = explore(asked, faults="all", pairs=True)
    for outcome in found.outcomes:
        run = simulate(asked, faults=outcome.faults)
        assert run.hash == found.run(outcome).hash
        assert run.missed == ()
        names = {finding.name for finding in run.findings} - usual
        assert set(outcome.findings) == names
        assert (outcome.verdict == "broken") == bool(names)


def test_a_client_that_swallows_a_cancel_or_a_timeout_is_broken_and_says_by_what() -> None:
    found = explore(scenario(swallows, judges=JUDGES), faults=("cancel", "timeout", "crash"))
    broken = found.of("broken")
    assert {outcome.findings for outcome in broken} == {("cancel_swallowed",)}
    assert {outcome.faults[0].kind for outcome in broken} == {"cancel", "timeout"}
    assert found.by_kind == [
        {"fault": "cancel", "struck": 4, "held": 0, "broken": 4, "refused": 0, "unresolved": 0},
        {"fault": "timeout", "struck": 4, "held": 0, "broken": 4, "refused": 0, "unresolved": 0},
        {"fault": "crash", "struck": 2, "held": 2, "broken": 0, "refused": 0, "unresolved": 0},
    ]


def test_a_refusal_is_an_error_that_the_scenario_names_or_a_base_of_it() -> None:
    asked = scenario(ends_by(BadNo()))
    named = explore(asked.but(refusals=("NoError",)), faults="cancel")
    assert verdicts(named) == {("refused", (), "BadNo")}
    assert verdicts(explore(asked, faults="cancel")) == {("unresolved", (), "BadNo")}


def test_a_refusal_with_a_finding_is_broken() -> None:
    asked = scenario(ends_by(BadNo()), judges=JUDGES, refusals=("NoError",))
    assert verdicts(explore(asked, faults="cancel")) == {("broken", ("cancel_swallowed",), "BadNo")}


@pytest.mark.parametrize(
    ("client", "error"), [(ends_by(None), "Deadlock"), (spins, "Livelock")], ids=["dead", "live"]
)
def test_what_comes_to_no_end_is_unresolved_whatever_was_found(client: Any, error: str) -> None:
    found = explore(scenario(client, judges=JUDGES), faults="cancel", limit=500)
    assert {(outcome.verdict, outcome.error) for outcome in found.outcomes} == {
        ("unresolved", error)
    }


def test_a_finding_that_is_there_without_a_fault_does_not_count() -> None:
    found = explore(scenario(forgets, judges=JUDGES), faults=("cancel", "crash"))
    assert found.usual == ("left_over_task",)
    names = {name for outcome in found.outcomes for name in outcome.findings}
    assert names == {"cancel_swallowed"}


def test_a_fault_that_does_not_strike_is_missed_and_does_not_count() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="waits")
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])

    async def leaves(provider: Any, policy: Any, observe: Observer) -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="waits")
        await asyncio.sleep(1)
        observe("left", task=task.get_name())

    assert explore(scenario(client), faults="cancel").missed == 0
    found = explore(scenario(leaves), faults="cancel")
    assert (found.struck, found.missed) == (3, 1)  # the forgotten task never wakes
    assert "1 missed" in repr(found)


@pytest.mark.parametrize("client", [two_waits, helped, tidies])
def test_an_outcome_tells_when_its_last_fault_struck(client: Any) -> None:
    found = explore(scenario(client, judges=JUDGES), faults="all", pairs=True)
    for outcome in found.outcomes:
        strike = [event for event in found.run(outcome).trace if event.kind == "fault"][-1]
        assert (outcome.time, outcome.event) == (strike.time, strike.index - 1)
    first = {each.faults[0].phase: each for each in found.outcomes[::-1] if each.point.time == 0}
    assert (first["waiting"].time, first["waking"].time) == (0, 1 if client is two_waits else 2)


# Pairs


def test_the_second_of_two_faults_strikes_after_the_first() -> None:
    found = explore(scenario(tidies, judges=JUDGES), faults=("cancel", "crash"), pairs=True)
    couples = [outcome for outcome in found.outcomes if len(outcome.faults) == 2]
    assert len(couples) > 5
    for outcome in couples:
        run = found.run(outcome)
        assert run.struck == outcome.faults
        first, second = [event for event in run.trace if event.kind == "fault"]
        assert (first["fault"], second["fault"]) == tuple(f.kind for f in outcome.faults)
    assert {outcome.faults[0].kind for outcome in couples} == {"cancel"}  # a crash is the last


def test_no_more_pairs_are_tried_than_asked_for_and_the_seed_draws_them() -> None:
    def couples(**how: Any) -> list[tuple[Fault, ...]]:
        found = explore(scenario(tidies), faults="all", **how)
        return [outcome.faults for outcome in found.outcomes if len(outcome.faults) == 2]

    every = couples(pairs=MOST_PAIRS)
    some = couples(pairs=7)
    assert len(some) == 7 < len(every)
    assert some == [pair for pair in every if pair in some]  # in the same order
    assert some == couples(pairs=7)
    assert some != couples(pairs=7, seed=1)
    assert explore(scenario(tidies), faults="all", pairs=7).left_out == len(every) - 7


def test_without_pairs_there_are_none() -> None:
    found = explore(scenario(helped), faults="all")
    assert {len(outcome.faults) for outcome in found.outcomes} == {1}
    assert found.left_out == 0


# How it is asked


def test_progress_is_told_after_each_run_to_the_last() -> None:
    told: list[tuple[int, int]] = []
    found = explore(scenario(tidies), faults="all", pairs=3, progress=lambda *at: told.append(at))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1] == (found.struck + found.missed,) * 2
    assert all(of == len(told) - 3 for _, of in told[:-3])


def test_another_client_may_take_the_place_of_the_scenarios_own() -> None:
    found = explore(scenario(two_waits, judges=JUDGES), faults="cancel", client=swallows)
    assert found.counts["broken"] == 4
    assert found.run(found.outcomes[0]).result == "stopped"


def test_policy_and_seed_reach_each_run() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> Any:
        await asyncio.sleep(policy)
        observe("drew", number=observe.random.random())

    found = explore(scenario(client, policy=1.0), faults="cancel", policy=7.0, seed=3)
    (at,) = {outcome.point.time for outcome in found.outcomes}
    run = found.run(found.outcomes[1])
    assert (at, run.time, run.seed, run.policy) == (0.0, 7.0, 3, 7.0)


def test_a_kind_is_asked_for_once() -> None:
    asked = scenario(two_waits)
    assert explore(asked, faults=["cancel", "cancel"]) == explore(asked, faults="cancel")


def test_it_says_in_one_line_what_was_found() -> None:
    found = explore(scenario(tidies, judges=JUDGES), faults=("cancel", "crash"), pairs=2)
    assert repr(found) == (
        f"<exploration of test: {found.struck} struck, {found.counts['held']} held, "
        f"{found.left_out} pairs left out>"
    )
    broken = explore(scenario(swallows, judges=JUDGES), faults="cancel")
    assert repr(broken) == "<exploration of test: 4 struck, 4 broken>"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"faults": "explode"}, "there is no fault 'explode'; there is: cancel, .*, all"),
        ({"faults": ["cancel", "explode"]}, "no fault 'explode'"),
        ({"faults": [Fault("cancel", 1)]}, "no fault Fault"),
        ({"faults": [[]]}, r"no fault \[\]"),
        ({"faults": Fault("cancel", 1)}, "no fault Fault"),
        ({"faults": None}, "no fault None"),
        ({"faults": []}, "name a kind of fault: cancel"),
        ({"faults": "reorder"}, "nothing to explore: test has no point for reorder"),
        ({"faults": ("kill", "freeze")}, "test has no point for kill, freeze"),
        ({"faults": "cancel", "pairs": -1}, "pairs is a number of runs"),
        ({"faults": "cancel", "pairs": 1.5}, "pairs is a number of runs"),
        ({"faults": "cancel", "pairs": None}, "pairs is a number of runs"),
        ({"faults": "cancel", "seed": "1"}, "a seed is a whole number"),
        ({"faults": "cancel", "limit": 0}, "limit is a number of turns"),
        ({"faults": "cancel", "client": 5}, "a client is an async function, not 5"),
    ],
)
def test_what_cannot_be_explored_is_refused_by_name(inputs: Any, said: str) -> None:
    with pytest.raises(SimulationError, match=said):
        explore(scenario(two_waits), **inputs)


@pytest.mark.parametrize(
    ("call", "own"),
    [
        (explore, "faults, policy, seed, pairs, client, progress"),
        (simulate, "policy, faults, seed"),
    ],
    ids=["explore", "simulate"],
)
def test_a_keyword_that_is_not_there_is_refused_with_those_that_are(call: Any, own: str) -> None:
    said = f"there is no keyword 'foo'; there is: {own}, limit, total"
    with pytest.raises(SimulationError, match=said):
        call(scenario(two_waits), foo=3, **({"faults": "all"} if call is explore else {}))


def test_a_name_in_place_of_a_scenario_is_refused_here_too() -> None:
    with pytest.raises(SimulationError, match="a scenario is needed"):
        explore("retry.naive", faults="all", client=two_waits)  # type: ignore[arg-type]


async def is_stuck(provider: Any, policy: Any, observe: Observer) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (lambda provider, policy, observe: 1, "SimulationError: a client is an async function"),
        (is_stuck, "Deadlock: nothing can happen any more"),
    ],
)
def test_a_scenario_that_fails_without_a_fault_is_refused(client: Any, error: str) -> None:
    said = f"test fails without any fault, mend that first: {error}"
    with pytest.raises(SimulationError, match=said):
        explore(scenario(client), faults="all")


def test_one_that_refuses_without_a_fault_can_be_explored() -> None:
    async def refuses(provider: Any, policy: Any, observe: Observer) -> None:
        await asyncio.sleep(1)
        raise NoError

    found = explore(scenario(refuses, refusals=("NoError",)), faults="cancel")
    assert verdicts(found) == {("held", (), "CancelledError")}


def test_a_verdict_that_is_none_is_refused() -> None:
    found = explore(scenario(two_waits), faults="cancel")
    with pytest.raises(Unknown, match="no verdict 'bad'; there is: held, broken"):
        found.of("bad")


def test_all_stands_for_every_kind() -> None:
    asked = scenario(two_waits)
    found = explore(asked, faults="all")
    assert found == explore(asked, faults=KINDS)
    in_steps = ("disconnect", "stall", "cut", "lose", "duplicate", "reorder")
    assert found.nowhere == ("kill", "freeze", *in_steps)
    assert explore(asked, faults="cancel").nowhere == ()
    assert {row["fault"] for row in found.by_kind} == {"cancel", "timeout", "crash"}


def test_a_scenario_with_processes_is_killed_and_frozen_everywhere() -> None:
    asked = scenario(two_workers, judges=JUDGES)
    found = explore(asked, faults=("kill", "freeze"))
    asked_for = [
        (Fault(kind, point.number, point.task, phase),)
        for kind in ("kill", "freeze")
        for phase in PHASES
        for point in points(asked, kind)
    ]
    dead = [each for each in asked_for if each[0].task == "worker-1" and each[0].point == 1]
    never = [each for each in dead if each[0].phase == "waking"]  # the client kills it before
    assert [each.faults for each in found.outcomes] == [e for e in asked_for if e not in never]
    assert found.missed == len(never) == 2
    ended = {(each.faults[0].kind, each.point.task): each.verdict for each in found.outcomes}
    assert ended == {
        ("kill", "worker-1"): "held",
        ("kill", "worker-2"): "unresolved",
        ("freeze", "worker-1"): "held",
        ("freeze", "worker-2"): "held",
    }  # the client waits for the second worker, and the first one's end changes nothing for it
    assert found.nowhere == ()
    for outcome in found.outcomes:
        assert found.run(outcome).hash == simulate(asked, faults=outcome.faults).hash


PROGRAM = """
import labkit
found = labkit.explore("interruption.stop", faults="all", pairs=40, seed=5)
print([(o.faults, o.point.number, o.verdict, o.findings) for o in found.outcomes], repr(found))
"""


@pytest.mark.socket
def test_the_same_question_has_the_same_answer_in_any_process() -> None:
    told = [run(sys.executable, "-c", PROGRAM, PYTHONHASHSEED=seed) for seed in ("1", "2")]
    assert told[0] == told[1]
    assert "pairs left out" in told[0]


# What it leaves


def test_an_interrupt_leaves_at_once_with_what_was_found_by_then() -> None:
    def stop(done: int, of: int) -> None:
        if done == 3:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as caught:
        explore(scenario(two_waits), faults="all", pairs=True, progress=stop, limit=10**9)
    found: Any = caught.value
    assert found.exploration.struck >= 3
    assert not found.exploration.complete
    assert repr(found.exploration).endswith(", interrupted>")
    assert "simulation" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.skipif(sys.platform == "win32", reason="an interrupt is seen between two looks there")
def test_an_interrupt_ends_a_run_that_does_not_end() -> None:
    begun = threading.Event()

    async def endless(provider: Any, policy: Any, observe: Observer) -> None:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            begun.set()
            while True:  # noqa: ASYNC110 - such a client is what is tested
                await asyncio.sleep(1)

    def interrupts() -> None:
        begun.wait(10)
        signal.raise_signal(signal.SIGINT)

    waiting = threading.Thread(target=interrupts)
    waiting.start()
    with pytest.raises(KeyboardInterrupt):
        explore(scenario(endless), faults="cancel", limit=10**12, total=10**12)
    waiting.join(5)
    assert "simulation" not in {thread.name for thread in threading.enumerate()}


def test_what_progress_raises_leaves() -> None:
    def fail(done: int, of: int) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        explore(scenario(two_waits), faults="cancel", progress=fail)


def test_what_a_run_held_is_let_go_while_others_are_played() -> None:
    held: list[weakref.ref[Any]] = []
    most = 0

    class Services:
        def __init__(self, script: Any, observe: Observer) -> None:
            self.own = self  # a circle, which only the collector ends
            held.append(weakref.ref(self))

    def count(done: int, of: int) -> None:
        nonlocal most
        most = max(most, sum(ref() is not None for ref in held))

    async def long(provider: Any, policy: Any, observe: Observer) -> None:
        for _ in range(60):
            await asyncio.sleep(1)

    found = explore(scenario(long, make=Services), faults="all", progress=count)
    assert found.struck == 240
    assert most < 120
    assert gc.isenabled()


def test_a_pair_strikes_two_steps_and_not_one_step_twice() -> None:
    found = explore(find("turn.reference"), faults=("disconnect", "stall"), pairs=500)
    pairs = [[fault.point for fault in each.faults] for each in found.outcomes if each.faults[1:]]
    assert pairs
    assert all(first != second for first, second in pairs)
