"""Workers that do the same runs while they are killed, and while one is stopped past its lease.

    told = asyncio.run(Storm(url, ledger_file, seed=1).run())
    told.killed, told.stopped, told.duplicates, told.orphans

Who is struck, and when, follows from what the workers say, never from the time: so many lines after
the last kill, one of those that are up is killed, wherever it is; the one that stops at windows is
stopped before an effect or before a write, until another has kept a step of its run.
"""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio.subprocess import Process
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from labkit.recovery.event_log import Entry
from labkit.recovery.run_states import COMPLETED
from labkit.recovery.stream.record import Owner
from labkit.runs.following import RunLog
from labkit.runs.jobs import STEPS
from labkit.runs.opening import open_run_store
from labkit.runs.record import AgentRun, RunEvent
from labkit.runs.store import RunStore
from labkit.services.ledger import Ledger
from labkit.stores.errors import StoreDown

from .storm_worker import WINDOWS
from .workers import COMMAND, SLEEPY, Said, end, go_on, said, start

OWNER = Owner(user="ann", tenant="acme")
LEASE = 1.0
SLEEPER = "sleeper"
QUICK = ("--lease", str(LEASE), "--watchdog", "0.2", "--pause", "0.05", "--until-idle")


@dataclass
class Told:
    """What came of it: the runs and their events as they are kept, and what the readers saw.

    `refused`: late writes and late effects, by their window.
    """

    killed: int = 0
    stopped: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    runs: list[AgentRun] = field(default_factory=list)
    events: dict[str, list[RunEvent]] = field(default_factory=dict)
    seen: dict[str, list[Entry]] = field(default_factory=dict)
    dropped: int = 0
    effects: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def taken_over(self) -> int:
        """Claims beyond the first of each run."""
        return sum(run.fence - 1 for run in self.runs)

    @property
    def duplicates(self) -> int:
        """Effects beyond the first of each key."""
        return sum(count - 1 for count in self.effects.values())

    @property
    def orphans(self) -> int:
        """Runs that have not come to their end."""
        return sum(run.status != COMPLETED for run in self.runs)

    def __str__(self) -> str:
        """One line of figures."""
        return (
            f"{len(self.runs)} runs, {self.killed} kills, {self.stopped} stops past the lease, "
            f"{self.taken_over} take-overs, {self.refused.total()} late writes and effects "
            f"refused, {self.dropped} readers dropped, {self.duplicates} duplicate effects, "
            f"{self.orphans} orphans, {self.seconds:.0f} s"
        )


class Storm:
    """`runs` runs, done by `workers` that are killed `kills` times, and by one that is stopped."""

    def __init__(
        self,
        url: str,
        ledger: Path,
        *,
        seed: int,
        runs: int = 50,
        workers: int = 5,
        kills: int = 100,
        stops: int = 6,
    ) -> None:
        self._url = url
        self._ledger = ledger
        self._random = Random(seed)
        self._sizes = runs, workers
        self._kills = kills
        self._stops = stops
        self._wait = 1  # lines until the next kill
        self._up: list[Process] = []
        self._asleep: tuple[Process, str] | None = None  # and its run
        self._told = Told()

    async def run(self) -> Told:
        """Until every run is completed and every worker has ended, however often it was killed."""
        began = time.monotonic()
        many, workers = self._sizes
        store = open_run_store(self._url)
        try:
            runs = [(await store.submit("order", n, owner=OWNER)).run_id for n in range(many)]
            for run in runs[: self._stops]:  # nobody else has them before it was stopped there
                assert await store.claim(SLEEPER, run_id=run, length=600.0)
            async with asyncio.TaskGroup() as group:
                for number in range(workers):
                    group.create_task(self._replaced(f"worker-{number}"))
                group.create_task(self._sleeper(runs[: self._stops]))
                for run in runs:
                    group.create_task(self._read(store, run))
            self._told.seconds = time.monotonic() - began
            await self._looked_at(store, runs)
        finally:
            store.close()
        return self._told

    # --- workers

    def _line(self, name: str, capacity: int) -> tuple[str, ...]:
        given = ("--store", self._url, "--ledger", str(self._ledger), "--name", name)
        return (*given, *QUICK, "--capacity", str(capacity))

    async def _replaced(self, name: str) -> None:
        """A worker, and another one at once when it is killed."""
        life = 0
        while await self._killed(f"{name}.{life}"):
            life += 1

    async def _killed(self, name: str) -> bool:
        """Run a worker; whether it was killed."""
        process = await start(*COMMAND, *self._line(name, 2))
        try:
            while line := await said(process):
                if line[0] == "serving":
                    self._up.append(process)
                self._hear(process, line)
            code = await process.wait()
        finally:
            await end(process)
        if process in self._up:
            self._up.remove(process)
        assert code in (0, -signal.SIGKILL), f"{name} ended with {code}"
        self._told.killed += code != 0
        return code != 0

    def _hear(self, speaker: Process, line: Said) -> None:
        kind, told = line
        if kind == "refused":
            self._told.refused[told["window"]] += 1
        if kind not in ("claimed", "kept"):
            return
        if (
            kind == "kept"
            and self._asleep
            and self._asleep[1] == told["run"]
            and self._asleep[0] is not speaker
        ):
            self._wake()
        self._wait -= 1
        if self._wait <= 0 and self._kills and self._up:
            self._wait = self._random.randint(1, 3)
            self._kills -= 1
            victim = self._up.pop(self._random.randrange(len(self._up)))
            victim.kill()

    async def _sleeper(self, kept: list[str]) -> None:
        """One that is stopped at its windows, in turn, once in each of these runs."""
        changes = ",".join(["meeting", *(f"run:{run}" for run in kept)])
        process = await start(*SLEEPY, *self._line(SLEEPER, 1), changes=changes)
        try:
            while line := await said(process):
                kind, told = line
                if kind != "at":
                    self._hear(process, line)
                elif (
                    self._told.stopped < self._stops
                    and told["window"] == WINDOWS[self._told.stopped % 2]
                ):
                    process.send_signal(signal.SIGSTOP)
                    self._asleep = process, told["run"]
                    self._told.stopped += 1
                else:
                    go_on(process)
            assert await process.wait() == 0
        finally:
            await end(process)

    def _wake(self) -> None:
        """Another has kept a step of its run: it goes on as if nothing had happened."""
        assert self._asleep is not None
        process, _ = self._asleep
        self._asleep = None
        process.send_signal(signal.SIGCONT)
        go_on(process)

    # --- who looks

    async def _read(self, store: RunStore, run: str) -> None:
        """Follow the run to its end, dropped again and again, and back with the last number."""
        seen = self._told.seen.setdefault(run, [])
        log = RunLog(store, run, OWNER, look=0.3)
        while not await self._followed(log, seen):
            self._told.dropped += 1

    async def _followed(self, log: RunLog, seen: list[Entry]) -> bool:
        """Read a few events; whether that was the end."""
        few = self._random.randint(1, 3)
        cursor = log.cursor(seen[-1].sequence) if seen else ""
        try:
            async with aclosing(log.follow(cursor)) as entries:
                async for entry in entries:
                    assert entry is not None
                    seen.append(entry)
                    few -= 1
                    if not few:
                        return False
        except StoreDown:
            return False
        return True

    async def _looked_at(self, store: RunStore, runs: list[str]) -> None:
        """The runs, their events and the ledger, all at the end."""
        for run in runs:
            self._told.runs.append(await store.get(run, OWNER))
            self._told.events[run] = await store.events(run, OWNER)
        self._told.effects = Counter(key for key, _ in Ledger(self._ledger).effects())


def keys_of(runs: list[AgentRun]) -> set[str]:
    """The keys of all effects that there are to be."""
    return {f"{OWNER.tenant}/{step}/{run.run_id}" for run in runs for step in STEPS}
