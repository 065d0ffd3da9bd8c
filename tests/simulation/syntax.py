"""A client with much of the language in it, whose places must be the same on every Python."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pair:
    left: int
    right: str = ""

    def swapped(self) -> "Pair":
        return Pair(
            len(self.right),
            str(self.left),
        )


def doubled(function: Any) -> Any:
    def wrapper(*args: Any) -> Any:
        first = function(*args)
        second = function(*args)
        return first, second

    return wrapper


@doubled
def decorated(
    number: int,
    *,
    step: int = 1,
) -> int:
    total = 0
    for part in range(
        0,
        number,
        step,
    ):
        if part % 2 == 0 and (part > 0):
            continue
        total += part
    else:
        total += 100
    return total


@contextmanager
def entered(log: list[str]) -> Iterator[str]:
    log.append("in")
    try:
        yield "value"
    finally:
        log.append("out")


@asynccontextmanager
async def waited(log: list[str]) -> AsyncIterator[None]:
    await asyncio.sleep(0.1)
    log.append("waited in")
    yield
    log.append("waited out")


def counted(most: int) -> Iterator[int]:
    number = 0
    while number < most:
        got = yield number
        number += got or 1
    return "done"


def delegated() -> Iterator[int]:
    ended = yield from counted(3)
    assert ended == "done"


async def ticking(most: int) -> AsyncIterator[int]:
    try:
        for number in range(most):
            await asyncio.sleep(0.1)
            yield number
    finally:
        await asyncio.sleep(0.05)


def matched(subject: object) -> str:
    match subject:
        case {"kind": "text", **rest}:
            return f"text {len(rest)}"
        case [first, *others] if others:
            return f"list {first}"
        case Pair(left=0) | Pair(right="x"):
            return "pair"
        case _:
            return "other"


def failing(log: list[str]) -> int:
    try:
        try:
            raise ValueError("one text")
        except ValueError as error:
            log.append(str(error))
            raise KeyError("two") from error
        finally:
            log.append("inner")
    except (KeyError, IndexError):
        log.append("caught")
    else:
        log.append("never")
    while True:
        try:
            break
        finally:
            log.append("left")
    return len(log)


def recursive(depth: int) -> int:
    if depth == 0:
        return 0
    return 1 + recursive(depth - 1)


# fmt: off
def one_liners(many: list[int]) -> Any:
    squares = [
        number * number
        for number in many
        if number
    ]
    names = {str(number): number for number in squares}
    total = sum(number for number in squares)
    if (most := max(squares)) > 3: total += most  # noqa: E701
    first, *rest = sorted(names.items(), key=lambda pair: pair[1]); del rest  # noqa: E702
    nothing: int | None = None
    return (
        first,
        total,
        nothing,
    )
# fmt: on


async def worker(name: str, queue: "asyncio.Queue[int]", log: list[str]) -> None:
    while True:
        number = await queue.get()
        log.append(f"{name} {number}")
        await asyncio.sleep(0.1 * number)
        queue.task_done()


async def client(provider: Any, policy: Any, observe: Any) -> str:
    log: list[str] = []
    api_key = "sk-live-123456"
    decorated(5)
    with entered(log) as value, entered(log):
        log.append(value)
    async with waited(log):
        observe("inside", lines=len(log))
    for number in delegated():
        log.append(str(number))
    async for number in ticking(5):
        if number == 2:
            break
    for subject in ({"kind": "text", "x": 1}, [1, 2], Pair(0), Pair(1, "x").swapped(), 7):
        log.append(matched(subject))
    failing(log)
    recursive(2)
    one_liners([1, 2, 3])
    queue: asyncio.Queue[int] = asyncio.Queue()
    workers = [asyncio.create_task(worker(name, queue, log)) for name in "ab"]
    for number in range(4):
        queue.put_nowait(number)
    await queue.join()
    for task in workers:
        task.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    async with asyncio.timeout(1):
        async with asyncio.TaskGroup() as group:
            group.create_task(worker_once(log), name="once")
            group.create_task(worker_once(log))
    try:
        async with asyncio.timeout(0.2):
            await asyncio.Event().wait()
    except TimeoutError:
        observe("timeout", key=api_key)
    return ",".join(log)


async def worker_once(log: list[str]) -> None:
    await asyncio.sleep(0.1)
    log.append("once")
