"""A store that lives as long as its process, for simulations and tests."""

from dataclasses import replace

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
