"""`simulate`: what becomes of whatever a client does, and inputs that cannot be."""

import asyncio
import random
from typing import Any

import pytest

from labkit.simulation import Observer, Refused, SimulationError, simulate

from .kit import kinds, scenario


async def quick(provider: Any, policy: Any, observe: Observer) -> str:
    return "done"


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), GeneratorExit()], ids=repr)
def test_what_the_client_raises_becomes_the_runs_error(error: BaseException) -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        await asyncio.sleep(1)
        raise error

    run = simulate(scenario(client))
    assert run.error is error
    assert run.trace[-1]["error"] == type(error).__name__


def test_a_provider_that_cannot_be_made_is_the_runs_error() -> None:
    def make(script: Any, observe: Observer) -> None:
        raise KeyError("script")

    assert repr(simulate(scenario(quick, make=make)).error) == "KeyError('script')"


def test_make_gets_the_script_and_an_observer() -> None:
    def make(script: Any, observe: Observer) -> Any:
        observe("made", of=script)
        return script * 2

    async def client(provider: Any, policy: Any, observe: Observer) -> Any:
        return provider, policy

    run = simulate(scenario(client, make=make, script="ab", policy="its own"))
    assert run.result == ("abab", "its own")
    assert kinds(run.trace) == ["provider made", "lab end"]
    assert simulate(scenario(client, make=make, script="ab"), policy="mine").result[1] == "mine"


@pytest.mark.parametrize("kind", ["function", "generator"])
def test_a_client_that_is_no_async_function_is_told_so(kind: str) -> None:
    def function(provider: Any, policy: Any, observe: Observer) -> int:
        return 1

    async def generator(provider: Any, policy: Any, observe: Observer) -> Any:
        yield 1

    made: Any = {"function": function, "generator": generator}[kind]
    error = simulate(scenario(made)).error
    assert isinstance(error, SimulationError)
    assert "async function" in str(error)


def test_nothing_counts_after_the_end() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> str:
        async def late() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                observe("too late")
                observe.effect("too late")

        task = asyncio.create_task(late())
        await asyncio.sleep(1)
        assert task
        return "done"

    run = simulate(scenario(client))
    assert kinds(run.trace) == ["lab left_over", "lab end"]
    assert run.ledger == ()
    assert all(place.event < len(run.trace) for place in run.recorded)


def test_the_wall_clock_of_a_run_moves_with_virtual_time() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> float:
        before = observe.now()
        await asyncio.sleep(3_600)
        return observe.now() - before

    assert simulate(scenario(client)).result == 3_600.0


def test_the_global_random_is_seeded_for_an_sdk_and_put_back() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> float:
        return random.random()

    random.seed(5)
    expected = random.random()
    random.seed(5)
    results = {simulate(scenario(client, sdk=True), seed=1).result for _ in range(3)}
    assert len(results) == 1
    assert random.random() == expected


def test_another_kind_of_policy_is_named_by_its_class_on_one_line() -> None:
    with pytest.raises(SimulationError) as refused:
        simulate(scenario(quick).but(policy=random.Random(0)), policy=["a", "b"])
    assert str(refused.value) == "here a policy comes from Random(...), not from list"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"seed": "1"}, "a seed is a whole number"),
        ({"seed": True}, "a seed is a whole number"),
        ({"faults": ["cancel"]}, "a fault is needed"),
        ({"faults": 3}, "a fault is needed, like Fault.*, not 3"),
        ({"faults": None}, "a fault is needed"),
        ({"limit": 0}, "limit is a number of turns"),
        ({"limit": float("nan")}, "limit is a number of turns"),
        ({"total": "many"}, "total is a number of turns"),
        ({"total": -1}, "total is a number of turns"),
    ],
)
def test_inputs_that_cannot_be_are_refused_when_given(inputs: Any, said: str) -> None:
    with pytest.raises(SimulationError, match=said):
        simulate(scenario(quick), **inputs)


def test_a_name_in_place_of_a_scenario_is_refused() -> None:
    with pytest.raises(SimulationError, match="a scenario is needed, not 'retry"):
        simulate("retry.naive")  # type: ignore[arg-type]


def test_a_simulation_within_a_simulation_is_refused() -> None:
    outer = simulate(scenario(quick))

    async def nests(provider: Any, policy: Any, observe: Observer) -> None:
        simulate(scenario(quick))

    async def records(provider: Any, policy: Any, observe: Observer) -> None:
        _ = outer.recorded

    for client in (nests, records):
        run = simulate(scenario(client))
        assert isinstance(run.error, Refused)
        assert "await the inner client" in str(run.error)
        assert run.recorded
    assert outer.recorded


def test_what_is_left_may_have_any_name() -> None:
    class Services:
        def left(self) -> dict[str, Any]:
            return {"kind": 1, "self": {"actor": (2,)}}

    async def client(provider: Any, policy: Any, observe: Any) -> None: ...

    run = simulate(scenario(client, make=lambda script, observe: Services()))
    left = next(event for event in run.trace if event.kind == "left")
    assert dict(left.data) == {"kind": 1, "self": (("actor", (2,)),)}
