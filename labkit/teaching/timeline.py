"""A run as a chart: who did what, and when, on the virtual clock.

    labkit.timeline(run)
    labkit.timeline(before, beside=after)     # both on one time axis

`story` reads bars and marks from the trace, and both picture and text form are made from these, so
that they say the same. One lane each for the provider's requests (which follow one another, as in
one stream), the client's waits, what the page showed, what was kept, what came from outside, and
the findings; words and looks stand in `data/exercises/timeline.toml`. Any other actor has a lane of
its own. A bar's pattern and label say how it ended, not its colour alone.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labkit.simulation import Event, Run, Scenario

from .chart import Chart
from .phrases import MOST, cut, printable, quoted, seconds, span
from .said import as_run, texts

WIDTH: Final = 9.6  # inches, as wide as a notebook at 1280 pixels allows
ROW: Final = 0.27  # inches of a row of marks
TALL: Final = 1.5  # rows: a bar with its label above it
AROUND: Final = 0.85  # inches of heading and axis
MOST_ROWS: Final = 16  # with labels in a lane; what is left shares one more, without
LABEL: Final = 46  # characters of a label
CHARACTER: Final = 0.0092  # of the axis' length, an average one

_LOOKS: Final = texts("timeline")  # "colours", and words and look of "endings" and "marks"
LANES: Final = (
    "provider",
    "wire",
    "waits",
    "recovery",
    "tools",
    "page",
    "kept",
    "tasks, faults",
    "findings",
)
_TOLD: Final = "provider client turn page session ledger user lab wire record framework".split()
_DELTAS: Final = ("role", "say", "think", "call", "finish")
_CUTS: Final = ("cancel", "fault", "end")


@dataclass(frozen=True, slots=True)
class Item:
    """A bar from `start` to `end` (virtual seconds), or a mark at `start`, which has a `sign`.

    The chart shows `label`, the text form also `more`. `ticks` are moments inside a bar; from
    `silent` on nothing came any more.
    """

    lane: str
    start: float
    end: float
    label: str
    colour: str
    more: str = ""
    sign: str = ""
    pattern: str = ""
    ticks: tuple[float, ...] = ()
    silent: float | None = None


def timeline(
    run: Run | Scenario | str,
    beside: Run | Scenario | str | None = None,
    *,
    marks: Sequence[str] = ("", ""),
) -> Chart:
    """The chart of `run`, and of `beside` below it on the same time axis; or of a scenario's run.

    `marks` go before the two headings, such as ("before: ", "after: ").
    """
    runs = [as_run(each) for each in ([run] if beside is None else [run, beside])]
    told = [story(each) for each in runs]
    names = []
    for mark, each in zip(marks, runs, strict=False):
        how = "ends" if each.error is None else f"ends with {type(each.error).__name__}"
        names.append(f"{mark}{each.scenario.name}: {how} at {seconds(each.time)}")
    text = "\n\n".join(map(in_words, names, told))
    end = max(0.001, *(each.time for each in runs))
    return Chart(lambda: figure(names, told, end), text, f"timeline of {' and '.join(names)}")


def story(run: Run) -> list[Item]:
    """All of a run's bars and marks, in the order of time."""
    events = run.trace
    items = [*_requests(events), *_waits(events), *_tools(events), *_segments(events)]
    for event in events:
        mark = _LOOKS["marks"].get(f"{event.actor.partition(' ')[0]} {event.kind}")
        if mark is None and event.actor not in _TOLD:
            words = " ".join([event.kind, *(f"{name} {{{name}}}" for name, _ in event.data)])
            mark = {"words": words, "colour": "ink", "sign": "o"}
        if mark:
            words, look = _filled(mark["words"], event), {k: mark[k] for k in ("colour", "sign")}
            lane = mark.get("lane", event.actor)
            items.append(Item(lane, event.time, event.time, words, **look))
    for found in run.findings:
        at = events[found.event].time
        items.append(Item("findings", at, at, found.name, "red", f": {found.cure}", sign="v"))
    return sorted(items, key=lambda item: item.start)


def _requests(events: Sequence[Event]) -> Iterator[Item]:
    endings = _LOOKS["endings"]
    begins = [e for e in events if (e.actor, e.kind) == ("provider", "request")]
    for begin, following in zip_longest(begins, begins[1:]):
        until = following.index if following else None
        own = [event for event in events[begin.index : until] if event.actor == "provider"]
        first = {event.kind: event for event in reversed(own)}
        last = next(first[kind] for kind in endings if kind in first)
        over = first.get("left") or first.get("closed") or own[-1]
        ending = endings[last.kind]
        yield Item(
            "provider",
            begin.time,
            over.time,
            f"request {begin.get('attempt')}: {_filled(ending['words'], last)}",
            ending["colour"],
            pattern=ending["pattern"],
            ticks=tuple(event.time for event in own if event.kind in _DELTAS),
            silent=last.time if last.kind == "stall" else None,
        )


def _waits(events: Sequence[Event]) -> Iterator[Item]:
    """The waits that the client told of, and pauses between a failure and the next request."""
    failed: float | None = None
    for event in events:
        if event.kind == "wait":
            failed = None
            until = event.time + event["seconds"]
            over = min([until, *(e.time for e in events[event.index :] if e.kind in _CUTS)])
            label = f"waits {seconds(event['seconds'])} ({event['reason']})"
            more = ", cut short" if over < until - 1e-6 else ""
            yield Item("waits", event.time, over, label, "grey", more, pattern="///")
        elif event.kind in ("http_error", "error", "drop"):
            failed = event.time
        elif event.kind == "request" and failed is not None:
            if event.time > failed:
                label, more = f"pauses {seconds(event.time - failed)}", ", without saying why"
                yield Item("waits", failed, event.time, label, "grey", more, pattern="///")
            failed = None


def _tools(events: Sequence[Event]) -> Iterator[Item]:
    """The tool calls of a turn; one that has no end was cut by a cancel or the end of the run."""
    for begin in (event for event in events if event.kind == "tool_start"):
        rest = events[begin.index :]
        own = (e for e in rest if e.kind == "tool_end" and e["call"] == begin["call"])
        end = next(own, None)
        over = end or next((e for e in rest if e.kind in _CUTS), events[-1])
        label = f"{begin['call']} {begin['name']}: {end['status'] if end else 'cut'}"
        colour, pattern = ("sky", "") if end else ("grey", "..")
        yield Item("tools", begin.time, over.time, label, colour, pattern=pattern)


def _segments(events: Sequence[Event]) -> Iterator[Item]:
    number, pieces = 1, list[Event]()
    for event in events:
        if event.kind == "shown":
            pieces.append(event)
        closed = f", closed by {event['reason']}" if event.kind == "segment_end" else ""
        if closed or (pieces and event is events[-1]):
            ticks = tuple(piece.time for piece in pieces)
            end = event.time if closed else ticks[-1]
            text = quoted("".join(piece["text"] for piece in pieces))
            label, more = f"segment {number}{closed}: {text}", f", deltas: {len(ticks)}"
            yield Item("page", min([end, *ticks]), end, label, "yellow", more, ticks=ticks)
            number, pieces = number + 1, []


def _filled(words: str, event: Event) -> str:
    parts = defaultdict(str, event.data) | {"at": seconds(event.time)}
    return printable(words.format_map(parts)[:MOST]).rstrip(" :,")


def _lanes(items: Sequence[Item]) -> list[str]:
    there = dict.fromkeys(item.lane for item in items)
    return [*(lane for lane in LANES if lane in there), *(n for n in there if n not in LANES)]


def in_words(name: str, items: Sequence[Item]) -> str:
    """One run's lanes as lines under its name."""
    lines, there = [name], _lanes(items)
    wide = max([13, *map(len, there)]) + 1
    for lane in there:
        own = [f"{span(i.start, i.end)}: {i.label}{i.more}" for i in items if i.lane == lane]
        lines += [f"  {lane if n == 0 else '':<{wide}}{words}" for n, words in enumerate(own)]
    return "\n".join(lines)


def figure(names: Sequence[str], told: Sequence[Sequence[Item]], end: float) -> Figure:
    """The runs one under another, with the same lanes on one axis from 0 to `end` seconds."""
    there = _lanes([item for items in told for item in items])
    heights = [height(items, there, end) for items in told]
    size = (WIDTH, sum(heights) * ROW + len(heights) * AROUND)
    made = Figure(figsize=size, layout="constrained")
    every = made.subplots(len(heights), squeeze=False, gridspec_kw={"height_ratios": heights})
    for axes, items, name in zip(every.flat, told, names, strict=True):
        draw(axes, items, there, end)
        axes.set_title(cut(name, 90), loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel("virtual time (seconds)", fontsize=9)
    return made


def height(items: Sequence[Item], there: Sequence[str], end: float) -> float:
    """How many rows the lanes `there` need."""
    return sum(_rows_of(lane) for lane in (rows(items, name, end) for name in there))


def draw(axes: Axes, items: Sequence[Item], there: Sequence[str], end: float) -> None:
    """Draw the lanes `there`, one under another, from 0 to `end` seconds."""
    lanes = [rows(items, lane, end) for lane in there]
    axes.set(xlim=(-0.01 * end, 1.03 * end), ylim=(sum(map(_rows_of, lanes)), 0))
    axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10]))
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_yticks(_draw(axes, lanes, end), there)
    axes.tick_params(axis="y", length=0)


def rows(items: Sequence[Item], lane: str, end: float) -> list[list[Item]]:
    """The rows of a lane: no bar or label meets another, but in one more that takes the rest.

    Bars come first. Tools go down like stairs, so that none stands above one before it.
    """
    found: list[list[Item]] = [[] for _ in range(MOST_ROWS + 1)]
    own, first = [item for item in items if item.lane == lane], 0
    for item in sorted(own, key=lambda item: bool(item.sign)):
        downwards = (*range(first, MOST_ROWS), *range(first))
        number = next((n for n in downwards if _is_free(found[n], item, end)), MOST_ROWS)
        found[number].append(item)
        first = number % MOST_ROWS if lane == "tools" else 0
    return [sorted(row, key=lambda item: item.start) for row in found if row] or [[]]


def _is_free(row: Sequence[Item], item: Item, end: float) -> bool:
    left, right, _ = reach(item, end)
    taken = [reach(other, end) for other in row]
    return all(right <= begins or ends <= left for begins, ends, _ in taken)


def reach(item: Item, end: float) -> tuple[float, float, str]:
    """From where to where bar and label reach, and the side from which the label is written."""
    wide = (len(cut(item.label, LABEL)) + 3) * CHARACTER * end
    if item.start + wide <= end * 1.03:
        return item.start, max(item.end, item.start + wide), "left"
    return min(item.start, item.end - wide), item.end, "right"


def _rows_of(lane: list[list[Item]]) -> float:
    return len(lane) * _tall(lane)


def _tall(lane: list[list[Item]]) -> float:
    return 1.0 if all(item.sign for row in lane for item in row) else TALL


def _draw(axes: Axes, lanes: list[list[list[Item]]], end: float) -> list[float]:
    """Draw lane under lane; where the middle of each is."""
    top, middles = 0.0, []
    for number, lane in enumerate(lanes):
        tall = _rows_of(lane)
        axes.axhspan(top, top + tall, color="#F4F4F4" if number % 2 else "white", zorder=0)
        middles.append(top + tall / 2)
        for below, row in enumerate(lane):
            for item in row:
                label = cut(item.label, LABEL) if below < MOST_ROWS else ""
                _item(axes, item, label, top + below * _tall(lane) + 0.42, end)
        top += tall
    return middles


def _item(axes: Axes, item: Item, label: str, middle: float, end: float) -> None:
    left, right, side = reach(item, end)
    beside, colour = 0.011 * end if item.sign else 0.0, _LOOKS["colours"][item.colour]
    at = left + beside if side == "left" else right - beside
    axes.text(at, middle, label, ha=side, va="center", fontsize=9)
    if item.sign:
        axes.plot(item.start, middle, item.sign, color=colour, markersize=9)
        return
    middle += 0.63
    ink = _LOOKS["colours"]["ink"]
    look: dict[str, Any] = {"height": 0.6, "edgecolor": ink, "linewidth": 0.7, "zorder": 2}
    width = max(item.end - item.start, 0.005 * end)
    axes.barh(middle, width, left=item.start, color=colour, hatch=item.pattern, **look)
    if item.silent is not None:
        quiet = item.end - item.silent
        axes.barh(middle, quiet, left=item.silent, color="white", hatch="---", **look)
    axes.vlines(item.ticks, middle - 0.3, middle + 0.3, colors=ink, linewidth=0.8, zorder=3)
