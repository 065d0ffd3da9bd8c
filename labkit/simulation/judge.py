"""Judges: plain functions of the trace that name what went wrong.

A judge takes the events of a run and returns findings, each with the event that shows it and a cure
in one line. It reads what providers, pages and the lab itself noted, not what the code under study
says of itself, so that a client that says nothing is judged all the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from .trace import Event

Judge = Callable[[Sequence[Event]], Iterator["Finding"]]

TELLING: Final = 4  # characters of a repeated beginning that are no coincidence
STORM: Final = 5  # requests within a second that come after failures
FAILURES: Final = ("http_error", "error", "drop")


@dataclass(frozen=True, slots=True)
class Finding:
    """A named verdict: the index of the `event` that shows it, and the `cure` in one line."""

    name: str
    event: int
    cure: str

    def __repr__(self) -> str:
        return f"{self.name} at event {self.event}: {self.cure}"


def judged(judges: Iterable[Judge], events: Sequence[Event]) -> tuple[Finding, ...]:
    """What these judges say of a trace, in the order of the events."""
    found = [finding for judge in judges for finding in judge(events)]
    return tuple(sorted(found, key=lambda finding: finding.event))


def duplicate_text(events: Sequence[Event]) -> Iterator[Finding]:
    """The reader got the same beginning twice in one segment, from two attempts at one answer."""
    before = now = ""
    for event in events:
        if _is(event, "provider", "request"):
            before, now = before + now, ""
        elif _is(event, "page", "segment_end") or _is_end(event):
            before = now = ""  # what comes next is another answer, or stands apart
        elif _is(event, "page", "shown"):
            now += event["text"]
            if before and _same(before, now) >= min(TELLING, len(before)):
                cure = "do not retry after visible text; or close the segment and open a new one"
                yield Finding("duplicate_text", event.index, cure)
                before = ""


def lost_tail(events: Sequence[Event]) -> Iterator[Finding]:
    """The answer came whole, was taken as whole, and its end never reached the page."""
    last = _last_attempt(events)
    finished = any(_is_end(event) for event in last)
    said = [event for event in last if _is(event, "provider", "say")]
    whole = "".join(event.get("text", "") for event in said)  # one may say nothing
    shown = "".join(event["text"] for event in last if _is(event, "page", "shown"))
    page = [event["text"] for event in events if _is(event, "page", "shown")]
    there = not page or "".join(page).endswith(whole)  # no page to judge; or a repeat was left out
    if finished and _succeeded(events) and not there and whole.startswith(shown):
        yield Finding(
            "lost_tail", said[-1].index, "show every delta, also the last, before the end"
        )


def truncation_accepted(events: Sequence[Event]) -> Iterator[Finding]:
    """A stream that broke off without a finish reason was taken for a whole answer.

    Not so where the reader was told, where the client left by its own choice, or where the request
    was refused, so that there was no stream.
    """
    last = _last_attempt(events)
    played = [event for event in last if event.actor == "provider"]
    told = [e for e in last if _is(e, "page", "status") or _is(e, "page", "segment_end")]
    if len(played) < 2 or told or not _succeeded(events):
        return
    own_choice = played[-1].get("how") == "closed"
    if not own_choice and not {"finish", "http_error"} & {event.kind for event in played}:
        cure = "insist on a finish reason: a clean end is no proof of a whole answer"
        yield Finding("truncation_accepted", played[-1].index, cure)


def retry_after_ignored(events: Sequence[Event]) -> Iterator[Finding]:
    """A request came earlier than the provider had asked."""
    allowed = 0.0
    for event in events:
        if event.actor == "provider" and event.get("retry_after") is not None:
            allowed = event.time + event["retry_after"]
        elif _is(event, "provider", "request") and event.time < allowed - 1e-9:
            cure = "wait as long as Retry-After asks, or give up"
            yield Finding("retry_after_ignored", event.index, cure)


def retry_storm(events: Sequence[Event]) -> Iterator[Finding]:
    """Many requests within a second, each after a failure."""
    after_failure: list[Event] = []
    failed = False
    for event in events:
        if event.actor == "provider" and event.kind in FAILURES:
            failed = True
        elif failed and _is(event, "provider", "request"):
            failed = False
            after_failure = [e for e in after_failure if e.time > event.time - 1] + [event]
            if len(after_failure) == STORM:
                cure = "wait longer after each failure, with jitter, and bound the attempts"
                yield Finding("retry_storm", event.index, cure)
                return


def cancel_swallowed(events: Sequence[Event]) -> Iterator[Finding]:
    """A task was told to stop and came to another end, a result or an error of its own."""
    told: dict[str, Event] = {}
    for event in events:
        if _is_cancel(event):
            told.setdefault(event["task"], event)
        elif _is(event, "lab", "end"):
            if event["task"] not in told or event["outcome"] not in ("result", "error"):
                continue
            cure = "let CancelledError leave: raise it again after cleaning up"
            yield Finding("cancel_swallowed", told[event["task"]].index, cure)


def left_over_task(events: Sequence[Event]) -> Iterator[Finding]:
    """A task was still alive when the run was over."""
    for event in events:
        if _is(event, "lab", "left_over"):
            cure = f"await or cancel the task {event['task']!r}, started and never finished"
            yield Finding("left_over_task", event.index, cure)


def _is(event: Event, actor: str, kind: str) -> bool:
    return event.actor == actor and event.kind == kind


def _is_end(event: Event) -> bool:
    """Whether the answer has come to its end; a tool's result is a part of it."""
    return _is(event, "provider", "finish") and event.get("reason") != "tool_calls"


def _is_cancel(event: Event) -> bool:
    return event.kind == "cancel" or event.get("fault") in ("cancel", "timeout")


def _last_attempt(events: Sequence[Event]) -> Sequence[Event]:
    """The events from the last request on; none where there was no request."""
    requests = [event.index for event in events if _is(event, "provider", "request")]
    return events[requests[-1] :] if requests else ()


def _same(one: str, other: str) -> int:
    """How many characters two texts have in common at their beginnings."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def _succeeded(events: Sequence[Event]) -> bool:
    """Whether everything ended in a result that nobody had called off."""
    if any(map(_is_cancel, events)):
        return False
    ends = [event for event in events if _is(event, "lab", "end")]
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
