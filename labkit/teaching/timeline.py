"""A run as a chart: who did what, and when, on the virtual clock.

    labkit.timeline(run)
    labkit.timeline(before, beside=after)     # both on one time axis

One lane each for the provider's requests, the client's waits, what the page showed, what was kept,
what came from outside, and the findings. A bar's pattern and label say how it ended, not its
colour alone. The text form lists the same items.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labkit.simulation import Run

from .chart import BLUE, GREEN, GREY, INK, ORANGE, PINK, RED, SKY, YELLOW, Chart, drawable
from .phrases import seconds
from .story import LANES, Item, story

WIDTH: Final = 9.6  # inches, as wide as a notebook at 1280 pixels allows
ROW: Final = 0.27  # inches of a row of marks
TALL: Final = 1.5  # rows: a bar with its label above it
MOST_ROWS: Final = 6  # with labels in a lane; what is left shares one more, without
_LEFT, _RIGHT, _TOP, _BOTTOM = 1.05, 0.15, 0.32, 0.5  # inches around a run's lanes
_CHARACTER: Final = 0.076  # inches of an average one

_BARS: Final = {  # kind -> colour and pattern
    "finished": (GREEN, ""),
    "failed": (RED, "xxx"),
    "stalled": (SKY, ""),
    "left": (GREY, ".."),
    "wait": (GREY, "///"),
    "open": (YELLOW, ""),
    "closed": (YELLOW, ""),
}
_MARKS: Final = {  # kind -> sign and colour
    "checkpoint": ("s", BLUE),
    "draft": ("^", ORANGE),
    "effect": ("*", RED),
    "status": ("d", PINK),
    "cancel": ("X", RED),
    "end": ("|", INK),
    "finding": ("v", RED),
}


def timeline(run: Run, beside: Run | None = None, *, marks: Sequence[str] = ("", "")) -> Chart:
    """The chart of `run`, and of `beside` below it on the same time axis.

    `marks` go before the two headings, such as ("before: ", "after: ").
    """
    runs = [run] if beside is None else [run, beside]
    told = [story(each) for each in runs]
    names = [mark + heading(each) for mark, each in zip(marks, runs, strict=False)]
    text = "\n\n".join(_text(name, items) for name, items in zip(names, told, strict=True))
    return Chart(lambda: _figure(runs, told, names), text, f"timeline of {' and '.join(names)}")


def heading(run: Run) -> str:
    """The run in one line: scenario, how it ended, and when."""
    how = "ends" if run.error is None else f"ends with {type(run.error).__name__}"
    return f"{run.scenario.name}: {how} at {seconds(run.time)}"


def _text(name: str, items: Sequence[Item]) -> str:
    lines = [name]
    for lane in LANES:
        own = [item.words for item in items if item.lane == lane]
        lines += [f"  {lane if n == 0 else '':<14}{words}" for n, words in enumerate(own)]
    return "\n".join(lines)


def _figure(runs: Sequence[Run], told: Sequence[list[Item]], names: Sequence[str]) -> Figure:
    there = {item.lane for items in told for item in items}
    lanes = [lane for lane in LANES if lane in there]
    end = max(max(run.time for run in runs), 0.001)
    layouts = [_Layout(items, lanes, end) for items in told]
    heights = [layout.rows * ROW for layout in layouts]
    gap = _TOP + _BOTTOM
    total = sum(heights) + gap * len(layouts)
    figure = Figure(figsize=(WIDTH, total))
    below = total
    for layout, height, name in zip(layouts, heights, names, strict=True):
        below -= _TOP + height
        wide = (WIDTH - _LEFT - _RIGHT) / WIDTH
        axes = figure.add_axes((_LEFT / WIDTH, below / total, wide, height / total))
        below -= _BOTTOM
        axes.set_title(
            drawable(name, 90), loc="left", fontsize=11, fontweight="bold", parse_math=False
        )
        layout.draw(axes)
    return figure


@dataclass(frozen=True, slots=True)
class _Placed:
    item: Item
    top: float  # in rows, from above
    label: str
    at: float  # seconds; `side` of the label stands here
    side: str


class _Layout:
    """Gives each item a row of its lane in which neither its bar nor its label meets another."""

    def __init__(self, items: Sequence[Item], lanes: Sequence[str], end: float) -> None:
        self.end = end
        self.inch = end * 1.04 / (WIDTH - _LEFT - _RIGHT)  # seconds in one
        self.placed: list[_Placed] = []
        self.lanes: list[tuple[str, float, float]] = []  # name, top, height, in rows
        self.rows = 0.0
        for lane in lanes:
            height = self._lane([item for item in items if item.lane == lane])
            self.lanes.append((lane, self.rows, height))
            self.rows += height

    def _lane(self, items: Sequence[Item]) -> float:
        taken = [-self.end] * MOST_ROWS
        tall = TALL if any(item.kind in _BARS for item in items) else 1.0
        used = 1
        for item, label in _merged(items):
            at, side, left, right = self._room(item, label)
            row = next((n for n, until in enumerate(taken) if until <= left), MOST_ROWS)
            if row < MOST_ROWS:
                taken[row] = right + 0.1 * self.inch
            shown = label if row < MOST_ROWS else ""
            self.placed.append(_Placed(item, self.rows + row * tall, shown, at, side))
            used = max(used, row + 1)
        return used * tall

    def _room(self, item: Item, label: str) -> tuple[float, str, float, float]:
        """Where the label stands, and from where to where bar and label reach."""
        wide = len(label) * _CHARACTER * self.inch
        shift = 0.0 if item.kind in _BARS else 0.1 * self.inch
        if item.start + shift + wide <= self.end * 1.03:
            return item.start + shift, "left", item.start, max(item.end, item.start + shift + wide)
        return item.end - shift, "right", min(item.start, item.end - shift - wide), item.end

    def draw(self, axes: Axes) -> None:
        """Put everything on `axes`."""
        axes.set_xlim(-0.01 * self.end, self.end * 1.03)
        axes.set_ylim(self.rows, 0)
        axes.xaxis.set_major_locator(MaxNLocator(9, steps=[1, 2, 5, 10]))
        axes.set_xlabel("virtual time (seconds)", fontsize=9)
        axes.set_yticks([top + height / 2 for _, top, height in self.lanes])
        axes.set_yticklabels([name for name, _, _ in self.lanes])
        axes.tick_params(axis="y", length=0)
        for number, (_, top, height) in enumerate(self.lanes):
            axes.axhspan(top, top + height, color="#F4F4F4" if number % 2 else "white", zorder=0)
        for edge in ("top", "right", "left"):
            axes.spines[edge].set_visible(False)
        for placed in self.placed:
            _draw(axes, placed, self.inch)


def _merged(items: Sequence[Item]) -> Iterator[tuple[Item, str]]:
    """Items with their labels; marks that say the same at the same time become one."""
    same = Counter((item.start, item.label) for item in items if item.kind not in _BARS)
    for (start, label), group in groupby(items, key=lambda item: (item.start, item.label)):
        count = same[start, label]
        told = drawable(label) + (f" ({count} times)" if count > 1 else "")
        yield from [(item, told) for item in group][: 1 if count else None]


def _draw(axes: Axes, placed: _Placed, inch: float) -> None:
    item, middle = placed.item, placed.top + 0.5
    if item.kind in _BARS:
        _bar(axes, item, placed.top + 1.05, inch)
        middle = placed.top + 0.42
    else:
        sign, colour = _MARKS.get(item.kind, ("o", INK))
        axes.plot([item.start], [middle], sign, color=colour, markersize=9, zorder=4)
    axes.text(
        placed.at, middle, placed.label, ha=placed.side, va="center", fontsize=9, parse_math=False
    )


def _bar(axes: Axes, item: Item, middle: float, inch: float) -> None:
    colour, hatch = _BARS[item.kind]
    width = max(item.end - item.start, 0.04 * inch)
    look: dict[str, Any] = {"height": 0.6, "edgecolor": INK, "linewidth": 0.7}
    axes.barh(middle, width, left=item.start, color=colour, hatch=hatch, **look, zorder=2)
    if item.silent is not None:
        quiet = item.end - item.silent
        axes.barh(middle, quiet, left=item.silent, color="white", hatch="---", **look, zorder=2.5)
    if item.ticks:
        thin = 0.9 if len(item.ticks) < 80 else 0.3
        axes.vlines(item.ticks, middle - 0.3, middle + 0.3, colors=INK, linewidth=thin, zorder=3)
    if item.kind == "closed":
        axes.vlines([item.end], middle - 0.45, middle + 0.45, colors=INK, linewidth=3, zorder=4)
