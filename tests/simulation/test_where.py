"""Where a task stands: the innermost frame outside asyncio, through generators and wrappers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from labkit.simulation.where import describe, where

from .kit import line_of, virtually

HERE = __file__


async def inner() -> AsyncIterator[int]:
    await asyncio.sleep(60)  # innermost
    yield 1


async def outer() -> AsyncIterator[int]:
    async with aclosing(inner()) as source:
        async for piece in source:
            yield piece


async def consumes() -> None:
    async with asyncio.timeout(120):
        await anext(outer(), None)  # the outermost


def place_of(work: Any, files: Any = ()) -> Any:
    async def program() -> Any:
        task = asyncio.create_task(work)
        await asyncio.sleep(1)
        try:
            return where(task, files)
        finally:
            task.cancel()

    return virtually(program())


def test_a_task_is_found_behind_two_generators_and_a_timeout() -> None:
    line = line_of(HERE, "await asyncio.sleep(60)  # inner")
    assert place_of(consumes()) == (HERE, line, "inner")


def test_a_wait_in_asyncio_alone_has_no_place() -> None:
    assert place_of(asyncio.sleep(60)) == ("", 0, "")


def test_a_readable_file_is_preferred_to_what_lies_below_it() -> None:
    from . import programs

    async def above() -> None:
        await programs._tidy(print, 60)  # the readable one

    place = place_of(above())
    assert place[2] == "_tidy"
    assert place_of(above(), {HERE})[:2] == (HERE, line_of(HERE, "await programs._tidy"))


def test_a_running_task_stands_where_it_runs() -> None:
    def called() -> Any:
        task = asyncio.current_task()
        assert task is not None
        return where(task)  # runs here

    async def program() -> Any:
        return called()

    assert virtually(program()) == (HERE, line_of(HERE, "return where(task)  # runs"), "called")


def test_a_message_names_eight_tasks_at_most() -> None:
    async def program() -> str:
        tasks = [asyncio.create_task(asyncio.sleep(1), name=f"t{n}") for n in range(10)]
        await asyncio.sleep(0)
        return describe(tasks)

    told = virtually(program())
    assert told.endswith("task 't7'; and 2 more")
    assert describe([]) == "no task"
