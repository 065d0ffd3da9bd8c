"""The clients that scenarios run: the careful one, and naive ones that each get one thing wrong.

A client is an async function of provider, policy and observer. It shows text on the page by
`page("shown", text=...)`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from labkit.recovery.cancel import stop
from labkit.recovery.deltas import Boundary, Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.simulation import Observer

Client = Callable[[Any, Any, Observer], Coroutine[Any, Any, Any]]


async def careful(
    provider: Any, policy: RetryPolicy, observe: Observer, *, segments: bool = False
) -> None:
    """Show the answer, tried again only where that is safe."""
    page = observe.of("page")
    segment = 1
    async with aclosing(_pieces(provider, policy, observe, segments)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Boundary):
                if piece.segment > segment:
                    segment = piece.segment
                    page("segment_end", reason=piece.reason)
            elif piece.visible:
                page("shown", text=piece.text)


async def with_segments(provider: Any, policy: RetryPolicy, observe: Observer) -> None:
    """As `careful`, on a page that can close a segment and open another."""
    await careful(provider, policy, observe, segments=True)


async def glues_segments(provider: Any, policy: RetryPolicy, observe: Observer) -> None:
    """Naive: asks for segments, then writes them all into one text."""
    page = observe.of("page")
    async with aclosing(_pieces(provider, policy, observe, segments=True)) as pieces:
        async for piece in pieces:
            if isinstance(piece, Delta) and piece.visible:
                page("shown", text=piece.text)


async def starts_over(provider: Any, policy: RetryPolicy, observe: Observer) -> None:
    """Naive: a retry loop around the whole stream, blind to what was shown."""
    page = observe.of("page")
    for attempt in range(1, policy.attempts + 1):
        observe("attempt", attempt=attempt)
        try:
            async for delta in provider.stream():
                if delta.visible:
                    page("shown", text=delta.text)
            return
        except ProviderError as error:
            observe("failure", attempt=attempt, error=error.kind)
            if attempt == policy.attempts:
                raise
            await asyncio.sleep(policy.first_wait)


async def takes_the_end_for_success(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: a stream that ends is taken for an answer, finish reason or not."""
    page = observe.of("page")
    async for delta in provider.stream():
        if delta.visible:
            page("shown", text=delta.text)


async def hammers(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: tries again at once, whatever the provider asked for."""
    page = observe.of("page")
    for attempt in range(10):
        try:
            async for delta in provider.stream():
                if delta.visible:
                    page("shown", text=delta.text)
            return
        except ProviderError:
            if attempt == 9:
                raise


async def swallows_the_cancel(provider: Any, policy: Any, observe: Observer) -> str:
    """Naive: turns the cancellation into an error text, as if it had been any failure."""
    page = observe.of("page")
    try:
        async for delta in provider.stream():
            if delta.visible:
                page("shown", text=delta.text)
    except BaseException as error:
        return f"Error: {type(error).__name__}"
    return "done"


async def forgets_a_task(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: starts a heartbeat beside the answer and never stops it."""
    asyncio.create_task(_beat(observe.of("page")), name="heartbeat")  # noqa: RUF006 - the flaw
    await careful(provider, policy, observe)


async def waits_for_whole_words(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: shows text up to the last blank, so that no word is cut, and loses the last word."""
    page = observe.of("page")
    held = ""
    async for delta in provider.stream():
        if delta.visible:
            words, blank, held = (held + delta.text).rpartition(" ")
            if blank:
                page("shown", text=words + blank)


async def stopped(
    provider: Any, policy: Any, observe: Observer, *, client: Client, seconds: float
) -> None:
    """Run `client`, which the user stops after so many seconds."""
    await as_task(client(provider, policy, observe), "answer", observe, stop_at=seconds)


async def as_task(
    work: Coroutine[Any, Any, Any], name: str, observe: Observer, *, stop_at: float | None
) -> asyncio.Task[Any]:
    """Run `work` as a task of its own, which the user stops if it lasts `stop_at` seconds.

    Returns the task when it is done, however it ended. A cancel of the caller stops it too.
    """
    task = asyncio.create_task(work, name=name)
    try:
        await asyncio.wait([task], timeout=stop_at)
        if not task.done():
            observe.of("user")("cancel", task=name)
    finally:
        if not task.done():
            await stop(task)
        observe.of("lab")("end", task=name, outcome=_outcome(task))
    return task


def _outcome(task: asyncio.Task[Any]) -> str:
    if task.cancelled():
        return "cancelled"
    return "error" if task.exception() is not None else "result"


def _pieces(
    provider: Any, policy: RetryPolicy, observe: Observer, segments: bool
) -> AsyncGenerator[Delta | Boundary, None]:
    return stream_with_retry(
        provider.stream,
        policy=policy,
        random=observe.random,
        segments=segments,
        observe=observe,
        now=observe.now,
    )


async def _beat(page: Observer) -> None:
    while True:
        await asyncio.sleep(10)
        page("status", text="still working")
