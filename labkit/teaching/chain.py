"""The call chain of a run: which function called which, in which order, read from its places.

    labkit.chain(run)

Calls of one function by one caller are one line, with their number. Behind it stand the virtual
time of the first call and the breakpoints that were passed. Under a task stands what no recorded
function called; tasks of one kind, such as `save user` and `save tool`, stand together. A private
helper is told as a part of its caller.
"""

from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure

from labkit.simulation import Run, Scenario

from .chart import Chart
from .phrases import seconds
from .progress import drawn
from .said import as_run

WIDTH: Final = 9.6  # inches
ROW: Final = 0.24


class Call(NamedTuple):
    """A function as one caller called it: the times of its calls, and the breakpoints passed."""

    path: tuple[str, ...]  # the task, the callers, the function
    times: list[float]
    passed: dict[str, float]  # breakpoint -> first time


def chain(run: Run | Scenario | str) -> Chart:
    """The tree of who calls whom in `run`, or in a run of that scenario; `progress` notes it."""
    run = as_run(run)
    lines = [f"call chain of {run.scenario.name}"]
    for call in calls(run):
        depth, often = len(call.path) - 1, len(call.times)
        label = "  " * depth + "└ " * (depth > 0) + call.path[-1]
        label += f", {often} calls" if often > 1 else ""
        passed = [f"'{name}' at {seconds(time)}" for name, time in call.passed.items()]
        passes = f"  passes {', '.join(passed)}" if passed else ""
        lines.append(f"  {label:<40}{seconds(call.times[0]):<8}{passes}".rstrip())
    drawn(run)
    return Chart(lambda: _figure(lines), "\n".join(lines), lines[0])


def calls(run: Run) -> list[Call]:
    """Tasks and calls as one reads a tree: each caller, then all that it called."""
    found: dict[tuple[str, ...], Call] = {}
    by_frame: dict[int, Call] = {}
    for place in run.recorded:
        if place.frame not in by_frame:
            task = (_task(place.task),)
            above = by_frame.get(place.caller) or found.setdefault(
                task, Call(task, [place.time], {})
            )
            if place.function[0].isalpha():  # neither _private nor <lambda>
                path = (*above.path, place.function)
                above = found.setdefault(path, Call(path, [], {}))
                above.times.append(place.time)
            by_frame[place.frame] = above
        if place.breakpoint:
            by_frame[place.frame].passed.setdefault(place.breakpoint, place.time)
    rank = {path: number for number, path in enumerate(found)}
    tree = sorted(found, key=lambda path: [rank[path[:n]] for n in range(1, len(path) + 1)])
    return [found[path] for path in tree]


def _task(name: str) -> str:
    kind, _, more = name.partition(" ")
    return f"tasks {kind} …" if more else f"task {kind}"


def _figure(lines: list[str]) -> Figure:
    height = ROW * (len(lines) + 1)
    figure = Figure(figsize=(WIDTH, height))
    for number, line in enumerate(lines, start=1):
        look: Any = {"family": "DejaVu Sans Mono"} if number > 1 else {"fontweight": "bold"}
        figure.text(0.02, 1 - number * ROW / height, line, **look)
    return figure
