"""The call chain of a run: which function called which, in which order, read from its places.

    labkit.chain(run)

Calls of one function by one caller are one line, with their number. Behind it stand the virtual
time of the first call and the breakpoints that were passed. A function that code outside of the
recorded source called stands on its own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from matplotlib.figure import Figure

from labkit.simulation import Place, Run

from .chart import BLUE, GREY, INK, RED, Chart, drawable
from .phrases import seconds

WIDTH: Final = 8.2  # inches
ROW: Final = 0.34
_STEP: Final = 0.45  # inches that a callee stands to the right of its caller


@dataclass(slots=True)
class Call:
    """A function as one caller called it: how often, when first, and the breakpoints passed."""

    function: str
    time: float
    origin: str = ""  # of a call that no recorded function made
    times: int = 0
    passed: dict[str, float] = field(default_factory=dict)  # breakpoint -> first time
    calls: dict[tuple[str, str], "Call"] = field(default_factory=dict)


def chain(run: Run) -> Chart:
    """The chart of who calls whom in `run`, with its text form; records the run's places."""
    rows = [row for root in roots(run) for row in _rows(root, 0)]
    name = f"call chain of {run.scenario.name}"
    text = "\n".join([name, *_lines(rows)])
    return Chart(lambda: _figure(name, rows), text, name)


def roots(run: Run) -> list[Call]:
    """The calls that no recorded function made, each with those that it made in turn."""
    top: dict[tuple[str, str], Call] = {}
    by_frame: dict[int, Call] = {}
    for place in run.recorded:
        if place.frame not in by_frame:
            caller = by_frame.get(place.caller)
            among = caller.calls if caller else top
            call = Call(place.function, place.time, "" if caller else _origin(place, top))
            by_frame[place.frame] = among.setdefault((place.task, place.function), call)
            by_frame[place.frame].times += 1
        if place.breakpoint:
            by_frame[place.frame].passed.setdefault(place.breakpoint, place.time)
    return list(top.values())


def _origin(place: Place, top: Mapping[tuple[str, str], Call]) -> str:
    if any(task == place.task for task, _ in top):
        return "called by code that is not recorded"
    return f"task {place.task}"


def _rows(call: Call, depth: int) -> Iterator[tuple[int, Call]]:
    yield depth, call
    for inner in call.calls.values():
        yield from _rows(inner, depth + 1)


def _lines(rows: list[tuple[int, Call]]) -> Iterator[str]:
    wide = max((2 * depth + len(_label(call)) for depth, call in rows), default=0)
    for depth, call in rows:
        told = f"  {'  ' * depth}{_label(call)}".ljust(wide + 4) + seconds(call.time)
        yield told + (f"  passes {_passed(call)}" if call.passed else "")


def _label(call: Call) -> str:
    often = f", {call.times} calls" if call.times > 1 else ""
    return f"{call.function}{often}" + (f" ({call.origin})" if call.origin else "")


def _passed(call: Call) -> str:
    return ", ".join(f"'{name}' at {seconds(time)}" for name, time in call.passed.items())


def _figure(name: str, rows: list[tuple[int, Call]]) -> Figure:
    height = ROW * (len(rows) + 2)
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(height, 0)
    axes.text(0.15, ROW / 2, drawable(name, 90), fontsize=11, fontweight="bold", parse_math=False)
    axes.text(WIDTH - 1.2, ROW / 2, "first call at", fontsize=9, ha="right")
    above: dict[int, float] = {}
    for number, (depth, call) in enumerate(rows):
        middle = ROW * (number + 1.5)
        _box(axes, depth, call, middle, above)
        above[depth] = middle
    return figure


def _box(axes: Any, depth: int, call: Call, middle: float, above: dict[int, float]) -> None:
    left = 0.2 + depth * _STEP
    if depth:
        stem = left - _STEP / 2
        axes.plot([stem, stem], [above[depth - 1] + 0.12, middle], color=INK, linewidth=1)
        axes.annotate(
            "", (left - 0.02, middle), (stem, middle), arrowprops={"arrowstyle": "->", "color": INK}
        )
    box = {"facecolor": GREY if depth else "white", "edgecolor": BLUE, "boxstyle": "round,pad=0.3"}
    label = drawable(_label(call), 60)
    axes.text(
        left + 0.06, middle, label, va="center", fontsize=9.5, family="DejaVu Sans Mono",
        parse_math=False, bbox=box,
    )  # fmt: skip
    axes.text(WIDTH - 1.2, middle, seconds(call.time), va="center", ha="right", fontsize=9)
    if call.passed:
        at = left + 0.3 + len(label) * 0.082
        axes.plot([at], [middle], "D", color=RED, markersize=5)
        told = drawable(", ".join(call.passed), 60)
        axes.text(at + 0.12, middle, told, va="center", fontsize=9, color=INK, parse_math=False)
