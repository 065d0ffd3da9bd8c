"""Judges of budgets: how often somebody was asked, how many at once, and how late the answer was.

They read what providers saw, and what the layers said of themselves when they began.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from labkit.simulation import Event, Finding, Judge

CROWD: Final = 10  # retries at one instant that are no coincidence


def retries_multiplied(events: Sequence[Event]) -> Iterator[Finding]:
    """More requests went out for one question than the most patient layer alone would have made.

    No number in any layer says as much: it is the product of them. Only of runs with layers.
    """
    attempts = [event["attempts"] for event in events if event.actor == "layer"]
    requests = _requests(events)
    if attempts and len(requests) > max(attempts):
        cure = "hand one budget through every layer, which each request and each retry draws on"
        yield Finding("retries_multiplied", requests[max(attempts)].index, cure)


def retries_in_step(events: Sequence[Event]) -> Iterator[Finding]:
    """Clients who failed together came back together, at one instant."""
    found: Counter[float] = Counter()
    for event in _retries(events):
        found[event.time] += 1
        if found[event.time] == CROWD:
            cure = "take a random share off each wait (jitter)"
            yield Finding("retries_in_step", event.index, cure)
            return


def load_multiplied(events: Sequence[Event]) -> Iterator[Finding]:
    """A service that many ask got more retries than questions."""
    retries = _retries(events)
    first = len(_requests(events)) - len(retries)
    if first >= CROWD and len(retries) > first:
        cure = "share a retry budget among the callers, small beside their questions"
        yield Finding("load_multiplied", retries[first].index, cure)


def deadline_overrun(events: Sequence[Event]) -> Iterator[Finding]:
    """The page got its answer later than the user was promised."""
    due = float("inf")
    for event in events:
        if (event.actor, event.kind) == ("user", "asks"):
            due = event.time + event["within"]
        elif event.actor == "page" and event.time > due:
            cure = "let one deadline cover queueing, attempts, waits and handing back"
            yield Finding("deadline_overrun", event.index, cure)
            return


def busiest(events: Sequence[Event]) -> tuple[int, Event | None]:
    """The most retries within one second, and the first of those, where there are any."""
    retries = _retries(events)
    times = [event.time for event in retries]
    counts = [bisect_left(times, at + 1) - bisect_left(times, at) for at in times]
    most = max(counts, default=0)
    return most, retries[counts.index(most)] if retries else None


def _requests(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind == "request"]


def _retries(events: Sequence[Event]) -> list[Event]:
    return [event for event in _requests(events) if event.get("attempt", 1) > 1]


BUDGET_JUDGES: Final[tuple[Judge, ...]] = (
    retries_multiplied,
    retries_in_step,
    load_multiplied,
    deadline_overrun,
)
