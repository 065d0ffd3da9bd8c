"""A floor in virtual time: one store of runs, and workers that reach it each by a line of its own.

The store is the real one, on a SQLite in memory with the loop's clock. A line can be slow, cut off,
or lose the answer of a call that was done; a worker is a process, which can be killed or frozen.

    def test_...() -> None:
        async def program(floor: Floor) -> None:
            worker = floor.worker("a")
            run = await floor.submit("count")
            worker.process.kill()
            floor.worker("b")
            await floor.until(run, "completed")

        on_floor(program)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from labkit.recovery.run_states import ENDED
from labkit.recovery.stream.record import Owner
from labkit.runs.job import Ask, Done, Job, Step, Work
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.news import about
from labkit.runs.opening import virtual_run_store
from labkit.runs.record import AgentRun, RunEvent
from labkit.runs.store import RunStore
from labkit.simulation import Process
from labkit.stores.errors import StoreDown
from tests.simulation.kit import virtually

ANN, BOB = Owner("ann", "acme"), Owner("bob", "acme")
POLICY = RunPolicy(lease=10.0, watchdog=2.0, capacity=4, clean_up=1.0)
Answer = TypeVar("Answer")


class Line:
    """How one worker reaches the store: each call and each answer takes `seconds`.

    It is cut in each `(start, end)` of `cuts`: there a call raises, or hangs if `hangs`. `loses`:
    the numbers of calls, from 1, that are done and of which the answer is lost.
    """

    def __init__(
        self,
        *cuts: tuple[float, float],
        seconds: float = 0.01,
        loses: tuple[int, ...] = (),
        hangs: bool = False,
    ) -> None:
        self.calls = 0
        self.cuts = list(cuts)
        self.loses = loses
        self.seconds = seconds
        self._hangs = hangs
        self._clock = asyncio.get_running_loop().time

    async def __call__(self, work: Callable[[], Answer]) -> Answer:
        """Carry one call to the store, and its answer back."""
        self.calls += 1
        number = self.calls
        await self._carry()
        answer = work()
        await self._carry(lost=number in self.loses)
        return answer

    async def _carry(self, lost: bool = False) -> None:
        await asyncio.sleep(self.seconds)
        if lost or any(start <= self._clock() < end for start, end in self.cuts):
            await asyncio.sleep(1e6 if self._hangs else 0.0)
            raise StoreDown("the line is cut")


class Told(NamedTuple):
    """What a worker told its observer."""

    at: float
    worker: str
    kind: str
    details: dict[str, Any]


class Did(NamedTuple):
    """What a job has done outside: an effect of a step, and by which claim."""

    at: float
    worker: str
    what: Any
    fence: int


class Worker(NamedTuple):
    """A process that serves."""

    manager: RunManager
    serving: asyncio.Task[Any]
    process: Process
    line: Line


class Floor:
    """One store, its workers, and what they did; `ann` is the owner of every run."""

    def __init__(self, policy: RunPolicy = POLICY) -> None:
        self.clock = asyncio.get_running_loop().time
        self.policy = policy
        self.store: RunStore = virtual_run_store(self.clock, call=Line(seconds=0.0))
        self.jobs: dict[str, Job] = {"count": self.count, "ask": self.ask}
        self.told: list[Told] = []
        self.did: list[Did] = []
        self.closed: list[str] = []  # the workers whose jobs ran their clean-up, in this order
        self.workers: list[Worker] = []
        self._runs = 0

    async def count(self, work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
        """Three steps of `given` seconds each, one by default; each begins with an effect."""
        try:
            for number in range(work.run.checkpoint or 0, 3):
                self.does(work, number)
                await asyncio.sleep(1.0 if work.run.given is None else work.run.given)
                yield Step("count", {"number": number}, number + 1)
            yield Done("counted")
        finally:
            self.closed.append(work.run.worker or "")

    async def ask(self, work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
        """A step, a question, a step that uses the answer."""
        self.does(work, work.run.answer)
        if work.run.checkpoint is None:
            yield Step("first", {}, "asking")
        if work.run.checkpoint != "asked":
            yield Ask("how many?", "asked")
        await asyncio.sleep(1.0)
        yield Step("second", {"answer": work.run.answer}, "asked")
        yield Done(work.run.answer)

    def does(self, work: Work, what: Any) -> None:
        """Note an effect."""
        self.did.append(Did(self.clock(), work.run.worker or "", what, work.fence))

    def worker(
        self,
        name: str,
        line: Line | None = None,
        *,
        jobs: Mapping[str, Job] | None = None,
        policy: RunPolicy | None = None,
        deaf: bool = False,
    ) -> Worker:
        """One that serves from now on; a `deaf` one hears no news, and looks now and then."""

        def tell(kind: str, **details: Any) -> None:
            self.told.append(Told(self.clock(), name, kind, details))

        line = line or Line()
        store = self.store.through(line)
        if not deaf:
            store.news = self.store.news
        manager = RunManager(
            store,
            self.jobs if jobs is None else jobs,
            worker=name,
            policy=policy or self.policy,
            observe=tell,
        )
        process = Process(name, tell)
        worker = Worker(manager, process.start(manager.serve()), process, line)
        self.workers.append(worker)
        return worker

    async def submit(self, job: str = "count", given: Any = None, *, model: str = "") -> AgentRun:
        """A new run of Ann's."""
        self._runs += 1
        name = f"run-{self._runs:02}"
        return await self.store.submit(job, given, owner=ANN, model=model, run_id=name)

    async def struck(
        self, job: str = "count", *, at: float, frozen: float | None = None
    ) -> AgentRun:
        """A run whose worker "a" is killed then, or frozen for so long; then "b" comes."""
        worker = self.worker("a")
        run = await self.submit(job)
        await self.at(at)
        if frozen is None:
            worker.process.kill()
        else:
            worker.process.freeze(frozen)
        self.worker("b")
        return run

    async def get(self, run: AgentRun) -> AgentRun:
        """As it is now."""
        return await self.store.get(run.run_id, ANN)

    async def until(self, run: AgentRun, *states: str, within: float = 300.0) -> AgentRun:
        """Wait for it to be in one of `states`, or to have ended."""
        async with asyncio.timeout(within):
            while True:
                seen = self.store.news.seen(about(run.run_id))
                now = await self.get(run)
                if now.status in (states or ENDED):
                    return now
                await self.store.news.after(about(run.run_id), seen, timeout=1.0)  # some are deaf

    async def when(self, so: Callable[[], object]) -> None:
        """Wait until it is so, a hundred seconds at most."""
        for _ in range(10_000):
            if so():
                return
            await asyncio.sleep(0.01)
        raise TimeoutError("it is not so")

    async def at(self, seconds: float) -> None:
        """Wait for that time."""
        await asyncio.sleep(max(0.0, seconds - self.clock()))

    async def events(self, run: AgentRun) -> list[RunEvent]:
        """All of them."""
        return await self.store.events(run.run_id, ANN)

    async def types(self, run: AgentRun) -> list[str]:
        """Their types in order; their numbers are 1, 2, 3 and so on, as they must be."""
        events = await self.events(run)
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        return [event.type for event in events]

    def kinds(self, worker: str = "") -> list[str]:
        """What was told, by all or by one."""
        return [told.kind for told in self.told if worker in ("", told.worker)]

    def times(self, kind: str, worker: str = "") -> list[float]:
        """When it was told."""
        return [t.at for t in self.told if t.kind == kind and worker in ("", t.worker)]

    async def leave(self) -> None:
        """Shut down whoever still serves."""
        alive = [worker for worker in self.workers if worker.process.alive]
        for worker in alive:
            await worker.manager.shutdown()
        for worker in alive:
            await asyncio.wait([worker.serving])


STARTED = ["run_created", "run_started"]
COUNTED = [*STARTED, "node_finished", "node_finished", "node_finished", "run_completed"]


def on_floor(program: Callable[[Floor], Awaitable[Answer]], policy: RunPolicy = POLICY) -> Answer:
    """Run `program` on a floor of its own, to the end of its workers; what it returns."""
    floors: list[Floor] = []

    async def whole() -> Answer:
        floors.append(Floor(policy))
        answer = await program(floors[0])
        await floors[0].leave()
        return answer

    try:
        found: Answer = virtually(whole())
        return found
    finally:
        for floor in floors:
            floor.store.close()
