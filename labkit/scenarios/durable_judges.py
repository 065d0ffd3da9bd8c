"""Judges of durable discussions: what is done again, gone on from, done without a yes, remembered.

They read what was put as a checkpoint and by whom, and what the store told of steps and claims.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from labkit.recovery.run_states import COMPLETED
from labkit.simulation import Event, Finding, Judge

from .lease_judges import LEASE_JUDGES


def steps_redone(events: Sequence[Event]) -> Iterator[Finding]:
    """A step that was kept already is done again."""
    for event, kept in puts(events):
        if event["step"] <= kept and event["by"] == _holder(events[: event.index], _run(event)):
            cure = "go on from the checkpoint that the run's row names"
            yield Finding("steps_redone", event.index, cure)
            return


def zombie_checkpoint(events: Sequence[Event]) -> Iterator[Finding]:
    """A checkpoint of a worker whose run is another's stands where that one goes on."""
    for event in events:
        if event.kind != "checkpoint":
            continue
        holder = _holder(events[: event.index], _run(event))
        theirs = {e["thread"] for e in events if _is_put(e) and e["by"] == holder}
        if holder not in ("", event["by"]) and event["thread"] in theirs:
            cure = "let each claim write into a thread of its own, which the fence names"
            yield Finding("zombie_checkpoint", event.index, cure)


def unapproved_effect(events: Sequence[Event]) -> Iterator[Finding]:
    """A tool had an effect with arguments that nobody has approved."""
    for event in events:
        if event.actor == "ledger" and not any(
            e.kind == "approved" and e["name"] == event["name"] and _same(e, event)
            for e in events[: event.index]
        ):
            cure = "bind the approval to a digest of the exact arguments, and look at it again"
            yield Finding("unapproved_effect", event.index, cure)


def memory_of_unfinished(events: Sequence[Event]) -> Iterator[Finding]:
    """What a discussion was told to remember counts, and that one was never completed."""
    done: set[str] = set()
    for event in events:
        if event.actor == "store" and event.get("status") == COMPLETED:
            done.add(event["run"])
        elif event.kind == "recalled" and set(filter(None, event["runs"].split(","))) - done:
            cure = "let a memory count once the row of its run says that it is completed"
            yield Finding("memory_of_unfinished", event.index, cure)


def _is_put(event: Event) -> bool:
    return event.kind in ("checkpoint", "copied")


def _run(event: Event) -> str:
    return str(event["thread"]).partition("/")[0]


def puts(events: Sequence[Event]) -> Iterator[tuple[Event, int]]:
    """Each checkpoint that is put, with the newest step of its run that a row has kept before."""
    newest: dict[str, int] = {}
    last: dict[str, int] = {}
    for event in events:
        if event.kind == "checkpoint":
            yield event, newest.get(_run(event), -2)
        if _is_put(event):
            last[event["by"]] = event["step"]
        elif event.actor == "store" and event.kind == "step":
            newest[event["run"]] = max(newest.get(event["run"], -2), last[event["by"]])


def _holder(events: Sequence[Event], run: str) -> str:
    """By whom the newest claim of a run is."""
    claims = (e for e in reversed(events) if (e.actor, e.kind) == ("store", "claimed"))
    return next((event["by"] for event in claims if event["run"] == run), "")


def _same(approved: Event, effect: Event) -> bool:
    told = dict(effect.data)
    names = [name for name in told if name not in ("name", "order")]
    return bool(json.loads(approved["arguments"]) == {name: told[name] for name in names})


DURABLE_JUDGES: Final[tuple[Judge, ...]] = (
    steps_redone,
    zombie_checkpoint,
    unapproved_effect,
    memory_of_unfinished,
    *LEASE_JUDGES,
)
