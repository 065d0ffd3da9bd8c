"""Plays a script's steps in time, for whichever world sends them on.

It gives the loop a turn at every step, so that a client which never waits is still seen; it notes
each step in the trace, numbered through the run; and faults that strike at a step strike here.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from labkit.recovery.retry_after import parse_retry_after
from labkit.simulation import Observer

from .script import Script, Step

_INSTEAD = {"disconnect": "drop", "stall": "stall"}


class Player:
    """One provider's play: counts requests from 1 and steps from 0."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self._script = script
        self._observe = observe
        self._requests = 0
        self._steps = 0

    async def request(self) -> AsyncGenerator[Step, None]:
        """The steps of the next request, each after its wait; a stall never comes back.

        Leaving early, by a cancel or by closing, is noted as "left".
        """
        self._requests += 1
        number = self._requests
        self._observe("request", attempt=number)
        try:
            async for step in self._play(self._script.attempt(number)):
                yield step
        except (asyncio.CancelledError, GeneratorExit) as gone:
            how = "cancelled" if isinstance(gone, asyncio.CancelledError) else "closed"
            self._observe("left", attempt=number, how=how)
            raise

    async def _play(self, steps: tuple[Step, ...]) -> AsyncGenerator[Step, None]:
        for step in steps:
            await asyncio.sleep(step.wait)
            if step.do == "forever":
                while True:
                    async for inner in self._play(step.steps):
                        yield inner
            if step.do == "wait":
                continue
            step = self._struck(step)
            self._tell(step)
            if step.do == "stall":
                await asyncio.Event().wait()
            yield step
            if step.do in ("drop", "error", "http_error", "end"):
                return
        if not steps or steps[-1].do not in ("drop", "error", "http_error", "end", "forever"):
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


