"""Async generators are closed as in the standard loop, and at the end of the run at the latest."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

from labkit.simulation import Observer, simulate

from .kit import kinds, scenario


async def pieces(observe: Observer) -> AsyncIterator[int]:
    try:
        while True:
            yield 1
            await asyncio.sleep(0.1)
    finally:
        observe("closed")


def test_a_dropped_generator_is_closed_at_the_next_turn() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        async for _ in pieces(observe):
            break
        observe("dropped")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        observe("end")

    told = kinds(simulate(scenario(client)).trace)
    assert told == ["client dropped", "client closed", "client end", "lab end"]


def test_a_generator_that_is_open_at_the_end_is_closed_and_does_not_count() -> None:
    closed: list[str] = []

    async def noted() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append("closed")

    held: list[Any] = []

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        for made in (noted(), pieces(observe)):
            held.append(made)
            await anext(made)

    run = simulate(scenario(client))
    assert closed == ["closed"]
    assert kinds(run.trace) == ["lab end"]


def test_a_generator_in_a_cycle_is_not_collected_in_the_middle_of_a_run() -> None:
    class Holder:
        def __init__(self, observe: Observer) -> None:
            self.stream = self.run(observe)

        async def run(self, observe: Observer) -> AsyncIterator[int]:
            async for piece in pieces(observe):
                yield piece

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        for _ in range(300):
            await anext(Holder(observe).stream)  # dropped, but in a cycle
            await asyncio.sleep(1)

    before = gc.get_threshold()
    gc.set_threshold(50)
    try:
        run = simulate(scenario(client))
    finally:
        gc.set_threshold(*before)
    assert kinds(run.trace) == ["lab end"]
    assert gc.isenabled()


def test_a_closing_generator_is_no_left_over_task() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        async for _ in pieces(observe):
            break

    assert "lab left_over" not in kinds(simulate(scenario(client)).trace)
