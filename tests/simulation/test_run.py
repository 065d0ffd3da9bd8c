"""`Run`: records, hash, findings, and recording when it is asked for."""

import asyncio
import threading
from random import random
from typing import Any

import pytest

import labkit.simulation
from labkit.simulation import NotDeterministic, Observer, simulate

from .kit import scenario


async def client(provider: Any, policy: Any, observe: Observer) -> str:
    print("said by the client")
    observe("started", number=1)
    await asyncio.sleep(0.5)
    observe.effect("paid", amount=12)
    observe.of("page")("shown", text="Hello")
    return "done"


def test_a_run_holds_result_trace_and_effects_as_flat_records() -> None:
    run = simulate(scenario(client), seed=7, policy={"tries": 3})
    assert (run.result, run.error, run.time, run.text) == ("done", None, 0.5, "Hello")
    assert (run.seed, run.policy, run.faults) == (7, {"tries": 3}, ())
    assert run.events[0] == {
        "index": 0, "time": 0.0, "actor": "client", "kind": "started", "number": 1
    }  # fmt: skip
    assert run.effects == [{"time": 0.5, "name": "paid", "event": 1, "amount": 12}]
    assert run.places[0]["function"] == "client"
    assert set(run.places[0]) == {
        "index", "time", "task", "file", "function", "breakpoint", "event"
    }  # fmt: skip


def test_equal_inputs_have_equal_hashes_and_others_do_not() -> None:
    async def chance(provider: Any, policy: Any, observe: Observer) -> None:
        observe("drew", number=observe.random.random(), policy=policy)

    hashes = {
        simulate(scenario(chance), seed=seed, policy=policy).hash
        for seed in (0, 1)
        for policy in ("a", "b")
        for _ in range(3)
    }
    assert len(hashes) == 4
    assert all(len(digest) == 64 for digest in hashes)


def test_places_are_recorded_when_first_asked_for_and_only_once() -> None:
    count: list[int] = []

    async def counted(provider: Any, policy: Any, observe: Observer) -> None:
        count.append(1)

    run = simulate(scenario(counted))
    assert len(count) == 1
    _ = run.recorded, run.recorded, run.first()
    assert len(count) == 2


def test_a_recording_that_differs_is_refused_and_names_the_event() -> None:
    async def chancy(provider: Any, policy: Any, observe: Observer) -> None:
        observe("same")
        observe("drew", number=random())

    run = simulate(scenario(chancy))
    with pytest.raises(NotDeterministic, match=r"got #1 .* drew number=.*global random"):
        _ = run.recorded


def test_a_recording_that_is_shorter_is_refused_too() -> None:
    told = iter([True, False])

    async def once(provider: Any, policy: Any, observe: Observer) -> None:
        if next(told):
            observe("extra")

    with pytest.raises(NotDeterministic, match=r"extra"):
        _ = simulate(scenario(once)).recorded


def test_what_the_client_prints_is_seen_once(capsys: pytest.CaptureFixture[str]) -> None:
    run = simulate(scenario(client))
    assert capsys.readouterr().out == "said by the client\n"
    assert run.recorded
    assert capsys.readouterr().out == ""
    print("still here")
    assert capsys.readouterr().out == "still here\n"


def test_the_text_of_a_run_is_one_line_that_says_how_it_ended() -> None:
    assert repr(simulate(scenario(client))) == "<run test: result 'done'; t=0.5 s, 4 events>"

    async def fails(provider: Any, policy: Any, observe: Observer) -> None:
        raise ValueError("no")

    assert repr(simulate(scenario(fails))) == "<run test: ValueError: no; t=0 s, 1 events>"


def test_findings_come_in_the_order_of_their_events() -> None:
    async def two(provider: Any, policy: Any, observe: Observer) -> None:
        provider = observe.of("provider")
        held = asyncio.create_task(asyncio.sleep(9), name="held")
        provider("request")
        provider("http_error", retry_after=5.0)
        provider("request")
        assert held

    run = simulate(scenario(two, judges=labkit.simulation.STREAM_JUDGES))
    assert [finding.name for finding in run.findings] == ["retry_after_ignored", "left_over_task"]


def test_two_threads_simulate_at_once() -> None:
    alone = simulate(scenario(client), seed=3).hash
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.extend(simulate(scenario(client), seed=3).hash for _ in range(50))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 200


def test_a_run_works_inside_a_running_loop() -> None:
    async def cell() -> str:
        run = simulate(scenario(client))
        assert run.recorded
        return str(run.result)

    assert asyncio.run(cell()) == "done"
