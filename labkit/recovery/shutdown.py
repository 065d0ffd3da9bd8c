"""Ends the parts of a service in order, each within a time of its own.

The order is a table of steps. A step that hangs is abandoned by its name and the next one runs, so
that what comes last, to keep what there is, is tried whatever hung before. When somebody is in a
hurry, every step still begins, but only those are waited for that say so.

    steps = [Step("stop channels", stop, 5.0), Step("flush sessions", flush, 10.0, always=True)]
    ended = await shut_down(steps, hurry=hurry, observe=observe)
    ended[0]        # StepEnd(name='stop channels', outcome='abandoned', seconds=5.0)
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

DONE: Final = "done"
FAILED: Final = "failed"
ABANDONED: Final = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownLimits:
    """The seconds that a step may take, by what it waits for."""

    tasks: float = 15.0
    turns: float = 15.0
    channels: float = 5.0
    transports: float = 15.0
    sessions: float = 10.0


@dataclass(frozen=True, slots=True)
class Step:
    """One row of the table: `run()` ends a part. `always`: it is waited for in a hurry, too."""

    name: str
    run: Callable[[], Coroutine[Any, Any, object]]
    limit: float
    always: bool = False


@dataclass(frozen=True, slots=True)
class StepEnd:
    """How a step ended, after how many seconds; `said` is what it returned or raised."""

    name: str
    outcome: str
    seconds: float
    said: object = None


async def shut_down(
    steps: Sequence[Step], *, hurry: asyncio.Future[None], observe: Callable[..., object]
) -> list[StepEnd]:
    """Take the steps one after the other; from when `hurry` is done on, nobody wants to wait.

    `observe("step", ...)` is told how each one ended. It raises nothing of what a step or `observe`
    raises. What was abandoned goes on beside the next steps, and is cancelled at the end, but not
    waited for.
    """
    ended, tasks = [], []
    for step in steps:
        task = asyncio.create_task(_started(step), name=step.name)
        end = await _within(task, step, hurry)  # breakpoint: step ended
        with suppress(Exception):  # whoever listens may be gone already
            observe("step", name=end.name, outcome=end.outcome, seconds=end.seconds)
        ended.append(end)
        tasks.append(task)
    for task in tasks:
        task.cancel()
        task.add_done_callback(_error)
    return ended


async def _started(step: Step) -> object:
    return await step.run()


async def _within(task: asyncio.Task[object], step: Step, hurry: asyncio.Future[None]) -> StepEnd:
    clock = asyncio.get_running_loop().time
    began = clock()
    watched: list[asyncio.Future[Any]] = [task] if step.always else [task, hurry]
    await asyncio.wait(watched, timeout=step.limit, return_when=asyncio.FIRST_COMPLETED)
    seconds = clock() - began
    if not task.done():
        return StepEnd(step.name, ABANDONED, seconds)  # breakpoint: step abandoned
    if error := _error(task):
        return StepEnd(step.name, FAILED, seconds, error)
    return StepEnd(step.name, DONE, seconds, task.result())


def _error(task: asyncio.Task[object]) -> BaseException | None:
    """What the task failed with; once asked for, asyncio does not complain that nobody did."""
    return asyncio.CancelledError() if task.cancelled() else task.exception()
