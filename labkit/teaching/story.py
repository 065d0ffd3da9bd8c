"""What happened in a run, as bars and marks on the virtual clock.

Charts and texts are both made from these, so that they say the same. Everything is read from the
trace; requests are taken to follow one another, as they do in one stream.

    told = story(run)
    told[0].words     # '0 to 1.2 s: request 1: error server_error'
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from labkit.simulation import Event, Run

from .phrases import quoted, seconds, span

LANES: Final = ("provider", "waits", "page", "kept", "tasks, faults", "findings")

# How an attempt may end, the most telling first.
_ENDINGS: Final = {
    "finish": "finished ({reason})",
    "http_error": "refused, {status}",
    "error": "error {code}",
    "drop": "connection dropped",
    "end": "ended without a finish reason",
    "closed": "ended without a finish reason",
    "stall": "stalled",
    "left": "left by the client ({how})",
}
_DELTAS: Final = frozenset({"role", "say", "think", "call", "finish"})
_CUTS: Final = frozenset({"cancel", "fault", "end"})
_FAILED: Final = frozenset({"http_error", "error", "drop", "end", "closed"})


@dataclass(frozen=True, slots=True)
class Item:
    """A bar from `start` to `end` (virtual seconds), or a mark where they are equal.

    `kind` chooses the drawing: finished, failed, stalled, left, wait, text, or a mark's name.
    `label` is short and for the chart, `words` is the whole and for the text form. `ticks` are
    moments inside a bar; from `silent` on nothing came any more.
    """

    lane: str
    kind: str
    start: float
    end: float
    label: str
    words: str
    ticks: tuple[float, ...] = ()
    silent: float | None = None


def story(run: Run) -> list[Item]:
    """All of a run's items, lane by lane, each lane in the order of time."""
    events = run.trace
    parts = (_attempts(events), _waits(events), _page(events), _kept(events), _others(events))
    items = [item for part in parts for item in sorted(part, key=lambda item: item.start)]
    for finding in run.findings:
        at = events[finding.event].time
        words = f"{finding.name}: {finding.cure}"
        items.append(Item("findings", "finding", at, at, finding.name, f"{seconds(at)}: {words}"))
    return items


def _attempts(events: Sequence[Event]) -> Iterator[Item]:
    begins = [event for event in events if event.kind == "request"]
    for begin, following in zip(begins, [*begins[1:], None], strict=True):
        before = following.index if following else None
        own = [event for event in events[begin.index : before] if event.actor == "provider"]
        there = {event.kind: event for event in reversed(own)}
        last = next((there[kind] for kind in _ENDINGS if kind in there), None)
        closing = next((e for e in own if e.kind in ("left", "closed")), own[-1])
        label = f"request {begin.get('attempt')}: {_how(last)}"
        silent = last.time if last is not None and last.kind == "stall" else None
        words = f"{span(begin.time, closing.time)}: {label}"
        if silent is not None:
            words += f", silent from {seconds(silent)}"
        ticks = tuple(event.time for event in own if event.kind in _DELTAS)
        kind = _colour(last)
        yield Item("provider", kind, begin.time, closing.time, label, words, ticks, silent)


def _how(last: Event | None) -> str:
    if last is None:
        return "still open at the end"
    return _ENDINGS[last.kind].format_map(defaultdict(str, last.data))


def _colour(last: Event | None) -> str:
    if last is None or last.kind == "left":
        return "left"
    if last.kind in _FAILED:
        return "failed"
    return "finished" if last.kind == "finish" else "stalled"


def _waits(events: Sequence[Event]) -> Iterator[Item]:
    """The waits that the client told of, and pauses between a failure and the next request."""
    failed: Event | None = None
    told = False
    for event in events:
        if event.kind == "wait":
            told = True
            until = event.time + event["seconds"]
            cut = (e.time for e in events[event.index + 1 :] if e.kind in _CUTS)
            over = min(until, next(cut, until))
            asked = f"waits {seconds(event['seconds'])} ({event['reason']})"
            words = f"{span(event.time, over)}: {asked}"
            if over < until - 1e-6:
                words += ", cut short"
            yield Item("waits", "wait", event.time, over, asked, words)
        elif event.kind in ("http_error", "error", "drop"):
            failed, told = event, False
        elif event.kind == "request" and failed is not None:
            if not told and event.time > failed.time:
                label = f"pauses {seconds(event.time - failed.time)}"
                words = f"{span(failed.time, event.time)}: {label}, without saying why"
                yield Item("waits", "wait", failed.time, event.time, label, words)
            failed = None


def _page(events: Sequence[Event]) -> Iterator[Item]:
    number, pieces = 1, list[Event]()
    for event in events:
        if event.actor != "page":
            continue
        if event.kind == "shown":
            pieces.append(event)
        elif event.kind == "status":
            label = f"status: {event['text']}"
            words = f"{seconds(event.time)}: {label}"
            yield Item("page", "status", event.time, event.time, label, words)
        elif event.kind == "segment_end":
            yield _segment(number, pieces, event)
            number, pieces = number + 1, []
    if pieces:
        yield _segment(number, pieces, None)


def _segment(number: int, pieces: list[Event], closed: Event | None) -> Item:
    text = "".join(piece["text"] for piece in pieces)
    end = closed.time if closed else pieces[-1].time
    start = pieces[0].time if pieces else end
    words = f"{span(start, end)}: segment {number}, {_pieces(len(pieces))}: {quoted(text)}"
    if closed:
        words += f", closed ({closed['reason']})"
    ticks = tuple(piece.time for piece in pieces)
    kind = "closed" if closed else "open"
    label = f"segment {number}: {text}"
    return Item("page", kind, start, end, label, words, ticks=ticks)


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count} pieces"


def _kept(events: Sequence[Event]) -> Iterator[Item]:
    """What outlives the run: checkpoints, drafts and effects."""
    for event in events:
        if (event.actor, event.kind) == ("session", "checkpoint"):
            label = words = f"checkpoint: {event['step']}"
        elif (event.actor, event.kind) == ("session", "draft"):
            label = f"draft ({event['reason']})"
            words = f"draft ({event['reason']}): {quoted(event['text'])}"
        elif event.actor == "ledger":
            label = words = f"{event.kind}: {event.get('name', '')}"
        else:
            continue
        words = f"{seconds(event.time)}: {words}"
        yield Item("kept", event.kind, event.time, event.time, label, words)


def _others(events: Sequence[Event]) -> Iterator[Item]:
    """What came from outside the client: the user, faults, and how each task ended."""
    for event in events:
        if (event.actor, event.kind) == ("user", "cancel"):
            kind, label = "cancel", f"user cancels {event['task']}"
        elif event.kind == "fault":
            kind, label = "cancel", f"fault: {event['fault']}"
        elif event.kind == "left_over":
            kind, label = "cancel", f"{event['task']} left over"
        elif (event.actor, event.kind) == ("lab", "end"):
            kind, label = "end", f"{event['task']} ends: {event['outcome']}"
        else:
            continue
        words = f"{seconds(event.time)}: {label}"
        yield Item("tasks, faults", kind, event.time, event.time, label, words)
