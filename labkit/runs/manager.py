"""Drives agent runs: claims those that wait, works on several at a time, and lets go in order.

Rules: a run is claimed only when there is room for it; the lease of each is renewed beside the
work, not between its steps; at a shutdown nothing new is claimed and each run goes back to the
queue. The watchdog is a look, now and then, for runs whose lease is over: whoever died held one.

    manager = RunManager(store, {"order": order}, worker="worker-1", policy=RunPolicy())
    serving = asyncio.create_task(manager.serve())
    run = await manager.submit("order", {"order": 7}, owner=owner)      # returns at once
    await manager.shutdown()
"""

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from labkit.recovery.cancel import stop, to_the_end
from labkit.recovery.errors import PolicyError
from labkit.recovery.policy import no_amounts
from labkit.recovery.renewal import Renewal, while_held
from labkit.recovery.retry import Observe
from labkit.recovery.run_states import LeaseLost, RunError
from labkit.recovery.stream.record import Owner
from labkit.stores.errors import StoreDown

from .driving import LOST, Driving
from .job import Done, Job, Work
from .news import TO_DO
from .record import AgentRun, Held, must_name
from .store import RunStore

LEAST: Final = 0.01  # seconds: what is shorter is over before it is heard of
NO_PROGRESS: Final = "it was started so often that no step was done: see what ends its workers"


class TooManyStarts(RunError):
    """A run was claimed again and again, and none of its steps was done: look why, then retry."""


class UnknownJob(RunError, LookupError):
    """No worker here does such a job: name one of those in the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPolicy:
    """How a worker keeps its runs. Times in seconds.

    `lease`: how long a claim outlives its worker; it is renewed at a third. `watchdog`: between two
    looks for runs that nobody works on. `capacity`: runs at a time. `clean_up`: for a job to end
    when it must. `starts`: how many claims of a run may come to nothing: it may be what kills its
    workers. Raises `PolicyError` that names each wrong field.
    """

    lease: float = 30.0
    watchdog: float = 5.0
    capacity: int = 4
    clean_up: float = 5.0
    starts: int = 20

    def __post_init__(self) -> None:
        above = ("lease", "watchdog", "capacity", "starts")
        if wrong := no_amounts(self, whole=("capacity", "starts"), above_0=above):
            raise PolicyError("; ".join(wrong))
        if self.lease < LEAST:
            raise PolicyError(f"lease is {self.lease!r}, and must be at least {LEAST} s")


def new_worker() -> str:
    """A name that no other process has, not this one after a restart either."""
    return f"{os.getpid()}-{uuid.uuid4().hex[:8]}"


class RunManager:
    """Does the runs whose job is among `jobs`, as `worker`, a name that no other manager has.

    `observe(kind, **details)` is told of each claim and each step, with the run's id. Raises
    `PolicyError` for what is none of these.
    """

    def __init__(
        self,
        store: RunStore,
        jobs: Mapping[str, Job],
        *,
        worker: str,
        policy: RunPolicy,
        observe: Observe = lambda kind, **details: None,
    ) -> None:
        must_name(worker)
        if not isinstance(jobs, Mapping):
            raise PolicyError(f"jobs is {jobs!r:.60}, and must be a dict of each job by its name")
        if not isinstance(policy, RunPolicy):
            raise PolicyError(f"policy is {policy!r:.60}, and must be a RunPolicy(...)")
        self.store = store
        self.jobs = jobs
        self.worker = worker
        self.policy = policy
        self._observe = partial(_told, observe)
        self._driven: dict[str, asyncio.Task[str]] = {}
        self._fresh: dict[str, Held] = {}  # claimed, and the work has not begun
        self._closing = False
        self._claiming = asyncio.Lock()

    @property
    def at_work(self) -> int:
        """On how many runs it works."""
        return len(self._driven)

    async def submit(
        self, job: str, given: Any = None, *, owner: Owner, model: str = "", run_id: str = ""
    ) -> AgentRun:
        """Accept a run and return at once. Raises `UnknownJob`.

        With a `run_id` of your own it can be asked for again after a lost answer: `RunExists`.
        """
        if job not in tuple(self.jobs):
            raise UnknownJob(f"no job {job!r:.60}; there is: {', '.join(self.jobs)}")
        return await self.store.submit(job, given, owner=owner, model=model, run_id=run_id)

    async def cancel(self, run_id: str, owner: Owner) -> AgentRun:
        """End a run for good, and its work here too. Raises `UnknownRun` or `IllegalMove`."""
        run = await self.store.cancel(run_id, owner)
        if run_id in self._driven:
            await stop(self._driven[run_id])
        return run

    async def serve(self) -> None:
        """Do runs until `shutdown`; a cancel leaves after one."""
        try:
            while not self._closing:
                seen = self.store.news.seen(TO_DO)
                if not await to_the_end(self._claimed(), name="claim"):
                    await self.store.news.after(TO_DO, seen, timeout=self.policy.watchdog)
        finally:
            await to_the_end(self.shutdown(), name="shut down")

    async def shutdown(self) -> None:
        """Claim nothing more, and hand every run back, so that others go on at once."""
        self._closing = True
        self.store.news.wake(TO_DO)
        with suppress(TimeoutError):  # a claim that is under way is handed back like all others
            async with asyncio.timeout(self.policy.clean_up), self._claiming:
                pass
        for task in (driven := tuple(self._driven.values())):
            task.cancel()
        if driven:
            await asyncio.wait(driven)
        for held in self._fresh.values():
            await self._hand_back(held)

    async def _hand_back(self, held: Held) -> None:
        with suppress(LeaseLost, StoreDown):
            await self.store.hand_back(held)

    async def _claimed(self) -> bool:
        """Begin one more run; a shutdown waits for that."""
        if self._closing:
            return False
        async with self._claiming:
            return await self._started()

    async def _started(self) -> bool:
        """Claim the oldest run that waits and begin to work on it; whether there was one."""
        if self.at_work >= self.policy.capacity:
            return False
        began = asyncio.get_running_loop().time()  # the lease counts from before it was asked for
        try:
            held = await self.store.claim(
                self.worker, length=self.policy.lease, jobs=tuple(self.jobs)
            )
        except StoreDown as error:
            self._observe("not_claimed", error=type(error).__name__)
            return False
        if held is None:
            return False
        run_id = held.run.run_id
        self._observe("claimed", run=run_id, fence=held.lease.fence, seq=held.run.seq)
        if self._closing:
            await self._hand_back(held)
            return False
        self._fresh[run_id] = held
        task = asyncio.create_task(self._drive(held, began), name=f"drive {run_id}")
        self._driven[run_id] = task
        task.add_done_callback(partial(self._ended, run_id))
        return True

    async def _drive(self, held: Held, began: float) -> str:
        """Work on a run while its lease is renewed beside it; how that ended."""
        run = held.run
        del self._fresh[run.run_id]
        tell = partial(self._observe, run=run.run_id, fence=held.lease.fence)
        renewal = Renewal(
            partial(self.store.renew, held), length=held.lease.length, since=began, observe=tell
        )
        driving = Driving(self.store, held, renewal, tell, ending=_cancelled_here())
        job = self.jobs[run.job] if run.starts <= self.policy.starts else _gives_up
        work = await while_held(
            driving.work(job), renewal, name=f"run {run.run_id}", clean_up=self.policy.clean_up
        )
        ended = LOST if not work.done() or work.cancelled() else work.result()
        tell("driven", ended=ended)
        return ended

    def _ended(self, run_id: str, task: asyncio.Task[str]) -> None:
        if self._driven.get(run_id) is task:
            del self._driven[run_id]
        if not task.cancelled() and (error := task.exception()):
            self._observe("broken", run=run_id, error=type(error).__name__)
        self.store.news.wake(TO_DO)  # there is room for another


def _told(observe: Observe, kind: str, /, **details: Any) -> None:
    """Tell it; what becomes of a run does not hang on who listens."""
    with suppress(Exception):
        observe(kind, **details)


async def _gives_up(work: Work) -> AsyncGenerator[Done, None]:
    """What is done with a run that has ended too many workers."""
    if work.run.starts:
        raise TooManyStarts(NO_PROGRESS)
    yield Done()


def _cancelled_here() -> Callable[[], bool]:
    """Whether the task that asks now has been cancelled since."""
    task = asyncio.current_task()
    return lambda: task is not None and task.cancelling() > 0
