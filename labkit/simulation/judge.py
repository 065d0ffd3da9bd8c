"""Judges: plain functions of the trace that name what went wrong.

A judge takes the events of a run and returns findings, each with the event that shows it and a cure
in one line. It reads what providers, pages and the lab itself noted, not what the code under study
says of itself, so that a client that says nothing is judged all the same.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Final

from .page import segments
from .trace import Event

Judge = Callable[[Sequence[Event]], Iterator["Finding"]]

TELLING: Final = 4  # characters of a repeated beginning that are no coincidence
STORM: Final = 5  # requests within a second that come after failures


@dataclass(frozen=True, slots=True)
class Finding:
    """A named verdict: the index of the `event` that shows it, and the `cure` in one line."""

    name: str
    event: int
    cure: str

    def __repr__(self) -> str:
        return f"{self.name} at event {self.event}: {self.cure}"


def duplicate_text(events: Sequence[Event]) -> Iterator[Finding]:
    """The reader got the same beginning twice in one segment."""
    before = now = ""
    for event in events:
        if event.kind == "request":
            before, now = before + now, ""
        elif event.kind == "segment_end":
            before = now = ""
        elif (event.actor, event.kind) == ("page", "shown"):
            now += event["text"]
            same = len(commonprefix([before, now]))
            if before and same >= min(TELLING, len(before)):
                yield Finding(
                    "duplicate_text",
                    event.index,
                    "do not retry after visible text; or close the segment and open a new one",
                )
                before = ""


def lost_tail(events: Sequence[Event]) -> Iterator[Finding]:
    """The answer was taken as whole, and its end never reached the page."""
    requests = [event.index for event in events if event.kind == "request"]
    if not requests or not _succeeded(events):
        return
    said = [e for e in events[requests[-1] :] if (e.actor, e.kind) == ("provider", "say")]
    whole = "".join(event["text"] for event in said)
    shown = segments(events)[-1].text
    if shown != whole and whole.startswith(shown):
        yield Finding("lost_tail", said[-1].index, "show every delta, also the last, before the end")


def truncation_accepted(events: Sequence[Event]) -> Iterator[Finding]:
    """A stream without a finish reason was taken for a whole answer."""
    requests = [event.index for event in events if event.kind == "request"]
    if not requests or not _succeeded(events):
        return
    last = [event for event in events[requests[-1] :] if event.actor == "provider"]
    if not any(event.kind == "finish" for event in last):
        cure = "insist on a finish reason: a clean end is no proof of a whole answer"
        yield Finding("truncation_accepted", last[-1].index, cure)


def retry_after_ignored(events: Sequence[Event]) -> Iterator[Finding]:
    """A request came earlier than the provider had asked."""
    allowed = 0.0
    for event in events:
        if event.actor == "provider" and event.get("retry_after") is not None:
            allowed = event.time + event["retry_after"]
        elif event.kind == "request" and event.time < allowed - 1e-9:
            cure = "wait as long as Retry-After asks, or give up"
            yield Finding("retry_after_ignored", event.index, cure)


def retry_storm(events: Sequence[Event]) -> Iterator[Finding]:
    """Many requests within a second, each after a failure."""
    after_failure: list[Event] = []
    failed = False
    for event in events:
        if event.kind in ("http_error", "error", "drop"):
            failed = True
        elif event.kind == "request" and failed:
            failed = False
            after_failure = [e for e in after_failure if e.time > event.time - 1] + [event]
            if len(after_failure) == STORM:
                cure = "wait longer after each failure, with jitter, and bound the attempts"
                yield Finding("retry_storm", event.index, cure)
                return


def cancel_swallowed(events: Sequence[Event]) -> Iterator[Finding]:
    """A task was told to stop and went on to a result of its own."""
    told: dict[str, Event] = {}
    for event in events:
        if event.kind == "cancel" or event.get("fault") == "cancel":
            told.setdefault(event["task"], event)
        elif (event.actor, event.kind) == ("lab", "end"):
            if event["task"] not in told or event["outcome"] == "cancelled":
                continue
            cure = "let CancelledError leave: raise it again after cleaning up"
            yield Finding("cancel_swallowed", told[event["task"]].index, cure)


def left_over_task(events: Sequence[Event]) -> Iterator[Finding]:
    """A task was still alive when the run was over."""
    for event in events:
        if event.kind == "left_over":
            cure = f"await or cancel the task {event['task']!r}, started and never finished"
            yield Finding("left_over_task", event.index, cure)


def _succeeded(events: Sequence[Event]) -> bool:
    ends = [event for event in events if (event.actor, event.kind) == ("lab", "end")]
    return bool(ends) and all(event["outcome"] == "result" for event in ends)


STREAM_JUDGES: Final[tuple[Judge, ...]] = (
    duplicate_text,
    lost_tail,
    truncation_accepted,
    retry_after_ignored,
    retry_storm,
    cancel_swallowed,
    left_over_task,
)
