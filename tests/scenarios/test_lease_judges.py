"""The judges of leases, each on a trace that has its flaw and on one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.scenarios.lease_judges import LEASE_JUDGES
from labkit.simulation import Event
from tests.simulation.kit import trace


def claimed(time: float, by: str, fence: int = 1, run: str = "r") -> tuple[Any, ...]:
    about = {"run": run, "by": by, "fence": fence, "status": "running", "until": time + 10.0}
    return time, "store", "claimed", about


def renewed(time: float, by: str, run: str = "r") -> tuple[Any, ...]:
    return time, "store", "renewed", {"run": run, "by": by, "fence": 1, "until": time + 10.0}


def wrote(time: float, by: str, status: str = "running", run: str = "r") -> tuple[Any, ...]:
    return time, "store", "wrote", {"run": run, "by": by, "fence": 1, "status": status}


def refused(time: float, by: str, run: str = "r") -> tuple[Any, ...]:
    return time, "store", "refused", {"run": run, "by": by, "fence": 1, "move": "step"}


def own(time: float, worker: str, kind: str) -> tuple[Any, ...]:
    return time, worker, kind, {}


def left(time: float, status: str, worker: str | None, until: float | None) -> tuple[Any, ...]:
    kept = (("status", status), ("worker", worker), ("fence", 1), ("seq", 1), ("until", until))
    return time, "lab", "left", {"r": kept}


def names(events: tuple[Event, ...]) -> list[tuple[str, int]]:
    return [(found.name, found.event) for judge in LEASE_JUDGES for found in judge(events)]


RIGHT = {
    "one worker does it": (claimed(0, "a"), wrote(1, "a"), wrote(2, "a", "completed")),
    "taken over from the dead": (claimed(0, "a"), own(1, "a", "killed"), claimed(10, "b", 2)),
    "taken over from the frozen": (claimed(0, "a"), own(1, "a", "frozen"), claimed(10, "b", 2)),
    "taken over from who is cut off": (claimed(0, "a"), own(1, "a", "cut"), claimed(10, "b", 2)),
    "taken over from who let go": (claimed(0, "a"), own(9, "a", "claim_lost"), claimed(10, "b", 2)),
    "taken over from who has just woken": (
        claimed(0, "a"),
        own(1, "a", "frozen"),
        own(60, "a", "thawed"),
        claimed(60, "a", 2),
    ),
    "taken over from who was refused": (
        claimed(0, "a"),
        own(1, "a", "cut"),
        refused(2, "a"),
        claimed(10, "b", 2),
    ),
    "taken over from the dead while another is at work": (
        claimed(0, "a"),
        own(1, "a", "killed"),
        claimed(2, "c", run="s"),
        claimed(10, "b", 2),
    ),
    "claimed once more by who holds it": (claimed(0, "a"), claimed(5, "a", 2)),
    "handed back": (claimed(0, "a"), wrote(1, "a", "queued"), claimed(2, "b", 2), wrote(3, "b")),
    "a renewal is told after it was handed back": (
        claimed(0, "a"),
        wrote(1, "a", "queued"),
        renewed(1.05, "a"),
        claimed(2, "b", 2),
    ),
    "its owner writes, too": (claimed(0, "a"), wrote(1, "ann", "cancelled")),
    "two runs": (claimed(0, "a"), claimed(0, "b", run="s"), wrote(1, "b", run="s"), wrote(1, "a")),
    "it waits for a person": (left(9, "awaiting_input", None, None),),
    "somebody is at work": (left(9, "running", "a", 10.0),),
    "it has failed": (left(9, "failed", None, None),),
}

WRONG = {
    "given away while it lasts": (("double_claim", 1), (claimed(0, "a"), claimed(9.9, "b", 2))),
    "given away after a renewal": (
        ("double_claim", 2),
        (claimed(0, "a"), renewed(8, "a"), claimed(12, "b", 2)),
    ),
    "written after a take-over": (
        ("zombie_write", 3),
        (claimed(0, "a"), own(1, "a", "frozen"), claimed(10, "b", 2), wrote(11, "a")),
    ),
    "taken over from who is at work": (
        ("false_takeover", 1),
        (claimed(0, "a"), claimed(10, "b", 2)),
    ),
    "taken over from itself": (("false_takeover", 1), (claimed(0, "a"), claimed(10, "a", 2))),
    "taken over from who was back": (
        ("false_takeover", 3),
        (claimed(0, "a"), own(1, "a", "frozen"), renewed(2, "a"), claimed(12, "b", 2)),
    ),
    "taken over while another was away": (
        ("false_takeover", 2),
        (claimed(0, "a"), own(1, "c", "killed"), claimed(10, "b", 2)),
    ),
    "waits for nobody": (("orphan_run", 0), (left(9, "queued", None, None),)),
    "called running": (("orphan_run", 0), (left(10, "running", "a", 10.0),)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found_where_nothing_is_wrong(name: str) -> None:
    assert names(trace(*RIGHT[name])) == []


@pytest.mark.parametrize("name", WRONG)
def test_a_flaw_is_found_at_the_event_that_shows_it(name: str) -> None:
    expected, events = WRONG[name]
    assert names(trace(*events)) == [expected]
