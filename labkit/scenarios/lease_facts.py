"""What happened to a run that is held by a lease: the answers behind the table of that lesson.

As in `facts`: an answer out of the table's list, and the index of the event that decided it. "The
blow" is what first happens to a worker, or else its first claim.

    run = simulate("leases.frozen")
    next_write(run.trace).answer      # 'it is refused'
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from labkit.recovery.run_states import COMPLETED, QUEUED
from labkit.simulation import Event

from .facts import Fact

_BLOWS: Final = ("killed", "frozen", "cut")


def finished_by(events: Sequence[Event]) -> Fact:
    """Who wrote that the run is completed, and under which claim."""
    done = (e for e in events if e.actor == "store" and e.get("status") == COMPLETED)
    if end := next(done, None):
        return Fact(f"{end['by']}, with fence {end['fence']}", end.index)
    return Fact("nobody", events[-1].index)


def next_claim(events: Sequence[Event]) -> Fact:
    """When another worker got the run, after the blow."""
    first, blow = _first(events), _blow(events)
    claims = (e for e in _told(events[blow.index :]) if e.kind == "claimed")
    claim = next((event for event in claims if event["by"] != first["by"]), None)
    if claim is None:
        return Fact("never", events[-1].index)
    until = [e["until"] for e in _told(events[: blow.index + 1]) if e.get("until")][-1]
    return Fact("at once" if claim.time < until else "when the lease is over", claim.index)


def next_write(events: Sequence[Event]) -> Fact:
    """What came of the first worker's next write, from the blow on; a renewal is none."""
    first = _first(events)
    for event in _told(events[_blow(events).index :]):
        write = event.kind == "wrote" or event.get("move", "renew") != "renew"
        if write and event["by"] == first["by"]:
            told = "it is kept" if event.kind == "wrote" else "it is refused"
            return Fact(told, event.index)
    own = (e for e in events[_blow(events).index :] if e.actor == first["by"])
    stops = (event for event in own if event.kind == "claim_lost")
    return Fact("it never comes", next(stops, events[-1]).index)


def _told(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.actor == "store"]


def _first(events: Sequence[Event]) -> Event:
    return next(event for event in _told(events) if event.kind == "claimed")


def _blow(events: Sequence[Event]) -> Event:
    first = _first(events)
    back = (e for e in events[first.index :] if e.actor == "store" and e.get("status") == QUEUED)
    blows = (event for event in events if event.kind in _BLOWS)
    there = [event for event in (next(back, None), next(blows, None)) if event]
    return min(there, key=lambda event: event.index, default=first)


LEASE_FACTS: Final[Mapping[str, Callable[[Sequence[Event]], Fact]]] = {
    fact.__name__: fact for fact in (finished_by, next_claim, next_write)
}
