"""Names of tasks: unique in a run, and the same on every Python."""

# ruff: noqa: RUF006 - tasks that nobody holds are what is tested

import asyncio
from typing import Any

from labkit.simulation import Observer, simulate

from .kit import scenario, virtually


async def work() -> str:
    await asyncio.sleep(0)
    task = asyncio.current_task()
    return task.get_name() if task else ""


async def other() -> str:
    return await work()


def test_tasks_are_named_by_their_coroutine_and_numbered() -> None:
    async def program() -> list[str]:
        return await asyncio.gather(work(), other(), work(), work())

    assert virtually(program()) == ["work", "other", "work 2", "work 3"]
    assert virtually(program()) == ["work", "other", "work 2", "work 3"]  # counted anew


def test_a_named_task_is_counted_too() -> None:
    async def program() -> list[str]:
        named = asyncio.create_task(work(), name="mine")
        return [await named, await asyncio.create_task(work())]

    assert virtually(program()) == ["mine", "work 2"]


def test_two_tasks_of_one_chosen_name_are_told_apart() -> None:
    async def program() -> list[str]:
        tasks = [asyncio.create_task(work(), name="same") for _ in range(3)]
        tasks.append(asyncio.create_task(work(), name="same 2"))
        async with asyncio.TaskGroup() as group:
            tasks.append(group.create_task(work(), name="same"))
        return [await task for task in tasks]

    names = virtually(program())
    assert names[:3] == ["same", "same 2", "same 3"]
    assert len(set(names)) == 5


def test_ten_thousand_tasks_of_one_name_are_quick_to_name() -> None:
    async def program() -> int:
        tasks = [asyncio.create_task(work(), name="same") for _ in range(10_000)]
        return len({await task for task in tasks})

    assert virtually(program()) == 10_000


def test_left_over_tasks_are_told_by_name_and_function() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        asyncio.create_task(asyncio.sleep(60), name="heartbeat")
        asyncio.create_task(linger())
        await asyncio.sleep(1)

    left = [event for event in simulate(scenario(client)).trace if event.kind == "left_over"]
    assert [(event["task"], event["function"]) for event in left] == [
        ("heartbeat", ""),
        ("linger", "linger"),
    ]


async def linger() -> None:
    await asyncio.sleep(60)
