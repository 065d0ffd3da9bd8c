"""A key while it is held: the claim is renewed beside the work, and gives way to a newer one.

A holder that was asleep past its lease finds out before it sends anything, at its next renewal, and
when it writes: the store's record has another fence by then, and what it would write is dropped.

    claim = Claim(keys, record, observe, since=clock())
    renewing = asyncio.create_task(claim.renewed_until_lost())
    await claim.give_back("succeeded", "receipt 7", ttl=86_400.0)
"""

import asyncio
from functools import partial

from .idempotency import PENDING, KeyRecord, KeyStore, ended, renewed
from .lease import is_held_by
from .renewal import AGAIN, SHARE, TAKEN, Renewal
from .retry import Observe


class Claim:
    """`mine` is the record as it was claimed; `lost` says why the claim has been lost, or "".

    `since`: the loop time of the read that its lease counts from.
    """

    def __init__(self, keys: KeyStore, mine: KeyRecord, observe: Observe, *, since: float) -> None:
        self.mine = mine
        tell = partial(observe, digest=mine.digest)
        self.renewal = Renewal(self._renewed, length=mine.lease.length, since=since, observe=tell)
        self._keys = keys
        self._observe = observe

    @property
    def lost(self) -> str:
        """Why it has been lost, or ""."""
        return self.renewal.lost

    async def _renewed(self) -> bool | None:
        seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
        new = renewed(seen, self.mine, now=now)
        if new is None:
            return False
        return new is seen or await self._keys.swap(seen, new) or None  # None: it has changed

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
        self.renewal.closing, until = True, clock() + (length if patience is None else patience)
        while True:
            try:
                seen, now = await self._keys.read(self.mine.tenant, self.mine.key)
                if seen is None or not is_held_by(seen.lease, self.mine.lease):  # breakpoint: fence
                    self.renewal.lost = TAKEN
                    self._observe("late_write", digest=self.mine.digest, state=state)
                    return False
                if seen.state != PENDING:  # written already: only the answer was lost
                    return True
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
                await asyncio.sleep(min(length / SHARE, AGAIN))
