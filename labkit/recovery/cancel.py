"""Cancelling a task, and finishing what must be finished when one is cancelled.

A cancel arrives as an exception at the line where a task waits, and any later wait in the clean-up
may get another. So what must not be left half done runs as a task of its own, and the cancel leaves
when that has ended.

    ended_as_cancelled = await stop(task)
    await to_the_end(save(session))      # saved, and then the cancel leaves
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from .errors import RecoveryError

CLEAN_UP: Final = 5.0  # seconds that a task has to clean up
Result = TypeVar("Result")


def by_user() -> bool:
    """Whether a cancel is its user's stop, where nobody knows of another reason."""
    return True


async def stop(task: asyncio.Task[Any]) -> bool:
    """Cancel `task` and wait until it has cleaned up; whether it really ended as cancelled.

    A cancel of the caller leaves when the task has ended: nobody else would wait for it. Raises
    `RecoveryError` for the caller's own task, which would wait for itself.
    """
    if task is asyncio.current_task():
        raise RecoveryError("a task cannot wait for its own end: return, or let somebody stop it")
    task.cancel()
    await _ended(task)
    return task.cancelled()


async def wait_or_cancel(task: asyncio.Task[Any], seconds: float) -> None:
    """Wait so many seconds for `task`; then cancel it, and give it time to clean up.

    A cancel of the caller does the same, and leaves. A task that heeds no cancel is left to itself
    when its time to clean up is over: nobody waits for it any more.
    """
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        if not task.done():  # breakpoint: given up
            task.cancel()
            await to_the_end(asyncio.wait([task], timeout=CLEAN_UP))
        if task.done() and not task.cancelled():
            task.exception()  # looked at, whoever leaves now


async def to_the_end(work: Coroutine[Any, Any, Result], *, name: str = "clean-up") -> Result:
    """Run `work` to its end whatever cancels arrive meanwhile; the first of them leaves after it.

    What `work` raises leaves too; behind a cancel it stands as its cause.
    """
    task = asyncio.create_task(work, name=name)
    await _ended(task)
    return task.result()


async def _ended(task: asyncio.Task[Any]) -> None:
    """Wait for the task's end; a cancel that arrives meanwhile leaves after that."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as first:
            cancelled = cancelled or first
    if cancelled is not None:
        failure = None if task.cancelled() else task.exception()
        raise cancelled from failure  # breakpoint: cancel leaves
