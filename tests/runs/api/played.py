"""The service on a real socket in a thread of this process, with runs that a test plays by hand.

with served(tmp_path) as service:
    run = service.begun()
    service.plays(Step("proposer"), Done("so be it"))       # whoever drives a run
    ...                                                     # any client, at service.address
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx

from labkit.providers.server import hosting, listen
from labkit.recovery.sse import SSEDecoder, SSEEvent
from labkit.recovery.stream.record import Owner
from labkit.runs.api.access import Access, users_of
from labkit.runs.api.app import application
from labkit.runs.api.streams import Places
from labkit.runs.job import Ask, Done, Step, Work
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from tests.providers.hosted import hosted
from tests.runs.api.kit import ANN, ASKED, TOKENS, USERS, Talk

POLICY = RunPolicy(lease=10.0, watchdog=0.5)


class Played:
    """A running service: its address, its store, its places."""

    def __init__(self, address: str, store: RunStore, places: Places) -> None:
        self.address = address
        self.store = store
        self.places = places
        self.loop: asyncio.AbstractEventLoop | None = None
        self._steps: asyncio.Queue[Step | Ask | Done] = asyncio.Queue()

    async def job(self, work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
        """What the test plays, to whichever run asks first."""
        while True:
            step = await self._steps.get()
            yield step
            if not isinstance(step, Step):
                return

    def plays(self, *steps: Step | Ask | Done) -> None:
        """Let a run take these steps."""
        assert self.loop is not None
        for step in steps:
            self.loop.call_soon_threadsafe(self._steps.put_nowait, step)

    @contextmanager
    def client(self, owner: Owner = ANN) -> Iterator[httpx.Client]:
        """Whoever talks with it."""
        token = {"authorization": f"Bearer {TOKENS[owner]}"}
        plain: Any = {"trust_env": False, "verify": False}  # certificates take time to load
        with httpx.Client(base_url=self.address, headers=token, timeout=10, **plain) as client:
            yield client

    def begun(self, owner: Owner = ANN) -> str:
        """The id of a new run."""
        with self.client(owner) as client:
            return str(client.post("/runs", json=ASKED).json()["id"])

    def taken(self) -> int:
        """How many places readers have."""
        return self.places._taken.total()


@contextmanager
def served(folder: Path, places: Places | None = None, **options: Any) -> Iterator[Played]:
    """The service for the length of the block, on a port that the system chooses."""
    with ExitStack() as stack:
        store = stack.enter_context(closing(open_run_store(f"sqlite:///{folder / 'runs.db'}")))
        listening, address = listen(0)
        service = Played(address, store, places or Places())
        manager = RunManager(store, {"discussion": service.job}, worker="w", policy=POLICY)
        talk: Any = Talk()
        access = Access(users_of(USERS))
        app = application(manager, talk, access, places=service.places, **options)
        service.loop = stack.enter_context(hosted(hosting(app), listening))
        yield service


class Reader:
    """Reads one stream of events, as they come."""

    def __init__(self, answered: httpx.Response) -> None:
        self.answered = answered
        self.raw = b""
        self.told: list[SSEEvent] = []
        self._pieces = answered.iter_raw()
        self._decoder = SSEDecoder()

    def until(self, kind: str) -> list[SSEEvent]:
        """All that has come up to the first event of that kind."""
        return self._until(lambda: any(event.event == kind for event in self.told))

    def beats(self, number: int) -> None:
        """Read until there were so many heartbeats."""
        self._until(lambda: self.raw.count(b": alive\n") >= number)

    def _until(self, so: Callable[[], bool]) -> list[SSEEvent]:
        while not so():
            piece = next(self._pieces)
            self.raw += piece
            self.told += self._decoder.feed(piece)
        return self.told


@contextmanager
def reading(client: httpx.Client, run: str, cursor: str = "") -> Iterator[Reader]:
    """A reader for the length of the block, which leaves then."""
    headers = {"last-event-id": cursor} if cursor else {}
    with client.stream("GET", f"/runs/{run}/events", headers=headers) as answered:
        assert answered.status_code == 200, answered.read()
        yield Reader(answered)


def soon(so: Callable[[], Any], seconds: float = 10.0) -> bool:
    """Whether it comes true within so many seconds."""
    end = time.monotonic() + seconds
    while not so() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(so())
