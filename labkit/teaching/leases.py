"""Who held which run when: a lane for each worker, with its leases and its writes.

    labkit.leases("leases.frozen")
    labkit.leases(before, beside=after)     # both on one time axis

A bar is a lease as the store gives it: from the claim, through each renewal (a line in it), to the
end of the last one, or until the run is given back. Where a worker is dead, frozen or cut off its
lane is hatched. Below stand the effects, which the referee keeps, and what the judges found.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labkit.simulation import Run, Scenario

from .chart import Chart
from .lease_story import BELOW, MARKS, Told, in_words, story
from .said import as_run, texts
from .timeline import AROUND, CHARACTER, ROW, WIDTH, draw, height

LANE: Final = 0.88  # inches of a worker's lane
LABEL, BAR, UNDER, WORDS = 0.13, 0.39, 0.65, 0.89  # where they stand in it; 0 is its upper edge
LOOKS: Final = {  # of each mark: sign, colour, where in the lane
    "kept": ("o", "green", UNDER),
    "refused": ("X", "red", UNDER),
    "zombie": ("s", "red", UNDER),
    "not_renewed": ("x", "ink", BAR),
    "not_written": ("1", "ink", UNDER),
    "claim_lost": ("D", "orange", LABEL),
    "handed_back": ("<", "blue", UNDER),
    "cancelled": ("P", "orange", UNDER),
}
PALE: Final[Any] = {"facecolor": "#FFFFFF99", "edgecolor": "#888888", "linewidth": 0}
LEGEND: Final = 0.27, 4  # inches of a row of the legend, and how many stand in one
COLOURS: Final = ("sky", "yellow", "pink", "orange")  # of the leases on one run after another


def leases(
    run: Run | Scenario | str,
    beside: Run | Scenario | str | None = None,
    *,
    marks: Sequence[str] = ("", ""),
) -> Chart:
    """The chart of a run with workers, of such a scenario, or of a token; `beside` below it.

    `marks` go before the two headings. Raises `SimulationError` for a run without a claim.
    """
    runs = [as_run(each) for each in ([run] if beside is None else [run, beside])]
    told = [story(each, mark) for each, mark in zip(runs, marks, strict=False)]
    title = f"leases of {' and '.join(each.name for each in told)}"
    return Chart(lambda: _figure(told), "\n\n".join(map(in_words, told)), title)


def _figure(told: Sequence[Told]) -> Figure:
    end = max(each.end for each in told)
    tall = [
        inches
        for each in told
        for inches in (len(each.lanes) * LANE, height(each.below, BELOW, end) * ROW)
    ]
    handles, (inches, across) = _legend(told), LEGEND
    size = (WIDTH, sum(tall) + len(told) * AROUND + ceil(len(handles) / across) * inches)
    made = Figure(figsize=size, layout="constrained")
    ratios = {"height_ratios": tall}
    every = made.subplots(len(tall), squeeze=False, sharex=True, gridspec_kw=ratios).flat
    for each, above, below in zip(told, every[::2], every[1::2], strict=True):
        _draw_leases(above, each)
        _draw_marks(above, each)
        draw(below, each.below, BELOW, end)
        above.set_title(each.name, loc="left", fontsize=11, fontweight="bold")
        below.set_xlabel("virtual time (seconds)", fontsize=9)
        below.tick_params(labelbottom=True)
    made.legend(
        handles=handles, loc="outside lower center", ncols=across, frameon=False, fontsize=9
    )
    return made


def _draw_leases(axes: Axes, told: Told) -> None:
    """The lanes of the workers, one under another, with their leases."""
    colours, lanes = texts("timeline")["colours"], told.lanes
    runs = list(dict.fromkeys(lease.run for lease in told.leases))
    axes.set_ylim(len(lanes), 0)
    axes.set_yticks([number + BAR for number in range(len(lanes))], lanes)
    axes.tick_params(axis="both", length=0, labelbottom=False)
    axes.spines[:].set_visible(False)
    for number in range(len(lanes)):
        axes.axhspan(number, number + 1, color="#F4F4F4" if number % 2 else "white", zorder=0)
    for run, start, end in told.twice:
        axes.axvspan(start, end, color=colours["red"], alpha=0.15, zorder=1)
        _word(axes, start, WORDS, f"two leases on {run} at once")
    free: dict[int, float] = {}
    look: dict[str, Any] = {"height": 0.3, "edgecolor": colours["ink"], "linewidth": 0.7}
    for lease in told.leases:
        top, width = lanes.index(lease.lane), min(lease.end, told.end) - lease.start
        colour = colours[COLOURS[runs.index(lease.run) % len(COLOURS)]]
        axes.barh(top + BAR, width, left=lease.start, color=colour, zorder=2, **look)
        ends = top + BAR - 0.15, top + BAR + 0.15
        axes.vlines(lease.renewals, *ends, colors=colours["ink"], linewidth=0.8, zorder=3)
        if lease.start >= free.get(top, 0.0):  # else there is no room for the words
            word = f"fence {lease.fence}"
            _word(axes, lease.start, top + LABEL, word)
            free[top] = lease.start + len(word) * CHARACTER * told.end


def _draw_marks(axes: Axes, told: Told) -> None:
    """Where a worker was away, what it wrote, and a line at each finding."""
    colours, lanes = texts("timeline")["colours"], told.lanes
    for item in told.away:
        top, width = lanes.index(item.lane), item.end - item.start
        hatched: Any = {"height": 0.96, "hatch": item.pattern, "zorder": 3, **PALE}
        axes.barh(top + 0.5, width, left=item.start, **hatched)
        _word(axes, item.start, top + WORDS, item.label)
    for item in told.marks:
        sign, colour, place = LOOKS[item.sign]
        at = item.start, lanes.index(item.lane) + place
        axes.plot(*at, sign, color=colours[colour], markersize=8, zorder=4)
    for item in told.below:
        if item.lane == "findings":
            axes.axvline(item.start, color=colours["red"], linewidth=1, linestyle=":")


def _word(axes: Axes, x: float, y: float, word: str) -> None:
    under: Any = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
    axes.text(x, y, word, va="center", fontsize=9, zorder=4, bbox=under)


def _legend(told: Sequence[Told]) -> list[Any]:
    colours = texts("timeline")["colours"]
    there = {item.sign for each in told for item in each.marks}
    bar = Patch(facecolor=colours["sky"], edgecolor=colours["ink"], label="lease; a line: renewal")
    pale = Patch(**PALE, hatch="..", label="pale, hatched: its worker is away")
    look: Any = {"linestyle": "none", "markersize": 8}
    return [
        bar,
        *([pale] if any(each.away for each in told) else []),
        *(
            Line2D([], [], marker=sign, color=colours[colour], label=MARKS[kind], **look)
            for kind, (sign, colour, _) in LOOKS.items()
            if kind in there
        ),
    ]
