"""Runs claimed and finished in a second, beside two job queues; and how soon a killed one goes on.

The queues are no part of the environment: where one is missing, a row says how to install it.
Each of them has two rows: its claim and its finish called for one job after the other, as labkit's
are called here; and its own worker as it comes.
"""

import asyncio
import sqlite3
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any, Final

from labkit.recovery.run_states import COMPLETED
from labkit.recovery.stream.record import Owner
from labkit.runs.opening import open_run_store
from labkit.stores.opening import BUSY
from tests.runs.workers import workers
from tests.stores.postgres import new_schema, serving

from .table import Measure, Row

JOBS: Final = 2_000  # put in before a measure begins
WORKERS: Final = (1, 4)  # tasks of this one process
ROUNDS: Final = 2
LEASE: Final = 30.0  # seconds: longer than any measure, and what pgqueuer takes
LEASES: Final = (0.5, 1.0, 2.0, 4.0)
WATCH: Final = 10  # a worker looks for runs so often in the time of a lease
Drain = Callable[[str, int], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Peer:
    """A job queue: how it is emptied, the modules that this needs, and the package to install."""

    name: str
    drain: Drain
    modules: tuple[str, ...]
    package: str

    @property
    def there(self) -> bool:
        """Whether it can be measured here."""
        return all(map(find_spec, self.modules))


def on_sqlite() -> Iterator[Row]:
    """Runs finished by so many workers, beside the two updates that each of them needs."""
    with tempfile.TemporaryDirectory() as folder:
        files = (f"sqlite:///{Path(folder, f'{number}.db')}" for number in count())
        for workers in WORKERS:
            mine, bare = _best(lambda: next(files), workers, ours, bare_updates)
            what, peer = _what("SQLite", workers), "bare updates of sqlite3"
            yield Row(what=what, value=mine, unit="/s", peer=peer, beside=bare)


def on_postgresql() -> Iterator[Row]:
    """Runs finished by so many workers, beside the job queues that are installed."""
    there = [peer for peer in PEERS if peer.there]
    missing = " ".join(dict.fromkeys(peer.package for peer in PEERS if not peer.there))
    with serving() as url:
        for workers in WORKERS:
            drains = [ours, *(peer.drain for peer in there)]
            mine, *theirs = _best(lambda: new_schema(url), workers, *drains)
            what = _what("PostgreSQL", workers)
            for peer, speed in zip(there, theirs, strict=True):
                yield Row(what=what, value=mine, unit="/s", peer=peer.name, beside=speed)
            if missing:  # told in the last column that such a row has
                unit = f"/s; for its peers: pip install {missing}"
                yield Row(what=what, value=mine, unit=unit)


async def ours(url: str, workers: int) -> float:
    """The store of runs: each claim and each finish with its event."""
    owner = Owner(user="ana", tenant="bench")
    with closing(open_run_store(url)) as store:
        for _ in range(JOBS):
            await store.submit("noop", owner=owner)

        async def work(name: str) -> None:
            while held := await store.claim(name, length=LEASE):
                await store.finish(held, None)

        async def finished() -> int:
            runs = await store.runs(owner, most=JOBS)
            return sum(run.status == COMPLETED for run in runs)

        return await _speed(finished, *(work(f"worker-{n}") for n in range(workers)))


async def bare_updates(url: str, workers: int) -> float:
    """An update that claims a job of a known number, and one that finishes it."""
    claim = "UPDATE jobs SET state = 'running', owner = ? WHERE id = ? AND state = 'queued'"
    finish = "UPDATE jobs SET state = 'completed' WHERE owner = ? AND id = ? AND state = 'running'"
    numbers = iter(range(JOBS))
    with ExitStack() as open_ones:
        opened = [open_ones.enter_context(closing(_sqlite(url))) for _ in range(workers)]
        opened[0].execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, state TEXT, owner TEXT)")
        with opened[0]:
            opened[0].execute("BEGIN")
            jobs = ((number, "queued", "") for number in range(JOBS))
            opened[0].executemany("INSERT INTO jobs VALUES (?, ?, ?)", jobs)

        async def work(connection: sqlite3.Connection) -> None:
            for number in numbers:
                for change in (claim, finish):
                    await asyncio.to_thread(connection.execute, change, ("worker", number))

        async def finished() -> int:
            query = "SELECT count(*) FROM jobs WHERE state = 'completed'"
            return int(opened[0].execute(query).fetchone()[0])

        return await _speed(finished, *map(work, opened))


async def procrastinate_calls(url: str, workers: int) -> float:
    """procrastinate's claim and finish."""
    from procrastinate.jobs import Status

    async with _procrastinate(url) as app:
        jobs = app.job_manager

        async def work() -> None:
            worker = await jobs.register_worker()
            while job := await jobs.fetch_job(queues=None, worker_id=worker):
                await jobs.finish_job(job, Status.SUCCEEDED, delete_job=False)

        return await _speed(lambda: _succeeded(app), *(work() for _ in range(workers)))


async def procrastinate_worker(url: str, workers: int) -> float:
    """One worker of procrastinate with so many jobs at once; it claims each alone."""
    async with _procrastinate(url) as app:
        worker = app.run_worker_async(
            wait=False, concurrency=workers, install_signal_handlers=False
        )
        return await _speed(lambda: _succeeded(app), worker)


async def pgqueuer_calls(url: str, workers: int) -> float:
    """pgqueuer's claim and finish, a batch being one job."""
    from pgqueuer.ports.repository import EntrypointExecutionParameter

    entries = {"noop": EntrypointExecutionParameter(concurrency_limit=0)}
    length = timedelta(seconds=LEASE)

    async def work(queue: Any) -> None:
        worker = uuid.uuid4()
        while jobs := await queue.dequeue(1, entries, worker, None, length):
            await queue.log_jobs([(job, "successful", None) for job in jobs])

    return await _pgqueuer(url, workers, work)


async def pgqueuer_workers(url: str, workers: int) -> float:
    """So many workers of pgqueuer, each with a connection; a batch is ten jobs."""
    from pgqueuer.qm import QueueManager
    from pgqueuer.types import QueueExecutionMode

    async def noop(job: Any) -> None:
        """Do nothing."""

    async def work(queue: Any) -> None:
        manager = QueueManager(queue)
        manager.entrypoint("noop")(noop)
        await manager.run(mode=QueueExecutionMode.drain)

    return await _pgqueuer(url, workers, work)


PROCRASTINATE: Final = (("procrastinate",), "procrastinate")
# With psycopg its worker listens and asks on one connection, and one waits for the other.
PGQUEUER: Final = (("pgqueuer", "asyncpg"), "'pgqueuer[asyncpg]'")
PEERS: Final = (
    Peer("procrastinate, its calls", procrastinate_calls, *PROCRASTINATE),
    Peer("procrastinate, its worker", procrastinate_worker, *PROCRASTINATE),
    Peer("pgqueuer, its calls, batch 1", pgqueuer_calls, *PGQUEUER),
    Peer("pgqueuer, its worker, batch 10", pgqueuer_workers, *PGQUEUER),
)


def recovering() -> Iterator[Row]:
    """Seconds from a worker's kill to the next start of its run, beside the length of its lease.

    The lease is renewed at a third, so that two thirds of it are left at least.
    """
    for lease in LEASES:
        seconds = [asyncio.run(_recovered(lease)) for _ in range(ROUNDS)]
        what = f"from a kill to the next start, longest of {ROUNDS}"
        yield Row(
            what=what, value=max(seconds), unit="s", peer="its lease", beside=lease, ratio=-1.3
        )


MEASURES: Final[tuple[Measure, ...]] = (on_sqlite, on_postgresql, recovering)


async def _recovered(lease: float) -> float:
    """One run on SQLite, its worker, and another that waits."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder, 'runs.db')}"
        with closing(open_run_store(url)) as store:
            await store.submit("order", owner=Owner(user="ana", tenant="bench"))
        async with workers(url, Path(folder)) as work:
            options = {"lease": lease, "watchdog": lease / WATCH, "pause": 600}
            first = await work("first", **options)
            await first.says("claimed")
            second = await work("second", **options)
            await second.says("serving")
            first.process.kill()
            began = time.perf_counter()
            await second.says("claimed")
            return time.perf_counter() - began


def _what(database: str, workers: int) -> str:
    return f"runs claimed and finished, {database}, {workers} at once"


def _best(new_url: Callable[[], str], workers: int, *drains: Drain) -> list[float]:
    """The best speed of each; side by side in each round, so that the machine hits them alike."""
    rounds = [[asyncio.run(drain(new_url(), workers)) for drain in drains] for _ in range(ROUNDS)]
    return [max(speeds) for speeds in zip(*rounds, strict=True)]


async def _speed(finished: Callable[[], Awaitable[int]], *works: Awaitable[None]) -> float:
    """Jobs a second while these work side by side; all must be finished, the database says."""
    started = time.perf_counter()
    await asyncio.gather(*works)
    spent = time.perf_counter() - started
    if (done := await finished()) != JOBS:
        raise AssertionError(f"{done} jobs are finished, and {JOBS} were put in")
    return JOBS / spent


def _sqlite(url: str) -> sqlite3.Connection:
    """A connection as the store has them, which any thread may use."""
    file = url.removeprefix("sqlite:///")
    connection = sqlite3.connect(file, BUSY, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@asynccontextmanager
async def _procrastinate(url: str) -> AsyncIterator[Any]:
    """Its app on an empty schema, with the jobs put in."""
    import procrastinate

    connector = procrastinate.PsycopgConnector(conninfo=_plain(url))
    app = procrastinate.App(connector=connector)

    async def noop() -> None:
        """Do nothing."""

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        await app.task(name="noop")(noop).batch_defer_async(*[{}] * JOBS)
        yield app


async def _succeeded(app: Any) -> int:
    return len(list(await app.job_manager.list_jobs_async(status="succeeded")))


async def _pgqueuer(url: str, workers: int, work: Callable[[Any], Awaitable[None]]) -> float:
    """The speed of such workers, each with a connection of its own."""
    import asyncpg
    from pgqueuer.db import AsyncpgDriver
    from pgqueuer.queries import Queries

    connections = [await asyncpg.connect(_plain(url)) for _ in range(workers)]
    queues = [Queries(AsyncpgDriver(connection)) for connection in connections]
    await queues[0].install()
    ids = await queues[0].enqueue(["noop"] * JOBS, [None] * JOBS, [0] * JOBS)

    async def finished() -> int:
        return sum(status == "successful" for _, status in await queues[0].job_status(ids))

    speed = await _speed(finished, *map(work, queues))
    for connection in connections:
        await connection.close()
    return speed


def _plain(url: str) -> str:
    """The URL without SQLAlchemy's word for its driver."""
    return url.replace("+psycopg", "", 1)
