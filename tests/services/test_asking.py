"""The model that the service's process plays, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from labkit.providers.script import script
from labkit.recovery.stream.continuation import Request
from labkit.services.process import asking
from tests.simulation.kit import virtually


def test_the_speed_of_a_service_divides_the_waits_of_its_script() -> None:
    async def seconds(speed: float) -> float:
        step = {"wait": 10, "say": "It was sent."}
        ask = asking(script({"name": "x", "attempts": [[step]]}), speed=speed)
        assert [delta.text async for delta in ask(Request(messages=()), 1)] == ["It was sent."]
        return asyncio.get_running_loop().time()

    assert virtually(seconds(1.0)) == pytest.approx(10.0)
    assert virtually(seconds(50.0)) == pytest.approx(0.2)
