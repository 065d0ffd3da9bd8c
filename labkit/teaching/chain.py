"""The call chain of a run: which function called which, in which order, read from its places.

    labkit.chain(run)

Calls of one function by one caller are one line, with their number. Behind it stand the virtual
time of the first call and the breakpoints that were passed. Under a task stands what no recorded
function called.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from matplotlib.figure import Figure

from labkit.simulation import Run

from .chart import BLUE, Chart
from .phrases import cut, seconds

WIDTH: Final = 8.2  # inches
ROW: Final = 0.34
STEP: Final = 0.45  # inches that a callee stands to the right of its caller
_BOX: Final = {"facecolor": "#EEEEEE", "edgecolor": BLUE, "boxstyle": "round,pad=0.3"}
_ELBOW: Final = {"arrowstyle": "->", "connectionstyle": "angle,angleA=90,angleB=0", "shrinkB": 0}


class Call(NamedTuple):
    """A function as one caller called it: the times of its calls, and the breakpoints passed."""

    path: tuple[str, ...]  # the task, the callers, the function
    times: list[float]
    passed: dict[str, float]  # breakpoint -> first time

    @property
    def label(self) -> str:
        """The function, and how often it was called."""
        return self.path[-1] + (f", {len(self.times)} calls" if len(self.times) > 1 else "")


def chain(run: Run) -> Chart:
    """The chart of who calls whom in `run`, with its text form; records the run's places."""
    found = calls(run)
    lines = [f"call chain of {run.scenario.name}"]
    for call in found:
        passed = ", ".join(f"'{name}' at {seconds(time)}" for name, time in call.passed.items())
        label = f"{'  ' * len(call.path)}{call.label}"
        lines.append(f"{label:<40}  {seconds(call.times[0])}{passed and f'  passes {passed}'}")
    return Chart(lambda: _figure(lines[0], found), "\n".join(lines), lines[0])


def calls(run: Run) -> list[Call]:
    """Tasks and calls as one reads a tree: each caller, then all that it called."""
    found: dict[tuple[str, ...], Call] = {}
    by_frame: dict[int, Call] = {}
    for place in run.recorded:
        if place.frame not in by_frame:
            task = (f"task {place.task}",)
            above = by_frame.get(place.caller) or found.setdefault(
                task, Call(task, [place.time], {})
            )
            path = (*above.path, place.function)
            by_frame[place.frame] = found.setdefault(path, Call(path, [], {}))
            by_frame[place.frame].times.append(place.time)
        if place.breakpoint:
            by_frame[place.frame].passed.setdefault(place.breakpoint, place.time)
    rank = {path: number for number, path in enumerate(found)}
    tree = sorted(found, key=lambda path: [rank[path[:n]] for n in range(1, len(path) + 1)])
    return [found[path] for path in tree]


def _figure(title: str, found: Sequence[Call]) -> Figure:
    height = ROW * (len(found) + 1.3)
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    axes.text(0.15, ROW / 2, cut(title, 90), fontsize=11, fontweight="bold")
    axes.text(WIDTH - 0.2, ROW / 2, "first call at", ha="right")
    above: dict[tuple[str, ...], float] = {}  # where the box of each path stands
    for number, call in enumerate(found, start=1):
        left, middle = STEP * (len(call.path) - 0.4), ROW * (number + 0.5)
        if caller := call.path[:-1]:
            start = (left - STEP / 2, above[caller] + 0.12)
            axes.annotate("", (left - 0.05, middle), start, arrowprops=_ELBOW)
        above[call.path] = middle
        label, passed = cut(call.label, 60), "".join(f"◆ {name}  " for name in call.passed)
        axes.text(left, middle, label, family="DejaVu Sans Mono", va="center", bbox=_BOX)
        axes.text(left + 0.2 + len(label) * 0.085, middle, cut(passed, 60), va="center")
        axes.text(WIDTH - 0.2, middle, seconds(call.times[0]), ha="right", va="center")
    return figure
