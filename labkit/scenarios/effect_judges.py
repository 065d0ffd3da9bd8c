"""Judges of effects: what was meant and what was told, against what really happened.

They read the calls that a model made and what it was told of each, the ledger, and the keys that
are left. Calls with the same name and payload mean the same thing, however often they are made.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

from labkit.recovery.outcomes import DONE, OPEN
from labkit.simulation import Event, Finding, Judge

STUCK: Final = 3_600.0  # seconds that a claim may outlast the run
Meant = tuple[tuple[str, Any], ...]


def effect_repeated(events: Sequence[Event]) -> Iterator[Finding]:
    """One thing was meant, and it happened twice."""
    found: Counter[Meant] = Counter()
    for event in events:
        if event.actor == "ledger":
            found[meant(event)] += 1
            if found[meant(event)] == 2:
                cure = "one key for every repeat, made from what is meant; ask before you do again"
                yield Finding("effect_repeated", event.index, cure)


def effect_lost(events: Sequence[Event]) -> Iterator[Finding]:
    """It was told as done, and it never happened."""
    real = set(_real(events))
    for event in events:
        if event.kind == "told" and event["status"] in DONE and meant(event) not in real:
            cure = (
                "only an answer to this very request, or the service's word, says that it is done"
            )
            yield Finding("effect_lost", event.index, cure)


def failure_told(events: Sequence[Event]) -> Iterator[Finding]:
    """It was told as not done, and it happened."""
    real = set(_real(events))
    last = {meant(event): event for event in events if event.kind == "told"}
    for told, event in last.items():
        if event["status"] not in (*DONE, *OPEN) and told in real:
            cure = "a timeout is no failure: file it as unknown, and ask the service"
            yield Finding("failure_told", event.index, cure)


def key_stuck(events: Sequence[Event]) -> Iterator[Finding]:
    """A key is claimed for ever, and whoever claimed it is gone."""
    for event in events:
        if (event.actor, event.kind) != ("lab", "left"):
            continue
        for _, record in event.data:
            kept = dict(record)
            if kept.get("state") == "pending" and kept["until"] > event.time + STUCK:
                cure = "give a claim a lease that ends, and renew it while you live"
                yield Finding("key_stuck", event.index, cure)


def effect_unrecorded(events: Sequence[Event]) -> Iterator[Finding]:
    """It happened, and its key, where there are keys, says that it did not, or says nothing."""
    keys = {event["digest"] for event in events if event.kind == "entered"}
    own = {(meant(event), event["digest"]) for event in events if event.kind == "calls"}
    for event in events:
        if (event.actor, event.kind) != ("lab", "left"):
            continue
        known = {name for name, record in event.data if dict(record)["state"] != "failed"}
        for real in set(_real(events)):
            entered = {digest for told, digest in own if told == real} & keys
            if entered and not entered & known:
                cure = "claim the key before you send, and call it failed only if it surely did not"
                yield Finding("effect_unrecorded", event.index, f"{cure} happen")


def meant(event: Event) -> Meant:
    """What a call, an answer or an effect is about: its name and its payload."""
    about = dict(event.data)
    return tuple((name, about.get(name)) for name in ("name", "order", "amount"))


def _real(events: Sequence[Event]) -> Iterator[Meant]:
    return (meant(event) for event in events if event.actor == "ledger")


def counted(events: Sequence[Event]) -> dict[str, float]:
    """One run in figures: duplicates, losses, what is open, seconds of waiting, cost."""
    real = Counter(_real(events))
    wanted = {meant(event) for event in events if event.kind == "calls"}
    told = {meant(event): event["status"] for event in events if event.kind == "told"}
    calls = [event.time for event in events if event.kind == "calls"]
    ends = [event.time for event in events if event.kind == "told"]
    asked = sum(event.kind in ("request", "look_up", "called_off") for event in events)
    return {
        "duplicates": sum(count - 1 for count in real.values()),
        "losses": sum(not real[each] and told.get(each) not in OPEN for each in wanted),
        "open": sum(status in OPEN for status in told.values()),
        "waiting": round(sum(ends) - sum(calls), 1),
        "cost": asked,
    }


EFFECT_JUDGES: Final[tuple[Judge, ...]] = (
    effect_repeated,
    effect_lost,
    failure_told,
    effect_unrecorded,
    key_stuck,
)
