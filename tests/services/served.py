"""The service on a real socket in a thread of this process, with a model that a test plays by hand.

with served() as service:
    service.model.says("Hel", "lo", FINISH)      # what the next requests to it bring, in order
    ...                                          # any client, at service.address
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from labkit.providers.server import hosting, listen
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.receiving import Services
from labkit.services.answers import Answers
from labkit.services.app import application
from labkit.stores.memory import MemoryStreamStore
from tests.providers.hosted import hosted

FINISH = Delta("finish", reason="stop")
DROP = ProviderError("the connection was reset, key=sk-123", kind="disconnect")
POLICY = RetryPolicy(retry_on=TRANSIENT, first_wait=0.01, max_wait=0.01, stall=30.0)
SECRET = "the secret of somebody"
ANN = {"authorization": f"Bearer {SECRET}"}
BOB = {"authorization": "Bearer the secret of another"}


class Model:
    """Brings what the test puts in, one thing after the other, whoever asks."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.requests: list[Request] = []
        self.cancelled = threading.Event()
        self._queue: asyncio.Queue[Delta | Exception] = asyncio.Queue()

    def says(self, *things: str | Delta | Exception) -> None:
        """Put in texts, deltas and errors; may be called from any thread."""
        assert self.loop is not None
        for thing in things:
            delta = Delta("text", thing) if isinstance(thing, str) else thing
            self.loop.call_soon_threadsafe(self._queue.put_nowait, delta)

    async def ask(self, request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
        self.requests.append(request)
        try:
            while True:
                thing = await self._queue.get()
                if isinstance(thing, Exception):
                    raise thing
                yield thing
                if thing.kind == "finish":
                    return
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@dataclass
class Served:
    """A running service: its address, its model, and what it has noted."""

    address: str
    model: Model
    answers: Answers
    noted: list[tuple[str, dict[str, Any]]]

    def notes(self, kind: str) -> int:
        """How often `kind` was noted."""
        return sum(noted == kind for noted, _ in self.noted)


@contextlib.contextmanager
def served(
    *,
    store: Any = None,
    policy: RetryPolicy = POLICY,
    services: Any = None,
    under: str = "",
    **options: Any,
) -> Iterator[Served]:
    """The service for the length of the block, at the path `under`, on a port of the system's."""
    model = Model()
    noted: list[tuple[str, dict[str, Any]]] = []

    def note(kind: str, **data: Any) -> None:
        noted.append((kind, data))

    common = {"ask": model.ask, "policy": policy, "random": Random(1), "observe": note}
    made = partial(Services, **common, **(services or {}))
    answers = Answers(store or MemoryStreamStore(), made, **options.pop("answers", {}))
    listening, address = listen(0)
    service = Served(f"{address}{under}", model, answers, noted)
    app = application(answers, **options)
    server = hosting(Starlette(routes=[Mount(under, app)]) if under else app)
    with hosted(server, listening) as model.loop:
        yield service
