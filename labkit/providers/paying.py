"""Draws the requests and retries of an unmodified `openai` client on a budget, at its transport.

The client decides on its retries itself and tells nobody, but its transport sees each request with
its count (x-stainless-retry-count), and the client obeys "x-should-retry: false" in an answer. So:
the first request pays at the door. After a failure that the client would try again, the budget is
asked for that retry and for the request in it, before the client begins to wait. Where it says no,
the answer goes up with that header, and the client ends with its own last error. A lost connection
has no answer to put a header on: there the transport raises what the client would raise after its
last try, which it lets pass as it is.

    openai.DefaultAsyncHttpxClient(transport=Paying(transport, budget.within("sdk"), retries=2))

The client's wait is its own. Asked for is the longest that it may be: Retry-After, or its backoff
without the random share that it takes off. `retries` is what the client was made with: a call with
more of its own (`with_options`) pays at the door for those beyond it, one with fewer for some that
it does not make. A body that breaks while the client reads it is no answer of the transport's: the
retry after it is counted as a request at the door.

Source: `_base_client.py` of openai 3.57 (`_should_retry`, `_calculate_retry_timeout`).
"""

import time
from dataclasses import dataclass
from typing import Final

import httpx2
import openai

from labkit.recovery.budget import Budget
from labkit.recovery.retry_after import parse_retry_after

FIRST: Final = 0.5  # seconds of the client's backoff, which doubles
MOST: Final = 8.0
LONGEST_ASKED: Final = 120.0  # seconds of a Retry-After above which it gives up by itself
RETRIED: Final = (408, 409, 429)  # and from 500 on


@dataclass
class Paying(httpx2.AsyncBaseTransport):
    """A transport around another one; `retries`: the client's own after its first request."""

    inner: httpx2.AsyncBaseTransport
    budget: Budget
    retries: int
    _reserved: int = 0  # retries that are paid for, and not made yet

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pay, send, and ask for the retry that the client is about to make.

        Raises `BudgetExhausted` where not even the first request may go out.
        """
        count = int(request.headers.get("x-stainless-retry-count", 0))
        if count and self._reserved:
            self._reserved -= 1
        else:  # also a retry that nobody was asked for: one after a body that broke
            self.budget.request()
        try:
            answer = await self.inner.handle_async_request(request)
        except httpx2.RequestError as lost:
            if short := self._short(count, None):
                late = isinstance(lost, httpx2.TimeoutException)
                last = openai.APITimeoutError if late else openai.APIConnectionError
                error = last(request=request)
                error.add_note(f"the client was not let try again: {short}")
                raise error from lost
            raise
        if _tried_again(answer) and (short := self._short(count, answer)):
            answer.headers.update({"x-should-retry": "false", "x-budget-exhausted": short})
        return answer

    def _short(self, count: int, answer: httpx2.Response | None) -> str:
        """What ran out, where the client would try again and may not, or ""."""
        if count >= self.retries:
            return ""
        wait = (_asked(answer) if answer is not None else 0) or min(FIRST * 2**count, MOST)
        short = self.budget.retry(wait)
        if not short:
            self.budget.request()  # its place is kept while the client waits
            self._reserved += 1
        return short

    async def aclose(self) -> None:
        """Close the transport inside."""
        await self.inner.aclose()


def _tried_again(answer: httpx2.Response) -> bool:
    """Whether the client tries again after this answer, if it has retries left."""
    if not answer.is_error or _asked(answer) > LONGEST_ASKED:
        return False
    said = answer.headers.get("x-should-retry")
    if said in ("true", "false"):
        return bool(said == "true")
    return answer.status_code in RETRIED or answer.status_code >= 500


def _asked(answer: httpx2.Response) -> float:
    """The wait asked for in seconds, or 0; the client compares a date with the machine's clock."""
    return parse_retry_after(answer.headers, now=time.time()) or 0.0
