"""Keeps a lease alive beside the work, and tells its holder when to stop.

Rules: it is renewed when a third of it is over, and again soon where that failed; what has not been
renewed when four fifths are over counts as lost. The store will soon give it to another, and nobody
can tell a holder that is cut off: it must stop by its own clock.

    renewal = Renewal(renew_at_the_store, length=30.0, since=clock(), observe=observe)
    task = await while_held(work(), renewal, name="charge")     # it has ended
    renewal.lost                                                # why it had to, or ""
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from .cancel import to_the_end
from .retry import Observe

SHARE: Final = 3  # a lease is renewed when a third of it is over
AGAIN: Final = 1.0  # seconds at most until a store that was gone is asked again
RUSH: Final = 12  # a renewal that failed is tried again after such a share
PATIENCE: Final = 0.8  # of a lease: what has not been renewed by then is lost
LAST_TRY: Final = PATIENCE - 1 / RUSH  # after this the next would come too late
UNRENEWED: Final = "the claim could not be renewed"
TAKEN: Final = "another has taken it over"
Result = TypeVar("Result")


class Renewal:
    """One holder's lease of `length` seconds; `lost` says why it has been lost, or "".

    `ask()` asks the store to renew it: True, or False where it is another's by now, or None where
    that has to be asked again. `since`: the loop time from which the lease counts at the latest.
    `closing`: what came of the work is being written, so that it is not cancelled any more.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[bool | None]],
        *,
        length: float,
        since: float,
        observe: Observe,
    ) -> None:
        self.lost = ""
        self.closing = False
        self._ask = ask
        self._length = length
        self._last = since
        self._observe = observe
        self._clock = asyncio.get_running_loop().time

    async def lost_by_now(self, ask: bool = False) -> str:
        """Why it is lost by now, or "": looked at before anything is sent.

        The store is asked where its last word is old, or where the caller wants to `ask`. While it
        is gone, a lease that lasts by this clock is not lost; who comes later gets its error.
        """
        if ask or self._clock() >= self._last + PATIENCE * self._length:
            try:
                await self._renewed()
            except Exception as error:
                if self._clock() >= self._last + LAST_TRY * self._length:
                    raise
                self._observe("not_renewed", error=type(error).__name__)
        return self.lost

    async def until_lost(self) -> None:
        """Renew it again and again; returns once it is lost, or was not renewed in time."""
        while not self.lost:
            due = self._last + self._length / SHARE
            await asyncio.sleep(max(due - self._clock(), self._length / RUSH))
            try:
                async with asyncio.timeout_at(self._last + PATIENCE * self._length):
                    await self._renewed()
            except Exception as error:  # a store that is gone for a moment: the lease lasts
                self._observe("not_renewed", error=type(error).__name__)
            if not self.lost and self._clock() >= self._last + LAST_TRY * self._length:
                self.lost = UNRENEWED  # breakpoint: stop by own clock
        self._observe("claim_lost")

    async def _renewed(self) -> None:
        began = self._clock()  # its new end is counted from before it was asked for
        answer = await self._ask()
        if answer is False:
            self.lost = TAKEN  # breakpoint: claim lost
        elif answer:
            self._last = began


async def while_held(
    work: Coroutine[Any, Any, Result],
    renewal: Renewal,
    *,
    name: str,
    clean_up: float | None = None,
) -> asyncio.Task[Result]:
    """Work while the lease is renewed beside it; one that is lost ends the work at once.

    Returns the task of the work, which has ended, unless it heeds no cancel for `clean_up` seconds.
    A cancel is passed on to it, and leaves after its end.
    """
    working = asyncio.create_task(work, name=name)
    keeping = asyncio.create_task(renewal.until_lost(), name=f"renew {name}")
    try:
        await asyncio.wait((working, keeping), return_when=asyncio.FIRST_COMPLETED)
    finally:
        keeping.cancel()
        if not renewal.closing:
            working.cancel()
        await to_the_end(asyncio.wait((working, keeping), timeout=clean_up))
    return working
