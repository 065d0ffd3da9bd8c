"""What the tests of this room share: a scenario around any client, one of two workers, a loop."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from labkit.simulation import Event, Observer, Process, Scenario
from labkit.simulation.loop import VirtualLoop

Client = Callable[[Any, Any, Observer], Awaitable[Any]]


def scenario(client: Client, **fields: Any) -> Scenario:
    """A scenario whose provider is None, around `client`."""
    chosen = {"name": "test", "claim": "", "script": None, "make": lambda script, observe: None}
    return Scenario(client=client, **(chosen | fields))


async def two_workers(provider: Any, policy: Any, observe: Observer) -> str:
    """One dies, one sleeps; the client goes on until the second is through."""

    async def work(tell: Observer) -> str:
        try:
            for step in range(3):
                await asyncio.sleep(1)
                tell("step", number=step)
        finally:
            tell("tidied")
        return "done"

    tellers = [observe.of(name) for name in ("worker-1", "worker-2")]
    dies, sleeps = (Process(name, observe.of(name)) for name in ("worker-1", "worker-2"))
    dies.start(work(tellers[0]))
    task = sleeps.start(work(tellers[1]))
    await asyncio.sleep(1.5)
    dies.kill()
    sleeps.freeze(12.0)
    return await task


def virtually(program: Coroutine[Any, Any, Any]) -> Any:
    """Run one coroutine on a virtual loop of its own, and close that."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(program)
    finally:
        loop.close()


def kinds(events: tuple[Event, ...]) -> list[str]:
    """Actor and kind of each event."""
    return [f"{event.actor} {event.kind}" for event in events]


def trace(*told: tuple[Any, ...]) -> tuple[Event, ...]:
    """A hand-made trace of (time, actor, kind, details)."""
    rows = [(*row, {})[:4] for row in told]
    return tuple(
        Event(index, time, actor, kind, tuple(details.items()))
        for index, (time, actor, kind, details) in enumerate(rows)
    )


def line_of(file: str, text: str) -> int:
    """The number of the one line of `file` that begins with `text`."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if line.strip().startswith(text)]
    return found
