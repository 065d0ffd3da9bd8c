"""The floor of the lessons on leases: its lines, and the warehouse that nobody can stop."""

from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, NOT_DONE, Request
from labkit.scenarios.catalogue import find, points, simulate
from labkit.scenarios.floor import GIVES_UP, LINE, Floor, Line, Warehouse
from labkit.scenarios.leases import POLICY, happen, working
from labkit.simulation import Fault, Observer, Process, Run, Scenario, Unknown
from labkit.simulation.world import unheard
from labkit.stores.errors import StoreDown
from tests.simulation.kit import virtually


@pytest.mark.parametrize(
    ("at", "told"),
    [(-1.0, "done"), (0.0, "down"), (3.9, "down"), (4.0, "done"), (60.0, "done")],
)
def test_a_line_that_is_cut_carries_nothing_for_that_time_and_then_again(
    at: float, told: str
) -> None:
    async def program() -> str:
        line = Line(lambda kind, **data: None)
        loop = asyncio.get_running_loop()
        loop.call_at(10.0, line.cut, 4.0)
        await asyncio.sleep(10.0 + at - LINE)  # what is asked for is there after that much
        try:
            return await line(lambda: "done")
        except StoreDown:
            assert 0 < loop.time() - 10.0 - at <= GIVES_UP
            return "down"

    assert virtually(program()) == told


def test_what_the_warehouse_has_begun_is_done_also_when_whoever_asked_is_gone() -> None:
    effects: list[str] = []

    class Noted:
        def effect(self, step: str, **about: Any) -> None:
            effects.append(step)

    async def program() -> str:
        observe: Any = Noted()
        warehouse = Warehouse(observe)
        request = Request("r/ship", {"step": "ship", "given": {"order": 7}}, 1, 1)
        asking = asyncio.create_task(warehouse.perform(request))
        await asyncio.sleep(LINE / 2)
        asking.cancel()
        await asyncio.sleep(1.0)
        return (await warehouse.look_up(request)).state

    assert virtually(program()) == DONE
    assert effects == ["ship"]


def test_a_renewal_is_told_when_the_store_makes_it_with_the_end_that_it_gives() -> None:
    run = simulate("leases.reference")
    asked = POLICY.lease / 3  # counted by its worker from before it asked for the claim
    first, second = (e for e in run.trace if e.kind == "renewed")
    assert (first.time, second.time) == pytest.approx((asked + LINE, 2 * asked + LINE))
    for event in (first, second):
        assert event["until"] == pytest.approx(event.time + POLICY.lease)


def test_a_renewal_that_is_refused_is_told_by_the_store_at_that_moment() -> None:
    run = cancelled_at(2.5)
    (refused,) = (e for e in run.trace if e.kind == "refused" and e["move"] == "renew")
    assert refused.time == pytest.approx(POLICY.lease / 3 + LINE)
    assert (refused["run"], refused["by"], refused["fence"]) == ("run-1", "worker-1", 1)


def test_the_breakpoint_of_a_lost_claim_is_reached_only_where_it_is_lost() -> None:
    assert cancelled_at(2.5).to("claim lost").place.function == "_renewed"
    with pytest.raises(Unknown):
        simulate("leases.reference").to("claim lost")


def cancelled_at(at: float) -> Run:
    """The reference, whose owner cancels it then."""
    client = partial(working, workers=2, happens=[[at, "cancel", "run-1"]], at_least=6.0)
    return simulate(find("leases.reference").but(client=client))


@pytest.mark.parametrize("strikes", [Process.kill, partial(Process.freeze, seconds=100.0)])
def test_what_the_warehouse_has_begun_is_done_also_when_its_worker_stands_still(
    strikes: Any,
) -> None:
    effects: list[str] = []

    async def program() -> None:
        observe: Any = SimpleNamespace(effect=lambda step, **about: effects.append(step))
        request = Request("r/ship", {"step": "ship", "given": {"order": 7}}, 1, 1)
        process = Process("worker-1", lambda kind, **about: None)
        process.start(Warehouse(observe).perform(request))
        await asyncio.sleep(LINE / 2)
        strikes(process)
        await asyncio.sleep(1.0)
        assert effects == ["ship"]

    virtually(program())


@pytest.mark.parametrize(("stands", "leaves"), [("kill", False), ("freeze", False), ("", True)])
def test_a_worker_that_stands_still_is_not_asked_to_leave(stands: str, leaves: bool) -> None:
    async def client(floor: Floor, policy: Any, observe: Observer) -> tuple[float, bool]:
        worker = floor.worker("worker-1", policy)
        await asyncio.sleep(1.0)
        if stands:
            await happen(floor, stands, "worker-1", *([60.0] if stands == "freeze" else []))
        await happen(floor, "shut down", "worker-1")
        return floor.clock(), worker.serving.done()

    made = Scenario(name="own", claim="own", script=None, make=Floor, client=client, policy=POLICY)
    at, left = simulate(made).result
    assert (at < 2.0, left) == (True, leaves)


def test_after_the_warehouse_has_said_no_an_earlier_try_is_not_done() -> None:
    async def program() -> None:
        own = Warehouse(unheard("warehouse"))
        payload = {"step": "ship", "given": {"order": 1}}
        first, second = Request("k", payload, 1, 1), Request("k", payload, 2, 1)
        assert (await own.look_up(second)).state == NOT_DONE
        for late in (first, second):
            with pytest.raises(ProviderError, match="an older claim") as refused:
                await own.perform(late)
            assert refused.value.definite
        assert await own.perform(second._replace(attempt=2)) == "ship done"
        with pytest.raises(ProviderError):
            await own.perform(first._replace(attempt=9))
        assert (await own.look_up(second)).state == DONE

    virtually(program())


@pytest.mark.parametrize("step", ["reserve", "send_mail", "ship"])
def test_who_is_frozen_before_a_request_has_no_effect_when_it_wakes(step: str) -> None:
    whole = simulate("leases.reference")
    began = next(e for e in whole.trace if e.kind == "attempt" and e.index > _kept(whole, step))
    there = points("leases.reference", "freeze")
    (point,) = [p for p in there if p.event == began.index and p.task.startswith("execute")][:1]
    run = simulate("leases.reference", faults=Fault("freeze", point.number, task=point.task))
    assert [effect["name"] for effect in run.effects] == ["reserve", "send_mail", "ship"]
    thawed = next(event for event in run.trace if event.kind == "thawed")
    assert [e for e in run.trace[thawed.index :] if e.kind == "tried" and e["error"]]
    assert run.findings == ()


def _kept(run: Run, step: str) -> int:
    """The event before a step begins."""
    steps = ("reserve", "send_mail", "ship")
    kept = [e.index for e in run.trace if e.kind == "kept" and e.get("step")]
    return [0, *kept][steps.index(step)]
