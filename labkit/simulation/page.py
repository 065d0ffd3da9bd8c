"""What the user has seen, read from the trace.

The page is the actor "page": `shown` adds text to the open segment, `segment_end` closes it and
opens the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .trace import Event


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of shown text; `reason` says why it was closed, empty while it is open."""

    text: str
    reason: str = ""


def segments(events: Sequence[Event], upto: int | None = None) -> tuple[Segment, ...]:
    """The segments on the page after event `upto` (its index; all events by default)."""
    closed: list[Segment] = []
    text = ""
    for event in events if upto is None else events[: upto + 1]:
        if event.actor != "page":
            continue
        if event.kind == "shown":
            text += event["text"]
        elif event.kind == "segment_end":
            closed.append(Segment(text, event["reason"]))
            text = ""
    return (*closed, Segment(text)) if text or not closed else tuple(closed)
