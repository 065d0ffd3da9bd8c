"""The provider in process: a script in, deltas and `ProviderError`s out.

    provider = FakeProvider(script, observe)
    async for delta in provider.stream(): ...
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from labkit.recovery.deltas import Delta
from labkit.simulation import Observer

from .player import Player
from .steps import Script


class FakeProvider:
    """Plays `script`, one attempt a request, and fails on cue."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self._player = Player(script, observe)

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
