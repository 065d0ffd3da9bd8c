"""A key while it is held: the claim is renewed beside the work, and gives way to a newer one.

A holder that was asleep past its lease finds out before it sends anything, at its next renewal, and
when it writes: the store's record has another fence by then, and what it would write is dropped.

    claim = Claim(keys, record, observe, since=clock())
    renewing = asyncio.create_task(claim.renewed_until_lost())
    await claim.give_back("succeeded", "receipt 7", ttl=86_400.0)
"""

import asyncio
from typing import Final

from .idempotency import PENDING, KeyRecord, KeyStore, ended, renewed
from .lease import is_held_by
from .retry import Observe

SHARE: Final = 3  # a claim is renewed when a third of it is over
RUSH: Final = 12  # a renewal that failed is tried again after such a share
PATIENCE: Final = 0.8  # of a claim: what has not been renewed by then is lost


class Claim:
    """`mine` is the record as it was claimed; `lost` says why the claim has been lost, or "".

    `since`: the loop time of the read that its lease counts from. `closing`: what came of it is
    known, and is being written.
    """

    def __init__(self, keys: KeyStore, mine: KeyRecord, observe: Observe, *, since: float) -> None:
        self.mine = mine
        self.lost = ""
        self.closing = False
        self._last = since
        self._keys = keys
        self._observe = observe

    async def lasts(self, ask: bool) -> bool:
        """Whether nobody else may have it by now: looked at before anything is sent.

        The store is asked where its last word is old, or where the caller wants to `ask`.
        """
        clock = asyncio.get_running_loop().time
        if ask or clock() >= self._last + PATIENCE * self.mine.lease.length:
            await self._renewed()
        return not self.lost

    async def renewed_until_lost(self) -> None:
        """Renew it again and again; returns once it is lost, or was not renewed in time."""
        clock, length = asyncio.get_running_loop().time, self.mine.lease.length
        while not self.lost:
            due = self._last + length / SHARE
            await asyncio.sleep(max(due - clock(), length / RUSH))
            try:
                async with asyncio.timeout_at(self._last + PATIENCE * length):  # before it ends
                    await self._renewed()
            except Exception as error:  # a store that is gone for a moment: the claim lasts
                self._observe("not_renewed", digest=self.mine.digest, error=type(error).__name__)
                if clock() >= self._last + length / 2:  # the next try would come too late
                    self.lost = "the claim could not be renewed"
        self._observe("claim_lost", digest=self.mine.digest)

    async def _renewed(self) -> None:
        began = asyncio.get_running_loop().time()
        seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
        if self._ended(seen):
            self._last = began
            return
        new = renewed(seen, self.mine, now=now)
        if new is None:  # breakpoint: claim lost
            self.lost = "another executor has taken the key over"
        elif await self._keys.swap(seen, new):
            self._last = began

    def _ended(self, seen: KeyRecord | None) -> bool:
        """Whether what came of it is written already, of whose writing the answer was lost."""
        held = seen is not None and is_held_by(seen.lease, self.mine.lease)
        return held and seen is not None and seen.state != PENDING

    async def give_back(
        self,
        state: str,
        result: str = "",
        *,
        ttl: float,
        handed_over: bool = False,
        patience: float | None = None,
    ) -> bool:
        """Write what came of it, unless it is lost; whether it is written.

        A store that is gone is asked again for `patience` seconds, as long as the lease may last
        unless it is given; then its error leaves.
        """
        clock, length = asyncio.get_running_loop().time, self.mine.lease.length
        self.closing, until = True, clock() + (length if patience is None else patience)
        while True:
            try:
                seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
                if self._ended(seen):
                    return True
                if seen is None or not is_held_by(seen.lease, self.mine.lease):  # breakpoint: fence
                    self._observe("late_write", digest=self.mine.digest, state=state)
                    return False
                new = ended(seen, state, result, now=now, ttl=ttl, handed_over=handed_over)
                if await self._keys.swap(seen, new):
                    told = {"state": state, "handed_over": handed_over}
                    self._observe("kept", digest=self.mine.digest, **told)
                    return True
                if clock() >= until:
                    return False
            except Exception as error:
                self._observe("not_kept", digest=self.mine.digest, error=type(error).__name__)
                if clock() >= until:
                    raise
                await asyncio.sleep(length / SHARE)
