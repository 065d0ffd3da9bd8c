"""Judges of a streamed answer that is brought back: what the next reader would find wrong.

As all judges they are plain functions of the trace, and read what provider, wire, page, record and
ledger noted, not what the client says of itself.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from labkit.simulation import Event, Finding, Judge

HOLE: Final = 4  # characters behind a hole that are no coincidence


def gap_spliced(events: Sequence[Event]) -> Iterator[Finding]:
    """Text is missing in the middle of what the page shows, and nothing says so."""
    said = shown = page = ""
    for event in events:
        if event.kind == "request":
            page, said, shown = page + shown, "", ""  # another request may word it in another way
        elif event.actor == "provider" and event.kind == "say":
            said += event.get("text", "")
        elif event.kind in ("shown", "segment_end"):
            shown = shown + event["text"] if event.kind == "shown" else ""
            same = _same(said, shown, anywhere=bool(page))  # a continuation leaves out a repeat
            rest, past = shown[same:], said.find(shown[:same]) + same
            if len(rest) >= HOLE and rest in said[past + 1 :]:
                cure = (
                    "compare each event's number with the next one: a gap is asked for, not skipped"
                )
                yield Finding("gap_spliced", event.index, cure)
                return


def piece_doubled(events: Sequence[Event]) -> Iterator[Finding]:
    """A piece of the answer was said once, and stands on the page twice in a row."""
    said = shown = ""
    for event in events:
        if event.kind == "request":
            said = shown = ""
        elif event.actor == "provider" and event.kind == "say":
            said += event.get("text", "")
        elif event.kind in ("shown", "segment_end"):
            shown = shown + event["text"] if event.kind == "shown" else ""
            same = _same(said, shown, anywhere=False)
            more = shown[same:]
            if len(more) >= HOLE and said[:same].endswith(more):
                cure = "compare each event's number with the next one: an older one is left out"
                yield Finding("piece_doubled", event.index, cure)
                return


def cursor_overshoot(events: Sequence[Event]) -> Iterator[Finding]:
    """A reader came back with a cursor past events that its page has never shown."""
    sent: dict[int, str] = {}
    shown = ""
    for event in events:
        if event.actor == "wire" and event.kind == "sent":
            sent.setdefault(event["sequence"], event["text"])
        elif event.kind == "shown":
            shown += event["text"]
        elif event.actor == "wire" and event.kind == "open" and event["cursor"]:
            before = int(event["cursor"].rpartition(":")[2])
            skipped = "".join(text for number, text in sorted(sent.items()) if number < before)
            if len(skipped) > len(shown):
                cure = "move the cursor when an event is saved, not when it is received"
                yield Finding("cursor_overshoot", event.index, cure)


def half_call_run(events: Sequence[Event]) -> Iterator[Finding]:
    """A tool had its effect although the call for it was never finished."""
    open_call = False
    for event in events:
        if event.actor == "provider" and event.kind in ("call", "finish"):
            open_call = event.kind == "call"
        elif event.actor == "ledger" and open_call:
            cure = "run a call only when it is complete JSON and its stream has finished"
            yield Finding("half_call_run", event.index, cure)


def effect_repeated(events: Sequence[Event]) -> Iterator[Finding]:
    """The same effect took place twice for one answer."""
    seen: set[tuple[tuple[str, object], ...]] = set()
    for event in events:
        if event.actor == "ledger":
            if event.data in seen:
                cure = "look the call up by its key before it runs, and return what it gave"
                yield Finding("effect_repeated", event.index, cure)
            seen.add(event.data)


def stop_overruled(events: Sequence[Event]) -> Iterator[Finding]:
    """After its user's stop the answer was asked for again."""
    stopped = False
    for event in events:
        stopped = stopped or event.kind == "cancel"
        if stopped and event.kind == "request":
            cure = "a user's stop is final: tell it from a broken connection, which may be mended"
            yield Finding("stop_overruled", event.index, cure)
            return


def text_cleared(events: Sequence[Event]) -> Iterator[Finding]:
    """Text that the reader had seen was taken off the page."""
    shown = False
    for event in events:
        shown = shown or event.kind == "shown"
        if shown and event.actor == "page" and event.kind == "cleared":
            cure = "keep what was shown; close its segment, and write on below it"
            yield Finding("text_cleared", event.index, cure)
            shown = False


def _same(said: str, shown: str, *, anywhere: bool) -> int:
    """How much of the beginning of `shown` was said as it stands; from the start, or `anywhere`."""
    sizes = range(len(shown), 0, -1)
    there = said.__contains__ if anywhere else said.startswith
    return next((size for size in sizes if there(shown[:size])), 0)


RECOVERY_JUDGES: Final[tuple[Judge, ...]] = (
    gap_spliced,
    piece_doubled,
    cursor_overshoot,
    half_call_run,
    effect_repeated,
    stop_overruled,
    text_cleared,
)
