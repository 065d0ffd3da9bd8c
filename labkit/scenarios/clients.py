"""The clients that scenarios run: the careful one, and naive ones that each get one thing wrong.

A client is an async function of provider, policy and observer. It shows text on the page by
`page("shown", text=...)`.
"""

import asyncio
from contextlib import aclosing
from typing import Any

from labkit.recovery.deltas import Boundary
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.simulation import Observer


async def careful(
    provider: Any, policy: RetryPolicy, observe: Observer, *, segments: bool = False
) -> None:
    """Show the answer, tried again only where that is safe."""
    page = observe.of("page")
    pieces = stream_with_retry(
        provider.stream,
        policy=policy,
        random=observe.random,
        segments=segments,
        observe=observe,
        now=observe.now,
    )
    segment = 1
    async with aclosing(pieces):
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
    except BaseException as error:  # noqa: BLE001 - the flaw that is shown
        return f"Error: {type(error).__name__}"
    return "done"


async def forgets_a_task(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: starts a task beside the answer and never waits for it."""
    task = asyncio.create_task(asyncio.sleep(3600), name="heartbeat")
    await careful(provider, policy, observe)
    observe("forgot", task=task.get_name())


async def shows_one_late(provider: Any, policy: Any, observe: Observer) -> None:
    """Naive: holds each text back until the next arrives, and loses the last."""
    page = observe.of("page")
    held = ""
    async for delta in provider.stream():
        if delta.visible:
            if held:
                page("shown", text=held)
            held = delta.text
