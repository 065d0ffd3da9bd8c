"""Answers in virtual time: a model that a test plays by hand, and a store that it can hold up.

def test_x() -> None:
    async def work(bench: Bench) -> None:
        run_id = await bench.answers.start(ANN, "Why?")
        await bench.says(run_id, "Because.", FINISH)
    play(work)
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from itertools import count
from random import Random
from typing import Any

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.event_log import EventLog
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.stream import Owner, StreamRun
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.receiving import Services
from labkit.services.answers import Answers
from labkit.stores.memory import MemoryStreamStore
from tests.simulation.kit import virtually

ANN = Owner("ann", "acme")
BOB = Owner("bob", "acme")
FINISH = Delta("finish", reason="stop")
DROP = ProviderError("the connection was reset", kind="disconnect")
POLICY = RetryPolicy(retry_on=TRANSIENT, jitter=0)


class Model:
    """Brings what the test puts in, one thing after the other, to whoever asks."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.left = 0  # requests that were given up
        self._things: asyncio.Queue[Delta | Exception] = asyncio.Queue()

    def put(self, *things: str | Delta | Exception) -> None:
        for thing in things:
            self._things.put_nowait(Delta("text", thing) if isinstance(thing, str) else thing)

    async def ask(self, request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        try:
            while True:
                thing = await self._things.get()
                if isinstance(thing, Exception):
                    raise thing
                yield thing
                if thing.kind == "finish":
                    return
        except (asyncio.CancelledError, GeneratorExit):
            self.left += 1
            raise


class Bench:
    """A service in memory; `calls` counts the store's, and `gate` holds them up."""

    def __init__(self, **options: Any) -> None:
        self.model = Model()
        self.store = MemoryStreamStore()
        self.gate = asyncio.Event()
        self.gate.set()
        self.calls: list[str] = []
        self.noted: list[tuple[str, dict[str, Any]]] = []
        self._names = count(1)
        self.answers = self.service(**options)

    def service(self, *, ended: int = 64, at_once: int = 64, **services: Any) -> Answers:
        """A service on the same store, as after a restart."""
        made = partial(
            Services,
            ask=self.model.ask,
            policy=POLICY,
            random=Random(1),
            now=asyncio.get_running_loop().time,
            observe=lambda kind, **data: self.noted.append((kind, data)),
            **services,
        )
        return Answers(
            self.store,
            made,
            call=self._call,
            name=lambda: f"n{next(self._names)}",
            ended=ended,
            at_once=at_once,
        )

    async def _call(self, do: Callable[..., Any], *arguments: Any) -> Any:
        self.calls.append(do.__name__)
        await self.gate.wait()
        return do(*arguments)

    async def begun(self, *things: str | Delta | Exception) -> str:
        """An answer of Ann's for which the model has brought so much by now."""
        run_id = await self.answers.start(ANN, "Why?")
        self.model.put(*things)
        await asyncio.sleep(0.001)
        return run_id

    async def ended(self, *things: str | Delta | Exception) -> str:
        """An answer of Ann's that has ended by itself."""
        run_id = await self.begun(*things)
        await asyncio.sleep(60)
        return run_id

    def record(self, run_id: str, owner: Owner = ANN) -> StreamRun:
        return self.store.load(run_id, owner)


async def heard(log: EventLog, cursor: str = "") -> list[tuple[str, dict[str, Any]]]:
    """What a reader has heard when the log ends."""
    return [(entry.event, json.loads(entry.data)) async for entry in log.follow(cursor) if entry]


def text(told: list[tuple[str, dict[str, Any]]]) -> str:
    """The text in what was heard; a bar stands where a segment was closed."""
    marks = {"segment_end": "|"}
    return "".join(data.get("text", marks.get(kind, "")) for kind, data in told)


def states(told: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """What the status line said."""
    return [data["state"] for kind, data in told if kind == "status"]


def play(work: Callable[[Bench], Awaitable[Any]], **options: Any) -> Any:
    """Run `work` with a bench, and end its service afterwards; no task may be left."""

    async def whole() -> Any:
        bench = Bench(**options)
        try:
            return await work(bench)
        finally:
            bench.gate.set()
            await bench.answers.close()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    return virtually(whole())
