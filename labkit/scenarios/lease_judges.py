"""Judges of leases: who may write, against who did, and what nobody does any more.

They read what the store told of each claim, renewal and write, and the runs that are left.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from labkit.recovery.run_states import QUEUED, RUNNING
from labkit.simulation import Event, Finding, Judge

from .effect_judges import effect_repeated
from .session_judges import left

AWAY: Final = ("killed", "frozen", "cut", "claim_lost")


class Holder(NamedTuple):
    """Whose a run is by its newest claim, and until when."""

    worker: str
    until: float


def double_claim(events: Sequence[Event]) -> Iterator[Finding]:
    """A run was given to a worker while it was another's."""
    for event, before in _holders(events):
        lasts = before and before.worker != event["by"] and event.time < before.until
        if event.kind == "claimed" and lasts:
            cure = "claim by one UPDATE that names what must be so, and look at its row count"
            yield Finding("double_claim", event.index, cure)


def zombie_write(events: Sequence[Event]) -> Iterator[Finding]:
    """A worker wrote to a run that was another's by then."""
    workers = {
        event["by"] for event in events if event.actor == "store" and event.kind == "claimed"
    }
    for event, before in _holders(events):
        others = before and before.worker != event["by"]
        if event.kind == "wrote" and event["by"] in workers and others:
            cure = "let each write name the fence of its claim, which has risen by then"
            yield Finding("zombie_write", event.index, cure)


def false_takeover(events: Sequence[Event]) -> Iterator[Finding]:
    """A run was taken over from a worker that was at work on it and could reach the store."""
    for event, before in taken_over(events):
        over = event.time >= before.until
        if over and not _away(events[: event.index], before.worker):
            cure = "renew the lease beside the work, not between its steps"
            yield Finding("false_takeover", event.index, cure)


def orphan_run(events: Sequence[Event]) -> Iterator[Finding]:
    """A run waits, or is called running, and nobody works on it."""
    for event, runs in left(events):
        for kept in runs.values():
            held = kept["worker"] is not None and kept["until"] > event.time
            if kept["status"] in (QUEUED, RUNNING) and not held:
                cure = "let each worker look, now and then, for runs whose lease is over"
                yield Finding("orphan_run", event.index, cure)


def taken_over(events: Sequence[Event]) -> list[tuple[Event, Holder]]:
    """Each claim of a run that had not been given back, with whose it was before."""
    return [(e, before) for e, before in _holders(events) if e.kind == "claimed" and before]


def _away(events: Sequence[Event], worker: str) -> bool:
    """Whether a worker was not at work by the last of `events`: dead, cut off, or it had let go.

    One that was is back when the store has taken something from it.
    """
    away = False
    for event in events:
        if event.actor == worker and event.kind in AWAY:
            away = True
        elif event.actor == "store" and event["by"] == worker and event.kind != "refused":
            away = False
    return away


def _holders(events: Sequence[Event]) -> Iterator[tuple[Event, Holder | None]]:
    """What the store told, each with whose the run was before."""
    holders: dict[str, Holder] = {}
    for event in events:
        if event.actor != "store":
            continue
        run = event["run"]
        yield event, holders.get(run)
        if event.kind == "claimed" or (event.kind == "renewed" and run in holders):
            holders[run] = Holder(event["by"], event["until"])
        elif event.kind == "wrote" and event["status"] != RUNNING:
            holders.pop(run, None)


LEASE_JUDGES: Final[tuple[Judge, ...]] = (
    double_claim,
    zombie_write,
    false_takeover,
    orphan_run,
    effect_repeated,
)
