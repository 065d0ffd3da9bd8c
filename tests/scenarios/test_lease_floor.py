"""The floor of the lessons on leases: its lines, and the warehouse that nobody can stop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from labkit.recovery.service import DONE, Request
from labkit.scenarios.floor import GIVES_UP, LINE, Line, Warehouse
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
