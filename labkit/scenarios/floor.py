"""The floor of the lessons on leases: several workers, each a process, and one store of runs.

    floor = Floor(None, observe)
    worker = floor.worker("worker-1", RunPolicy(lease=10.0))
    worker.process.kill()
    floor.left()                       # {'run-1': {'status': 'running', 'fence': 1, ...}}

The store is the real one, on a SQLite in memory, with the virtual clock; the line of a worker to it
takes some time, and can be cut. What the store has done is told at that moment, by whom it was
asked, whatever its caller hears.
"""

import asyncio
import math
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final, NamedTuple, TypeVar

import sqlalchemy as sa

from labkit.recovery.errors import ProviderError
from labkit.recovery.run_states import LeaseLost
from labkit.recovery.service import DONE, NOT_DONE, Known, Request
from labkit.recovery.stream.record import Owner
from labkit.runs.conditions import Condition
from labkit.runs.job import Job
from labkit.runs.jobs import Once, jobs
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import virtual_run_store
from labkit.runs.record import AgentRun, Held
from labkit.runs.store import RunStore
from labkit.runs.tables import RUNS, run_of
from labkit.simulation import Observer, Process
from labkit.stores.errors import StoreDown
from labkit.stores.memory import MemoryKeyStore

OWNER: Final = Owner("ann", "acme")
JOB: Final = "order"
LINE: Final = 0.05  # seconds to the store, and back again
GIVES_UP: Final = 1.0  # seconds until a line that is cut says so
Answer = TypeVar("Answer")


class NotedStore(RunStore):
    """The run store as `who` reaches it; it tells what it does, and what it refuses."""

    who: str = "ann"
    note: Callable[..., object] = staticmethod(lambda kind, **data: None)

    def kept(self) -> list[AgentRun]:
        """All runs, at once."""
        with self._engine.begin() as connection:
            return [run_of(row) for row in connection.execute(sa.select(RUNS))]

    def _longer(
        self, held: Held, mine: Condition, connection: sa.Connection
    ) -> sa.Row[tuple[float]] | None:
        row = super()._longer(held, mine, connection)
        told = {"run": held.run.run_id, "by": self.who, "fence": held.lease.fence}
        how = ("renewed", {"until": row.until}) if row else ("refused", {"move": "renew"})
        self._done.append((how[0], told | how[1]))
        return row

    async def _write(self, held: Held, move: str, data: dict[str, Any], /, **changed: Any) -> Held:
        try:
            return await super()._write(held, move, data, **changed)
        except LeaseLost:
            run_id = held.run.run_id
            self.note("refused", run=run_id, by=self.who, fence=held.lease.fence, move=move)
            raise

    def _told(
        self, connection: sa.Connection, row: sa.Row[Any], event: str, data: dict[str, Any]
    ) -> AgentRun:
        kind = "claimed" if event == "run_started" else "wrote"
        told = {"run": row.run_id, "by": self.who, "fence": row.fence, "status": row.status}
        self._done.append((kind, {**told, "event": event, "seq": row.seq, "until": row.until}))
        return super()._told(connection, row, event, data)

    def _commit(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        self._done: list[tuple[str, dict[str, Any]]] = []
        answer = super()._commit(work)
        for kind, told in self._done:  # before the commit it is not so
            self.note(kind, **told)
        return answer


class Line:
    """The way to the store: it takes its time, and can be cut for a while."""

    def __init__(self, note: Callable[..., object]) -> None:
        self._clock = asyncio.get_running_loop().time
        self._note = note
        self._cut = (math.inf, math.inf)

    def cut(self, seconds: float) -> None:
        """Nothing comes through for so long."""
        now = self._clock()
        self._cut = (now, now + seconds)
        self._note("cut", seconds=seconds)

    async def __call__(self, work: Callable[[], Answer]) -> Answer:
        """Do it there, and bring the answer back."""
        await asyncio.sleep(LINE)
        begins, ends = self._cut
        if begins <= self._clock() < ends:
            await asyncio.sleep(min(GIVES_UP, ends - self._clock()))
            raise StoreDown("nobody answers")
        answer = work()
        await asyncio.sleep(LINE)
        return answer


class Warehouse:
    """What has the effects: no part of a worker, so it goes on when whoever asked is gone.

    It keeps what `Service` promises: after its "not done" no earlier try is done, and none of an
    older claim on the key.
    """

    atomic = False
    cancels = False
    remembers = math.inf

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self._done: dict[str, str] = {}
        self._closed: dict[str, tuple[int, int]] = {}  # the newest fence, and try, that counts

    async def perform(self, request: Request) -> str:
        """Do a step of an order; each request has its effect."""
        work = asyncio.create_task(self._do(request), name="warehouse", context=Context())
        return await asyncio.shield(work)

    async def _do(self, request: Request) -> str:
        await asyncio.sleep(LINE)
        if (request.fence, request.attempt) <= self._closed.get(request.key, (0, 0)):
            raise ProviderError("an older claim", kind="permission")
        self._close(request.key, request.fence, request.attempt - 1)
        step, given = request.payload["step"], request.payload["given"]
        what = request.key.partition("#")[0]
        self._observe.effect(step, **{"order": what, **given})
        result = self._done[request.key] = f"{step} done"
        await asyncio.sleep(LINE)
        return result

    async def look_up(self, request: Request) -> Known:
        """What became of it."""
        await asyncio.sleep(LINE)
        self._close(request.key, request.fence, request.attempt)
        result = self._done.get(request.key)
        return Known(DONE, result) if result else Known(NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        """What became of it: nothing can be called off."""
        return await self.look_up(request)

    def _close(self, key: str, fence: int, attempt: int) -> None:
        self._closed[key] = max(self._closed.get(key, (0, 0)), (fence, attempt))


class Worker(NamedTuple):
    """One worker: its process, its line to the store, its manager, and the task that serves."""

    process: Process
    line: Line
    manager: RunManager
    serving: asyncio.Task[None]


class Asked:
    """Has the effect of a step by simply asking for it, as often as the step is done."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse

    async def __call__(
        self, run: AgentRun, step: str, *, thing: str = "", given: Any = None
    ) -> str:
        """The receipt."""
        payload = {"step": step, "given": run.given if given is None else given}
        key = f"{run.run_id}/{step}/{thing}#{run.fence}"  # which tells no repeat
        return await self._warehouse.perform(Request(key, payload, run.fence, 1))

    async def begun(self, run: AgentRun, step: str, *, thing: str = "") -> bool:
        """Nobody has kept that."""
        return False


class Floor:
    """The store, the warehouse and the workers of one simulation.

    `store`: the class in use, careful or naive. `keyed`: whether effects go through an executor
    with a key. `seconds`: what each step takes before its effect.
    """

    def __init__(
        self,
        script: object,
        observe: Observer,
        *,
        store: type[NotedStore] = NotedStore,
        keyed: bool = True,
        seconds: float = 2.0,
    ) -> None:
        self.observe = observe
        self.clock = asyncio.get_running_loop().time
        self.store = virtual_run_store(self.clock, call=Line(observe), kind=store)
        self.store.note = observe.of("store")
        self.workers: dict[str, Worker] = {}
        self._left: dict[str, Any] | None = None
        self._keys = MemoryKeyStore(self.clock)
        self._warehouse = Warehouse(observe)
        self._keyed, self._seconds = keyed, seconds

    def worker(self, name: str, policy: RunPolicy) -> Worker:
        """One more worker, at work from now on."""
        observe = self.observe.of(name)
        line = Line(observe)
        store = self.store.through(line)
        store.who = name
        manager = RunManager(
            store,
            self._jobs(name, policy, observe),
            worker=name,
            policy=policy,
            observe=observe,
        )
        process = Process(name, observe)
        worker = Worker(process, line, manager, process.start(manager.serve()))
        self.workers[name] = worker
        return worker

    def _jobs(self, name: str, policy: RunPolicy, observe: Observer) -> dict[str, Job]:
        """What its workers can do."""
        return jobs(self._once(name, policy, observe), pause=self._seconds)

    def _once(self, name: str, policy: RunPolicy, observe: Observer) -> Any:
        """What has the effect of a step: by its key, or simply by asking for it."""
        if not self._keyed:
            return Asked(self._warehouse)
        how: Any = {"worker": name, "lease": policy.lease, "observe": observe}
        return Once(self._keys, self._warehouse, random=self.observe.random, **how)

    def left(self) -> dict[str, Any]:
        """The runs as they are stored, by id."""
        if self._left is not None:
            return self._left
        return {run.run_id: plain(run) for run in self.store.kept()}

    async def end(self) -> None:
        """Let go of the database; what was in it is still told."""
        self._left = self.left()
        self.store.close()


def plain(run: AgentRun) -> dict[str, Any]:
    """A run for the trace."""
    names = ("status", "worker", "fence", "seq", "until")
    return {name: getattr(run, name) for name in names}
