"""Is interrupted by a test: runs a client that does not end, says when, and then runs once more.

python tests/simulation/interrupted.py KIND
"""

# ruff: noqa: ASYNC110 - such clients are what is tested

import asyncio
import signal
import sys
from typing import Any

from labkit.simulation import Run, simulate
from tests.simulation.kit import scenario

FOR_EVER = {"limit": 10**12, "total": 10**12}


async def turns(provider: Any, policy: Any, observe: Any) -> None:
    """Gives the loop its turns, without end."""
    while True:
        await asyncio.sleep(0.1)


async def events(provider: Any, policy: Any, observe: Any) -> None:
    """Fills the trace, and never waits."""
    while True:
        observe("again")


async def python(provider: Any, policy: Any, observe: Any) -> None:
    """Looks at neither loop nor trace."""
    while True:
        sum(range(100))


async def deaf(provider: Any, policy: Any, observe: Any) -> None:
    """Catches everything, as a bare `except` does."""
    while True:
        try:
            sum(range(100))
            await asyncio.sleep(0)
        except BaseException:
            observe("caught")


async def deaf_python(provider: Any, policy: Any, observe: Any) -> None:
    """Catches everything and never waits."""
    while True:
        try:
            sum(range(100))
        except BaseException:
            observe("caught")


async def quick(provider: Any, policy: Any, observe: Any) -> int:
    """Ends by itself."""
    for number in range(10):
        observe("tick", number=number, chance=observe.random.random())
        await asyncio.sleep(0.1)
    return 1


def say(*words: object) -> None:
    """Print at once."""
    print(*words, flush=True)


def main(kind: str) -> None:
    """Run before, run until interrupted, and run after."""
    client = {"recording": quick}.get(kind) or globals()[kind]
    before = simulate(scenario(quick))
    places = len(before.recorded)
    say("ready")
    try:
        if kind == "recording":
            endless_recording()
        simulate(scenario(client), **FOR_EVER)
    except KeyboardInterrupt:
        say("left")
    after = simulate(scenario(quick))
    say("same" if after.hash == before.hash and len(after.recorded) == places else "differs")


def endless_recording() -> None:
    """Ends in the middle of a recording: there is one at nearly all times."""
    while True:
        run: Run = simulate(scenario(busy))
        _ = run.recorded


async def busy(provider: Any, policy: Any, observe: Any) -> None:
    """Passes many lines."""
    for _ in range(3_000):
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    if hasattr(signal, "alarm"):
        signal.alarm(100)  # whoever started it may be gone
    main(sys.argv[1])
