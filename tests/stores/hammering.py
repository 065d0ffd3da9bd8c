"""Programs that hammer the same keys while some are killed and some are stopped past their lease.

    told = asyncio.run(Hammering(url, ledger_file, "askable", seed=1).run())
    told.killed, told.stopped, told.outcomes

Who is struck, and when, follows from what the programs say, never from the time: at each window the
second, fifth, eighth ... who comes is killed there; others are killed wherever they are, when so
many lines have been heard in all; the third who comes is stopped until another has settled its key.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from labkit.recovery import outcomes
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import SUCCEEDED, KeyRecord
from labkit.recovery.outcomes import Outcome
from labkit.stores import open_key_store

from .hammer import END, POLICY, TENANT, WINDOWS, budget, operations
from .hammer_ledger import Ledger, LedgerService

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = 8
STOPPED_AT = WINDOWS[:3]


@dataclass
class Told:
    """What came of it.

    `killed` counts by window, "anywhere" among them; `struck`: the keys of those that were killed
    at a window, `stopped`: the key of the one that was stopped there.
    """

    killed: Counter[str] = field(default_factory=Counter)
    struck: dict[str, set[str]] = field(default_factory=dict)
    stopped: dict[str, str] = field(default_factory=dict)
    outcomes: list[dict[str, Any]] = field(default_factory=list)
    effects: Counter[str] = field(default_factory=Counter)
    records: list[KeyRecord] = field(default_factory=list)
    fresh: list[Outcome] = field(default_factory=list)

    @property
    def duplicates(self) -> int:
        """Effects beyond the first of their key."""
        return sum(count - 1 for count in self.effects.values())

    @property
    def handed_over(self) -> set[str]:
        """Keys that wait for a person."""
        return {record.key for record in self.records if record.handed_over}

    @property
    def stuck(self) -> list[str]:
        """Keys that are neither final nor handed over, or that a fresh executor did not answer."""
        held = [r.key for r in self.records if r.state != SUCCEEDED and not r.handed_over]
        answers = (outcomes.REUSED, outcomes.MANUAL)
        return held + [o.digest for o in self.fresh if o.status not in answers or o.attempts]


class Hammering:
    """One storm over `keys` keys; at each window `kills` are killed, and `anywhere` elsewhere."""

    def __init__(
        self,
        url: str,
        ledger: Path,
        service: str,
        *,
        seed: int,
        keys: int = 40,
        kills: int = 5,
        anywhere: int = 20,
    ) -> None:
        self._url = url
        self._ledger = Ledger(ledger)
        self._arguments = (url, str(ledger), service)
        self._service = service
        self._operations = operations(keys)
        self._random = Random(seed)
        self._kills = {2 + 3 * n for n in range(kills)}
        self._anywhere = set(self._random.sample(range(20, 20 + PROGRAMS * keys), anywhere))
        self._heard = 0
        self._arrived: Counter[str] = Counter()
        self._free: list[Process] = []  # neither stopped nor struck
        self._doomed: dict[Process, str] = {}
        self._stopped: dict[str, Process] = {}
        self._told = Told()

    async def run(self) -> Told:
        """Until every program has come to its end, however often it was killed."""
        async with asyncio.TaskGroup() as programs:
            for slot in range(PROGRAMS):
                programs.create_task(self._to_its_end(slot))
        await self._looked_at()
        return self._told

    async def _to_its_end(self, slot: int) -> None:
        life = 0
        while await self._killed(f"program-{slot}.{life}"):
            life += 1

    async def _killed(self, owner: str) -> bool:
        """Run a program; whether it was killed."""
        seed = str(self._random.random())
        given = (*self._arguments, owner, str(len(self._operations)), seed)
        line = (sys.executable, "-m", "tests.stores.hammer", *given)
        process = await asyncio.create_subprocess_exec(*line, stdin=PIPE, stdout=PIPE, cwd=ROOT)
        self._free.append(process)
        try:
            assert process.stdout is not None
            async for said in process.stdout:
                self._hear(process, json.loads(said))
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        where = self._doomed.pop(process, "")
        assert code == (-signal.SIGKILL if where else 0), f"{owner} ended with {code}"
        self._told.killed.update([where] if where else [])
        return bool(where)

    def _hear(self, process: Process, said: dict[str, Any]) -> None:
        self._heard += 1
        if "at" not in said:
            self._told.outcomes.append(said)
            if said["status"] != outcomes.DEDUPLICATED or said["result"]:
                self._wake(said["key"])
        elif process not in self._doomed:
            self._strike(process, said["at"], said["key"])
        if self._heard in self._anywhere:
            self._kill(self._random.choice(self._free), "anywhere")

    def _strike(self, process: Process, window: str, key: str) -> None:
        """Kill who has come to this window, or stop it, or let it go on."""
        self._arrived[window] += 1
        if window in WINDOWS and self._arrived[window] in self._kills:
            self._told.struck.setdefault(window, set()).add(key)
            self._kill(process, window)
            return
        due = window in STOPPED_AT and window not in self._told.stopped
        if due and self._arrived[window] >= 3 and key not in self._stopped:
            process.send_signal(signal.SIGSTOP)
            self._told.stopped[window] = key
            self._stopped[key] = process
        if window == END or self._stopped.get(key) is process:
            self._free.remove(process)
        assert process.stdin is not None
        process.stdin.write(b"go on\n")

    def _kill(self, process: Process, where: str) -> None:
        process.kill()
        self._free.remove(process)
        self._doomed[process] = where

    def _wake(self, key: str) -> None:
        """Somebody has settled the key: whoever was stopped on it goes on as if nothing was."""
        if process := self._stopped.pop(key, None):
            process.send_signal(signal.SIGCONT)
            self._free.append(process)

    async def _looked_at(self) -> None:
        """The ledger, the records, and what a fresh executor is answered, all at the end."""
        self._told.effects = Counter(key for key, _ in self._ledger.effects())
        keys = open_key_store(self._url)
        service = LedgerService(self._service, self._ledger, "fresh", _never)
        fresh = Executor(keys, owner="fresh", policy=POLICY, random=Random(0))
        for operation in self._operations:
            record, _ = await keys.read(TENANT, operation.sent)
            assert record is not None
            self._told.records.append(record)
            told = await fresh.execute(operation, service, budget(), tenant=TENANT)
            self._told.fresh.append(told)
        keys.close()


async def _never(window: str, key: str) -> None:
    raise AssertionError(f"a fresh executor came to {window!r} of {key}")
