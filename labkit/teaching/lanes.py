"""Many sessions as a chart: a lane each for its turns and messages, and the gate as a level.

    labkit.lanes("sessions.gate")
    labkit.lanes(before, beside=after)     # both on one time axis

Bars of one lane that overlap would be two turns of one session at once. A hatched bar is a message
that waits, for its session's lock or for the gate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labkit.scenarios.session_judges import levels
from labkit.simulation import Event, Run, Scenario, SimulationError

from .chart import Chart
from .phrases import seconds, span
from .said import as_run, texts
from .timeline import AROUND, ROW, WIDTH, Item, draw, height

WAYS: Final = {  # how a message went -> words, colour, sign
    "mailbox": ("{} into the mailbox", "blue", "v"),
    "at once": ("{} at once", "red", "X"),
    "dropped": ("{} dropped", "red", "x"),
    "unanswered": ("{} stopped before it began", "red", "x"),
    "injected": ("{} joins the turn", "blue", "D"),
}
KINDS: Final = ("routed", "dropped", "unanswered", "injected")
FATES: Final = ("turn_start", "dropped", "unanswered")
OUTCOMES: Final = {"done": ("green", ""), "stopped": ("grey", ".."), "failed": ("red", "xxx")}
LEVEL: Final = 1.1  # inches
Level = list[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Told:
    """What the picture and the text form of one run are made from."""

    name: str
    items: Sequence[Item]
    sessions: Sequence[str]
    level: Level
    limit: int


def lanes(
    run: Run | Scenario | str,
    beside: Run | Scenario | str | None = None,
    *,
    marks: Sequence[str] = ("", ""),
) -> Chart:
    """The chart of a run with a dispatcher, of such a scenario, or of a token; `beside` below it.

    `marks` go before the two headings. Raises `SimulationError` for a run without a dispatcher.
    """
    runs = [as_run(each) for each in ([run] if beside is None else [run, beside])]
    told = [_told(each, mark) for each, mark in zip(runs, marks, strict=False)]
    end = max(0.001, *(each.time for each in runs))
    title = f"lanes of {' and '.join(each.name for each in told)}"
    return Chart(lambda: _figure(told, end), "\n\n".join(map(_text, told)), title)


def has_lanes(run: Run) -> bool:
    """Whether a message came to a session in `run`."""
    return any(event.kind in ("routed", "turn_start") for event in run.trace)


def _told(run: Run, mark: str) -> Told:
    if not has_lanes(run):
        ended = f"; it ended with {type(run.error).__name__}: {run.error}" if run.error else ""
        name = run.scenario.name
        raise SimulationError(f"this run of {name} has no sessions: try 'sessions.three'{ended}")
    items, limit = list(story(run)), _limit(run.trace)
    allowed = f"the gate lets {limit} through" if limit > 0 else "there is no gate"
    name = f"{mark}{run.scenario.name}: {allowed}; ends at {seconds(run.time)}"
    told = [event["session"] for event in run.trace if event.kind in KINDS]
    sessions = list(dict.fromkeys([*told, *(item.lane for item in items)]))
    return Told(name, items, sessions, running(run.trace), limit)


def _text(told: Told) -> str:
    lines = [told.name]
    for session in told.sessions:
        own = [f"{span(i.start, i.end)}: {i.label}" for i in told.items if i.lane == session]
        lines += [f"  {session if n == 0 else '':<8}{words}" for n, words in enumerate(own)]
    most = max((number for _, number in told.level), default=0)
    return "\n".join([*lines, f"  running at most {most} at a time"])


def story(run: Run) -> Iterator[Item]:
    """The turns, and then what became of each message on its way to one."""
    told = [event for event in run.trace if event.kind in (*KINDS, "turn_start")]
    for event in told:
        if event.kind == "turn_start":
            end = _next(run.trace, event, "turn_end")
            outcome = end["outcome"] if end else "left"
            colour, pattern = OUTCOMES.get(outcome, ("grey", ".."))
            until, label = (end or run.trace[-1]).time, f"{event['message']}: {outcome}"
            yield Item(event["session"], event.time, until, label, colour, pattern=pattern)
    for event in told:
        if event.kind != "turn_start":
            yield from _way(run.trace, event)


def _way(events: Sequence[Event], event: Event) -> Iterator[Item]:
    lane, message, way = event["session"], event["message"], event.get("way", event.kind)
    if way in WAYS:
        words, colour, sign = WAYS[way]
        yield Item(lane, event.time, event.time, words.format(message), colour, sign=sign)
        return
    over = _next(events, event, *FATES) or events[-1]
    if over.time > event.time:
        label = f"{message} waits" + (", left over" if way == "leftover" else "")
        yield Item(lane, event.time, over.time, label, "grey", pattern="///")


def running(events: Sequence[Event]) -> Level:
    """(time, number of turns that run when all of that moment has happened), at each change."""
    level = {event.time: number for event, number in levels(events)}
    return list(level.items())


def _limit(events: Sequence[Event]) -> int:
    return next((int(event["limit"]) for event in events if event.kind == "gate"), 0)


def _next(events: Sequence[Event], event: Event, *kinds: str) -> Event | None:
    """What next happened to the message of `event`."""
    message = (event["session"], event["message"])
    after = events[event.index + 1 :]
    return next((e for e in after if e.kind in kinds and _message(e) == message), None)


def _message(event: Event) -> tuple[Any, Any]:
    return event.get("session"), event.get("message")


def _figure(told: Sequence[Told], end: float) -> Figure:
    tall = [
        inches for each in told for inches in (height(each.items, each.sessions, end) * ROW, LEVEL)
    ]
    figure = Figure(figsize=(WIDTH, sum(tall) + len(told) * AROUND), layout="constrained")
    ratios = {"height_ratios": tall}
    every = figure.subplots(len(tall), squeeze=False, sharex=True, gridspec_kw=ratios).flat
    for each, above, below in zip(told, every[::2], every[1::2], strict=True):
        draw(above, each.items, each.sessions, end)
        above.set_title(each.name, loc="left", fontsize=11, fontweight="bold")
        _draw_level(below, each, end)
    return figure


def _draw_level(axes: Axes, told: Told, end: float) -> None:
    colours, limit, level = texts("timeline")["colours"], told.limit, told.level
    points = [(0.0, 0), *level, (end, level[-1][1] if level else 0)]
    times, numbers = zip(*points, strict=True)
    axes.fill_between(times, numbers, step="post", color=colours["sky"], edgecolor=colours["ink"])
    if limit > 0:
        axes.axhline(limit, color=colours["red"], linestyle="--", linewidth=1)
        axes.annotate(f"gate: {limit}", (end, limit), ha="right", va="bottom", fontsize=9)
    axes.set(ylim=(0, max(limit, *numbers) + 1), xlabel="virtual time (seconds)")
    axes.tick_params(labelbottom=True)
    axes.set_ylabel("running", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
