"""Stores of runs that get one thing wrong, for the lessons on leases."""

import asyncio
from contextlib import suppress
from copy import copy
from typing import Any

import sqlalchemy as sa

from labkit.recovery.lease import Lease
from labkit.recovery.run_states import QUEUED, RUNNING
from labkit.runs.conditions import Condition
from labkit.runs.record import Held
from labkit.runs.store import RunStore
from labkit.runs.tables import RUNS
from labkit.stores.errors import StoreDown

from .floor import NotedStore


class ReadsThenWrites(NotedStore):
    """Looks for a run that is free, and then takes it: in between, another does the same."""

    async def claim(self, worker: str, *, length: float, **_: Any) -> Held | None:
        """Two statements, each of them right."""
        free = (RUNS.c.status == QUEUED) | (
            (RUNS.c.status == RUNNING) & (RUNS.c.until <= self._now)
        )
        look = sa.select(RUNS).where(free).order_by(RUNS.c.created).limit(1)
        seen = await self._asked(lambda connection: connection.execute(look).first())
        if seen is None:
            return None
        taken = {"worker": worker, "until": self._now + length, "status": RUNNING}
        change = sa.update(RUNS).where(RUNS.c.run_id == seen.run_id)
        change = change.values(**taken, fence=RUNS.c.fence + 1, seq=RUNS.c.seq + 1)

        def write(connection: sa.Connection) -> Held:
            row = connection.execute(change.returning(RUNS)).one()
            about = {"worker": worker, "fence": row.fence}
            run = self._told(connection, row, "run_started", about)
            return Held(run, Lease(worker, row.fence, row.until, length))

        return await self._changed(write)


class NoFence(NotedStore):
    """Lets whoever once claimed a run write to it, and looks at no number of events."""

    def _mine(self, held: Held) -> Condition:
        return (RUNS.c.run_id == held.run.run_id) & RUNS.c.status.in_([RUNNING, QUEUED])

    async def _write(self, held: Held, move: str, data: dict[str, Any], /, **changed: Any) -> Held:
        now = next(run for run in self.kept() if run.run_id == held.run.run_id)
        return await super()._write(held._replace(run=now), move, data, **changed)


class AnotherClock(NotedStore):
    """Compares the end of a lease with the worker's own clock: that of worker-2 is an hour fast."""

    async def claim(self, worker: str, **how: Any) -> Held | None:
        """By the worker's own clock."""
        clock = asyncio.get_running_loop().time
        own = copy(self)
        if worker == "worker-2":
            own._now = sa.bindparam("own", type_=sa.Double, callable_=lambda: clock() + 3_600.0)
        return await NotedStore.claim(own, worker, **how)


class RenewsWithSteps(NotedStore):
    """Renews the lease whenever a step is kept, and in no other way."""

    async def renew(self, held: Held) -> bool:
        """Say yes."""
        return True

    async def _write(self, held: Held, move: str, data: dict[str, Any], /, **changed: Any) -> Held:
        kept = await super()._write(held, move, data, **changed)
        if kept.run.status == RUNNING:
            await RunStore.renew(self, kept)
        return kept


class NotesErrors(NotedStore):
    """Takes a renewal that failed for one that will do: it was only the network."""

    async def renew(self, held: Held) -> bool:
        """Ask, and say yes whatever comes."""
        with suppress(StoreDown):
            return await super().renew(held)
        return True
