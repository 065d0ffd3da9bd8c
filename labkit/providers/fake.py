"""The provider in process: a script in, deltas and `ProviderError`s out.

    provider = FakeProvider(script, observe)
    async for delta in provider.stream(): ...

Its `Player` plays the steps in time, here and in every other world. It gives the loop a turn at
every step, so that a client which never waits is still seen; it notes each step, numbered through
the run; and faults that strike at a step strike there.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from labkit.recovery.deltas import Delta
from labkit.recovery.retry_after import parse_retry_after
from labkit.simulation import Observer

from .script import Script, Step

_INSTEAD: Final = {"disconnect": "drop", "stall": "stall"}


@dataclass
class Player:
    """One provider's play: counts requests from 1 and steps from 0.

    At `speed` 50 a wait of 1 second takes 20 ms.
    """

    script: Script
    observe: Observer
    speed: float = 1.0
    requests: int = 0
    steps: int = 0

    async def request(self) -> AsyncGenerator[Step, None]:
        """The steps of the next request, each after its wait; a stall comes and then nothing.

        Leaving before the end, by a cancel or by closing, is noted as "left".
        """
        number = self.requests = self.requests + 1
        self.observe("request", attempt=number)
        over = False
        try:
            for step in _unrolled(self.script.attempt(number)):
                await asyncio.sleep(step.wait / self.speed)
                if step.do == "wait":
                    continue
                played = self._noted(step)
                over = played.ends
                yield played
                if played.do == "stall":
                    await asyncio.Event().wait()
                if over:
                    return
            self.observe("closed")
        except (asyncio.CancelledError, GeneratorExit) as gone:
            how = "cancelled" if isinstance(gone, asyncio.CancelledError) else "closed"
            if not over:
                self.observe("left", attempt=number, how=how)
            raise

    def _noted(self, step: Step) -> Step:
        """The step, or what a fault puts in its place, after it is in the trace."""
        number, self.steps = self.steps, self.steps + 1
        for fault in self.observe.faults:
            if fault.kind in _INSTEAD and fault.point == number:
                self.observe.strike(fault)
                step = Step(_INSTEAD[fault.kind])
        said = step.delta or Delta("text")
        told = {
            "step": number,
            "text": said.text,
            "call": said.call_id,
            "name": said.name,
            "reason": said.reason,
            "status": step.status,
            "code": step.code,
            "message": step.message,
            "retry_after": parse_retry_after(dict(step.headers), now=self.observe.now())
            if step.headers  # a learner steps through the function: no visit without a reason
            else None,
        }
        self.observe(step.do, **{name: v for name, v in told.items() if v not in ("", None)})
        return step


def _unrolled(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        if step.do == "forever":
            yield Step("wait", step.wait)
            while True:
                yield from step.steps
        yield step


class FakeProvider:
    """Plays `script`, one attempt a request, and fails on cue."""

    def __init__(self, script: Script, observe: Observer, *, speed: float = 1.0) -> None:
        self._player = Player(script, observe, speed)

    async def stream(self, attempt: int = 1) -> AsyncGenerator[Delta, None]:
        """One request's deltas; raises the `ProviderError` that the script calls for.

        `attempt` is the caller's own count and is not read: the provider counts its requests.
        A cancel leaves at once and is noted in the trace.
        """
        async with aclosing(self._player.request()) as steps:
            async for step in steps:
                if step.delta is not None:
                    yield step.delta
                elif step.do not in ("end", "stall"):
                    raise step.failure()
