"""Judges of effects: what was meant and what was told, against what really happened.

They read the calls that a model made and what it was told of each, the ledger, and the keys that
are left. Calls with the same name and payload mean the same thing, however often they are made.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labkit.recovery.idempotency import FAILED, PENDING
from labkit.recovery.outcomes import DONE, OPEN, REJECTED
from labkit.recovery.service import NOT_DONE
from labkit.simulation import Event, Finding, Judge

from .session_judges import left

STUCK: Final = 3_600.0  # seconds that a claim may outlast the run
AGAIN: Final[Mapping[str, str]] = {  # who denied the first effect -> what mends the second
    "": "one key for every repeat, made from what is meant; ask before you do again",
    "looked_up": "the service's word was wrong: ask how long it knows a key",
    "resolves": "the person's word was wrong: look into the books before you say it",
}
Meant = tuple[tuple[str, Any], ...]


def effect_repeated(events: Sequence[Event]) -> Iterator[Finding]:
    """One thing was meant, and it happened twice."""
    found: defaultdict[Meant, list[int]] = defaultdict(list)
    for event in events:
        if event.actor == "ledger":
            own = found[meant(event)]
            own.append(event.index)
            if len(own) == 2:
                yield Finding("effect_repeated", event.index, AGAIN[_denied(events, *own)])


def _denied(events: Sequence[Event], first: int, second: int) -> str:
    """The kind of event between two effects by which it was last said that nothing had happened."""
    about = meant(events[first])
    keys = {e["digest"] for e in events if e.kind == "calls" and meant(e) == about}
    said = [e for e in events[first:second] if e.kind in AGAIN and e["digest"] in keys]
    denied = [e.kind for e in said if e.get("state") == NOT_DONE or e.get("happened") is False]
    return ["", *denied][-1]


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
    """It was told as not done, and it happened, when no other call was there to do it."""
    told_of = [e for e in events if e.kind == "told" and e["status"] != REJECTED]  # of that call
    last = {meant(event): event for event in told_of}
    for told, event in last.items():
        own = [e for e in events if meant(e) == told and e.kind in ("calls", "told")]
        before = [e.kind for e in own if e.index <= event.index]
        after = (e.index for e in own if e.index > event.index and e.kind == "calls")
        others = before.count("calls") > before.count("told")
        until = event.index if others else next(after, events[-1].index)
        real = any(each == told for each in _real(events[: until + 1]))
        if event["status"] not in (*DONE, *OPEN) and real:
            cure = "a timeout is no failure: file it as unknown, and ask the service"
            yield Finding("failure_told", event.index, cure)


def key_stuck(events: Sequence[Event]) -> Iterator[Finding]:
    """A key is claimed for ever, and whoever claimed it is gone."""
    for event, records in left(events):
        for kept in records.values():
            if kept.get("state") == PENDING and kept["until"] > event.time + STUCK:
                cure = "give a claim a lease that ends, and renew it while you live"
                yield Finding("key_stuck", event.index, cure)


def effect_unrecorded(events: Sequence[Event]) -> Iterator[Finding]:
    """It happened, and its key, where there are keys, says that it did not, or says nothing."""
    keys = {event["digest"] for event in events if event.kind == "entered"}
    own = {(meant(event), event["digest"]) for event in events if event.kind == "calls"}
    for event, records in left(events):
        known = {name for name, kept in records.items() if kept.get("state") != FAILED}
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
    """One run in figures: duplicates, losses, calls that are open, seconds of waiting, cost.

    What is meant and has no effect is lost, unless one of its calls is open.
    """
    real = Counter(_real(events))
    wanted = {meant(event) for event in events if event.kind == "calls"}
    waiting = [meant(event) for event in _open(events)]
    calls = [event.time for event in events if event.kind == "calls"]
    ends = [event.time for event in events if event.kind == "told"]
    asked = sum(event.kind in ("request", "look_up", "called_off") for event in events)
    return {
        "duplicates": sum(count - 1 for count in real.values()),
        "losses": sum(not real[each] and each not in waiting for each in wanted),
        "open": len(waiting),
        "waiting": round(sum(ends) - sum(calls), 1),
        "cost": asked,
    }


def _open(events: Sequence[Event]) -> Iterator[Event]:
    """Of each call that is open what it was told.

    A later answer to its key settles it: done or not done, but no refusal, which says nothing of
    the calls before. So does the answer that hands on a person's word.
    """
    keys = {event["call"]: event["digest"] for event in events if event.kind == "calls"}
    told = [(keys[event["call"]], event) for event in events if event.kind == "told"]
    ends = {key: e.index for key, e in told if e["status"] not in (*OPEN, REJECTED)}
    return (e for key, e in told if e["status"] in OPEN and e.index > ends.get(key, -1))


EFFECT_JUDGES: Final[tuple[Judge, ...]] = (
    effect_repeated,
    effect_lost,
    failure_told,
    effect_unrecorded,
    key_stuck,
)
