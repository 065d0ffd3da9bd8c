"""Four cursors of one answer on the virtual clock: generated, sent, seen, saved.

    labkit.cursors("stream.kept~cut@3")
    labkit.injections()                      # the eight faults of the lesson, a row of figures each

Where two lines part, there is a fault, and its kind is which two they are: text that is generated
and not sent, sent and not seen, seen and not saved, or the other way round. The thinner line lies
on the thicker one, so that lines which agree look like one.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from labkit.scenarios.figures import Steps, figures
from labkit.scenarios.figures import cursors as cursors_of
from labkit.simulation import Event, Run, Scenario

from .chart import Chart
from .frames import frame
from .phrases import seconds, span
from .said import as_run, texts
from .token import from_token, token_of

_LINES: Final = {  # colour, width
    "generated": ("sky", 9.0),
    "sent": ("orange", 6.6),
    "seen": ("ink", 4.2),
    "saved": ("pink", 1.8),
}


class Gap(NamedTuple):
    """One cursor is ahead of another by up to `most` characters, from `start` to `end` (seconds).

    `stays`: it still is when the run is over.
    """

    ahead: str
    behind: str
    most: int
    start: float
    end: float
    stays: bool


def cursors(run: Run | Scenario | str) -> Chart:
    """The chart of a run, a scenario or a token."""
    run = as_run(run)
    found = {name: steps for name, steps in cursors_of(run.trace).items() if steps}
    name = f"cursors of {token_of(run) or run.scenario.name}"
    lines = [name]
    for cursor, steps in found.items():
        lines.append(
            f"  {cursor:<10} {steps[-1][1]} characters, the last at {seconds(steps[-1][0])}"
        )
    for gap in gaps(found, run.time):
        when = f"{span(gap.start, gap.end)}{', and stays' if gap.stays else ''}"
        lines.append(f"  {gap.ahead} is ahead of {gap.behind} by {gap.most} characters: {when}")
    lines += [f"  at {seconds(event.time)}: {words}" for event, words in _accidents(run.trace)]
    lines += [f"  fault {fault.kind} at {fault.point} did not strike" for fault in run.missed]
    return Chart(lambda: _figure(run, found, name), "\n".join(lines), name)


def injections(*tokens: str) -> pd.DataFrame:
    """A row of figures for each token's run; of the eight injections where none is given.

    The index holds the tokens: `labkit.from_token(table.index[0])` opens the first row's run.
    """
    known = texts("injections")
    rows = [{"index": token, "injection": known.get(token, "")} for token in tokens or known]
    told = [row | figures(from_token(row["index"])) for row in rows]
    return frame(told).rename_axis("run")


def gaps(found: dict[str, Steps], end: float) -> Iterator[Gap]:
    """Where one cursor is ahead of its neighbour for a while: each time, in the order of time."""
    times = sorted({time for steps in found.values() for time, _ in steps} | {end})
    parts = list[Gap]()
    for one, other in pairwise(found):
        for ahead, behind in ((one, other), (other, one)):
            since, most = end, 0
            for time in times:
                more = _at(found[ahead], time) - _at(found[behind], time)
                if more > 0:
                    since, most = (since if most else time), max(most, more)
                if most and (more <= 0 or time == end):
                    parts.append(Gap(ahead, behind, most, since, time, more > 0))
                    since, most = end, 0
    yield from sorted(parts, key=lambda gap: gap.start)


def _at(steps: Steps, time: float) -> int:
    """Where a cursor stands once everything at `time` has happened."""
    return next((place for moment, place in reversed(steps) if moment <= time), 0)


def _accidents(events: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    for event in events:
        if event.actor == "lab" and event.kind == "fault":
            yield event, f"fault: {event['fault']}"
        elif event.actor == "provider" and event.kind in ("drop", "error", "http_error", "stall"):
            yield event, event.kind.replace("http_error", "refused")
        elif event.actor == "user" and event.kind == "cancel":
            yield event, "the user stops"


def _figure(run: Run, found: dict[str, Steps], name: str) -> Figure:
    colours = texts("timeline")["colours"]
    figure = Figure(figsize=(9.6, 3.6), layout="constrained")
    axes = figure.subplots()
    for cursor, steps in found.items():
        colour, width = _LINES[cursor]
        points = [(0.0, 0), *steps, (run.time, steps[-1][1])]
        look: Any = {"color": colours[colour], "linewidth": width}
        axes.step(*zip(*points, strict=True), where="post", label=cursor, **look)
    for event, words in _accidents(run.trace):
        axes.axvline(event.time, color=colours["ink"], linewidth=0.8, linestyle=":")
        axes.annotate(words, (event.time, 1.0), (3, -3), xycoords=("data", "axes fraction"),
                      textcoords="offset points", va="top", fontsize=9)  # fmt: skip
    axes.set_title(name, loc="left", fontsize=11, fontweight="bold")
    axes.set_xlabel("virtual time (seconds)", fontsize=9)
    axes.set_ylabel("characters", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", frameon=False, fontsize=9, handlelength=3)
    return figure
