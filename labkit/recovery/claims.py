"""A key while it is held: the claim is renewed beside the work, and gives way to a newer one.

A holder that was asleep past its lease finds out at its next renewal, or at the latest when it
writes: the store's record then carries another fence, and what it wanted to write is dropped.

    claim = Claim(keys, record, tell)
    renewing = asyncio.create_task(claim.renewed_until_lost())
    await claim.give_back("succeeded", "receipt 7", ttl=86_400.0)
"""

import asyncio
from typing import Final

from .idempotency import KeyRecord, KeyStore, ended, renewed
from .lease import is_held_by
from .retry import Observe

SHARE: Final = 3  # a claim is renewed when a third of it is over
PATIENCE: Final = 0.8  # of a claim: what has not been renewed by then is lost


class Claim:
    """`mine` is the record as it was claimed; `lost` says why the claim has been lost, or "".

    `closing`: what came of it is known, and is being written.
    """

    def __init__(self, keys: KeyStore, mine: KeyRecord, observe: Observe) -> None:
        self.mine = mine
        self.lost = ""
        self.closing = False
        self._keys = keys
        self._observe = observe

    async def renewed_until_lost(self) -> None:
        """Renew it again and again; returns once it is lost, or was not renewed in time."""
        clock = asyncio.get_running_loop().time
        length, last = self.mine.lease.length, clock()
        while not self.lost:
            await asyncio.sleep(length / SHARE)
            began = clock()
            try:
                async with asyncio.timeout_at(last + PATIENCE * length):  # before its lease ends
                    if await self._renewed():
                        last = began
            except Exception as error:  # a store that is gone for a moment: the claim lasts
                self._observe("not_renewed", digest=self.mine.digest, error=type(error).__name__)
                if clock() >= last + length / 2:  # the next try would come too late
                    self.lost = "the claim could not be renewed"
        self._observe("claim_lost", digest=self.mine.digest)

    async def _renewed(self) -> bool:
        seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
        new = renewed(seen, self.mine, now=now)
        if new is None:  # breakpoint: claim lost
            self.lost = "another executor has taken the key over"
        return new is not None and await self._keys.swap(seen, new)

    async def give_back(
        self, state: str, result: str = "", *, ttl: float, handed_over: bool = False
    ) -> bool:
        """Write what came of it, unless it is lost; whether it was written.

        A store that is gone is asked again while the lease may last; then its error leaves.
        """
        clock = asyncio.get_running_loop().time
        self.closing, until = True, clock() + self.mine.lease.length
        while True:
            try:
                seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
                if seen is None or not is_held_by(seen.lease, self.mine.lease):  # breakpoint: fence
                    self._observe("late_write", digest=self.mine.digest, state=state)
                    return False
                new = ended(seen, state, result, now=now, ttl=ttl, handed_over=handed_over)
                if await self._keys.swap(seen, new):
                    told = {"state": state, "handed_over": handed_over}
                    self._observe("kept", digest=self.mine.digest, **told)
                    return True
            except Exception as error:
                self._observe("not_kept", digest=self.mine.digest, error=type(error).__name__)
                if clock() >= until:
                    raise
                await asyncio.sleep(self.mine.lease.length / SHARE)
