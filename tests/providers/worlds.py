"""The same script in three worlds: in process, the SDK in virtual time, the SDK on a socket.

Each gives what the client saw and what the provider noted, as lists without times.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import astuple
from typing import Any

from labkit.providers import server
from labkit.providers.fake import FakeProvider
from labkit.providers.process import Served
from labkit.providers.script import Script, script
from labkit.providers.sdk import SDKProvider, connected, scripted
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.scenarios.scripts import SCRIPTS, load
from labkit.simulation import Fault, Observer, Run, Scenario, simulate
from tests.providers.hosted import hosted

Seen = list[tuple[Any, ...]]
SPEED = 50.0
PATIENCE = 5.0  # script seconds after which a client leaves a stalled stream

MORE: list[Any] = [  # what no script file does, each an attempt
    [{"drop": True}],
    [{"end": True}],
    [{"wait": 0.1}],
    [{"error": ""}],
    [{"error": {}}],
    [{"say": "a"}, {"finish": "length"}, {"end": True}],
    [{"finish": "stop"}, {"error": {"message": "late"}}],
    [{"usage": {"in": 3, "out": 1}}, {"think": ""}, {"say": "\u2028\r\n'"}, {"finish": "stop"}],
    [{"call": {"index": 1, "id": "b", "name": "g"}}, {"call": {"index": 0, "arguments": "{}"}}],
    [{"http_error": {"status": 500, "headers": {"Retry-After": "3", "X-Odd": "a  b"}}}],
]


def every_script() -> list[Script]:
    """Every file in `data/scripts`, and one script of what they leave out."""
    files = [load(path.stem) for path in sorted(SCRIPTS.glob("*.json"))]
    return [*files, script({"name": "more", "attempts": MORE})]


async def listen(provider: Any, attempts: int, patience: float) -> list[Seen]:
    """What a client sees of each attempt, to the end, to the error, or until it leaves."""
    return [await _one(provider, patience) for _ in range(attempts)]


async def _one(provider: Any, patience: float) -> Seen:
    seen: Seen = []
    try:
        async with asyncio.timeout(patience), aclosing(provider.stream()) as stream:
            async for delta in stream:
                seen.append(said(delta))
    except ProviderError as error:
        seen.append(failed(error))
    except TimeoutError:
        seen.append(("left",))
    else:
        seen.append(("end",))
    return seen


def said(delta: Delta) -> tuple[Any, ...]:
    """A delta as plain values."""
    return astuple(delta)


def failed(error: ProviderError) -> tuple[Any, ...]:
    """An error as plain values; the words of a lost connection are each world's own."""
    message = "" if error.kind == "disconnect" else str(error)
    return (
        "error",
        error.kind,
        error.definite,
        error.status,
        error.code,
        message,
        error.headers.get("retry-after"),
    )


def noted(events: Iterable[Mapping[str, Any]]) -> Seen:
    """What the provider noted, without times; a socket does not tell how its client left."""
    hidden = ("time", "index", "actor", "how")
    return [tuple((k, v) for k, v in event.items() if k not in hidden) for event in events]


def simulated(
    play: Script, make: Callable[[Script, Observer], Any], *, is_sdk: bool = False
) -> tuple[list[Seen], Seen]:
    """What the client saw and what the provider noted, in virtual time."""
    run = run_of(play, make, is_sdk=is_sdk)
    assert run.error is None, run.error
    provider = [event for event in run.events if event["actor"] == "provider"]
    return run.result, noted(provider)


def run_of(
    play: Script,
    make: Callable[[Script, Observer], Any],
    *,
    is_sdk: bool = False,
    faults: Iterable[Fault] = (),
) -> Run:
    """One run in which a client listens to every attempt."""

    async def client(provider: Any, policy: Any, observe: Observer) -> list[Seen]:
        return await listen(provider, len(play.attempts), PATIENCE)

    scenario = Scenario(name=play.name, claim="", script=play, make=make, client=client, sdk=is_sdk)
    return simulate(scenario, faults=faults)


def in_process(play: Script) -> tuple[list[Seen], Seen]:
    """The fake provider."""
    return simulated(play, FakeProvider)


def sdk_in_virtual_time(play: Script) -> tuple[list[Seen], Seen]:
    """The real client over the in-process transport."""
    return simulated(play, of_sdk, is_sdk=True)


def of_sdk(play: Script, observe: Observer) -> SDKProvider:
    """The real client, without retries of its own."""
    return SDKProvider(scripted(play, observe, max_retries=0))


def on_a_socket(play: Script) -> tuple[list[Seen], Seen]:
    """The real client over a real connection to a provider in another thread."""

    stalls = any(step.do == "stall" for steps in play.attempts for step in steps)
    patience = PATIENCE / SPEED + 0.4 if stalls else PATIENCE  # where none is left, none hurries

    async def ask(address: str) -> list[Seen]:
        async with connected(address) as client:
            _ = client.chat.completions  # is imported here, before the clock runs
            return await listen(SDKProvider(client), len(play.attempts), patience)

    listening, address = server.listen(0)
    with hosted(server.serving(play, speed=SPEED), listening):
        return asyncio.run(ask(address)), noted(Served(address, os.getpid()).events())
