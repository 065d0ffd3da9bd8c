"""Stores that live as long as their process, for simulations and tests."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

from labkit.recovery.idempotency import FAILED, SUCCEEDED, KeyRecord, Seen
from labkit.recovery.stream.record import Owner, StreamRun
from labkit.recovery.stream.store import StreamExists, stale, unknown


class MemoryStreamStore:
    """Keeps records in a dictionary; they are frozen, so nobody can change what is kept."""

    def __init__(self) -> None:
        self._kept: dict[str, StreamRun] = {}

    def create(self, run: StreamRun) -> StreamRun:
        """Keep a new record, as version 1. Raises `StreamExists`."""
        if run.run_id in self._kept:
            raise StreamExists(f"there is a stream {run.run_id!r} already")
        return self._keep(run, 1)

    def save(self, run: StreamRun) -> StreamRun:
        """Keep a changed record; raises `StaleRecord` or `UnknownStream`."""
        if self.load(run.run_id, run.owner).version != run.version:
            raise stale(run)
        return self._keep(run, run.version + 1)

    def load(self, run_id: str, owner: Owner) -> StreamRun:
        """The record as it was saved last; raises `UnknownStream`, also for a wrong owner."""
        run = self._kept.get(run_id)
        if run is None or run.owner != owner:
            raise unknown(run_id)
        return run

    def close(self) -> None:
        """Nothing to close."""

    def _keep(self, run: StreamRun, version: int) -> StreamRun:
        kept = replace(run, version=version, stored_chunks=len(run.chunks))
        self._kept[run.run_id] = kept
        return kept


class MemoryKeyStore:
    """Keeps records of keys in a dictionary; each write takes `writing` seconds."""

    def __init__(self, clock: Callable[[], float] = time.time, *, writing: float = 0.0) -> None:
        self.kept: dict[tuple[str, str], KeyRecord] = {}
        self._clock = clock
        self._writing = writing

    async def read(self, tenant: str, key: str) -> Seen:
        """The record as it is now."""
        return Seen(self.kept.get((tenant, key)), self._clock())

    async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
        """Write `new` if `old` is still what is kept, or if nothing is; whether it was written."""
        if self._writing:
            await asyncio.sleep(self._writing)
        if self.kept.get((new.tenant, new.key)) != old:  # breakpoint: unique key
            return False
        self.kept[new.tenant, new.key] = new
        return True

    async def waiting(self, tenant: str) -> list[KeyRecord]:
        """Those that are handed over, the oldest first."""
        mine = (record for record in self.kept.values() if record.tenant == tenant)
        return sorted((record for record in mine if record.handed_over), key=_handed_over_at)

    async def forget(self) -> int:
        """Delete the final records that have expired, which may run anew; how many there were."""
        now = self._clock()
        gone = [at for at, kept in self.kept.items() if _may_go(kept) and kept.expires <= now]
        for at in gone:
            del self.kept[at]
        return len(gone)

    def close(self) -> None:
        """Nothing to close."""


def _may_go(record: KeyRecord) -> bool:
    return record.state in (SUCCEEDED, FAILED) and not record.handed_over


def _handed_over_at(record: KeyRecord) -> float:
    return record.lease.until
