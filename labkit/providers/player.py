"""Plays a script's steps in time, for whichever world sends them on.

It gives the loop a turn at every step, so that a client which never waits is still seen; it notes
each step, numbered through the run; and faults that strike at a step strike here.

    async with aclosing(Player(script, observe).request()) as steps: ...
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Final

from labkit.recovery.retry_after import parse_retry_after
from labkit.simulation import Observer

from .steps import Script, Step

_INSTEAD: Final = {"disconnect": "drop", "stall": "stall"}


class Player:
    """One provider's play: counts requests from 1 and steps from 0.

    At `speed` 50 a wait of 1 second takes 20 ms.
    """

    def __init__(self, script: Script, observe: Observer, *, speed: float = 1.0) -> None:
        self._script = script
        self._observe = observe
        self._speed = speed
        self._requests = 0
        self._steps = 0

    async def request(self) -> AsyncGenerator[Step, None]:
        """The steps of the next request, each after its wait; a stall comes and then nothing.

        Leaving before the end, by a cancel or by closing, is noted as "left".
        """
        self._requests += 1
        number = self._requests
        self._observe("request", attempt=number)
        over = False
        try:
            async with aclosing(self._play(self._script.attempt(number))) as steps:
                async for step in steps:
                    over = step.ends
                    yield step
        except (asyncio.CancelledError, GeneratorExit) as gone:
            how = "cancelled" if isinstance(gone, asyncio.CancelledError) else "closed"
            if not over:
                self._observe("left", attempt=number, how=how)
            raise

    async def _play(self, steps: tuple[Step, ...]) -> AsyncGenerator[Step, None]:
        for step in _unrolled(steps):
            await asyncio.sleep(step.wait / self._speed)
            if step.do == "wait":
                continue
            step = self._struck(step)
            self._tell(step)
            yield step
            if step.do == "stall":
                await asyncio.Event().wait()
            if step.ends:
                return
        self._observe("closed")

    def _struck(self, step: Step) -> Step:
        number, self._steps = self._steps, self._steps + 1
        for fault in self._observe.faults:
            if fault.kind in _INSTEAD and fault.point == number:
                self._observe.strike(fault)
                return Step(_INSTEAD[fault.kind])
        return step

    def _tell(self, step: Step) -> None:
        details: dict[str, Any] = {"step": self._steps - 1}
        delta = step.delta
        if delta is not None:
            details |= {
                "text": delta.text,
                "call": delta.call_id,
                "name": delta.name,
                "reason": delta.reason,
            }
        if step.do in ("http_error", "error"):
            asked = parse_retry_after(dict(step.headers), now=self._observe.now())
            details |= {"status": step.status, "code": step.code, "message": step.message}
            details |= {"retry_after": asked}
        self._observe(step.do, **{k: v for k, v in details.items() if v not in ("", None)})


def _unrolled(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        if step.do == "forever":
            yield Step("wait", step.wait)
            while True:
                yield from step.steps
        yield step
