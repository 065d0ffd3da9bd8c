"""Three services that enter effects into a ledger, with windows where others may strike.

Nothing in the ledger is unique: an effect that is had twice stands there twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import Known, Request
from labkit.services import ledger

Ledger = ledger.Ledger
Meet = Callable[[str, str], Awaitable[None]]  # (window, key): others may strike here

ASKABLE = "askable"  # not atomic; its "not done" is a promise
ATOMIC = "atomic"  # one key has one effect there; it cannot be asked
MUTE = "mute"  # neither
SERVICES = (ASKABLE, ATOMIC, MUTE)


class LedgerService(ledger.LedgerService):
    """What has the effects: one of `SERVICES`, as one process sees it."""

    def __init__(self, kind: str, ledger: Ledger, owner: str, meet: Meet) -> None:
        super().__init__(ledger, owner)
        self.atomic = kind == ATOMIC
        self._kind = kind
        self._meet = meet

    async def perform(self, request: Request) -> str:
        """Enter the effect; others may strike before and after it."""
        await self._meet("claimed", request.key)
        result = await super().perform(request)
        await self._meet("done", request.key)
        return result

    def _perform(self, request: Request) -> str:
        if self._kind == ASKABLE:
            return super()._perform(request)
        with self._ledger.alone() as connection:
            return self._entered(connection, request)

    def _entered(self, connection: sqlite3.Connection, request: Request) -> str:
        found = self.atomic and ledger.found(connection, request.key)
        return found or super()._entered(connection, request)

    async def look_up(self, request: Request) -> Known:
        """What became of it; "not done" closes the door to every try so far."""
        if self._kind != ASKABLE:
            raise ProviderError("it cannot be asked", kind="server")
        return await super().look_up(request)
