"""Where records of streams are kept: the protocol, and what it refuses.

A store is written after each event, so that a process can die anywhere and another go on. It opens
a record to its owner only; a wrong owner and an unknown id get the same answer, since an id can be
guessed. Of two writers who hold the same version, one is refused.
"""

from typing import Protocol

from .record import Owner, StreamError, StreamRun


class UnknownStream(StreamError, LookupError):
    """There is no such record for this owner: check the id, or begin a new answer."""


class StreamExists(StreamError):
    """A record of this id is there already: take another id, or load that one."""


class StaleRecord(StreamError):
    """Somebody else has changed the record since it was loaded: load it again."""


class StreamStore(Protocol):
    """Keeps records; each call is one transaction."""

    def create(self, run: StreamRun) -> StreamRun:
        """Keep a new record, as version 1. Raises `StreamExists`."""
        ...

    def save(self, run: StreamRun) -> StreamRun:
        """Keep a changed record, and return it as the next version.

        Raises `StaleRecord` unless `run` is based on the version that is kept, `UnknownStream`
        where there is none.
        """
        ...

    def load(self, run_id: str, owner: Owner) -> StreamRun:
        """The record as it was saved last. Raises `UnknownStream`, also for a wrong owner."""
        ...


def unknown(run_id: str) -> UnknownStream:
    """The one answer for an id that is not there and for one that is somebody else's."""
    return UnknownStream(f"there is no stream {run_id!r} for this owner")


def stale(run: StreamRun) -> StaleRecord:
    """The answer to a writer who came second."""
    return StaleRecord(f"{run.run_id!r} is newer than version {run.version}: load it again")
