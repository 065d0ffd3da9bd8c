"""Many sessions as a chart: a lane each for its turns and messages, and the gate as a level.

    labkit.lanes("sessions.gate")

Bars of one lane that overlap would be two turns of one session at once. A hatched bar is a message
that waits, for its session's lock or for the gate.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from matplotlib.figure import Figure

from labkit.simulation import Event, Run, Scenario, SimulationError

from .chart import Chart
from .phrases import seconds, span
from .said import as_run, texts
from .timeline import AROUND, ROW, WIDTH, Item, draw, height

WAYS: Final = {  # how a message went -> words, colour, sign
    "mailbox": ("{} into the mailbox", "blue", "v"),
    "at once": ("{} at once", "red", "X"),
    "dropped": ("{} dropped", "red", "x"),
    "injected": ("{} joins the turn", "blue", "D"),
}
KINDS: Final = ("routed", "dropped", "injected")
OUTCOMES: Final = {"done": ("green", ""), "stopped": ("grey", ".."), "failed": ("red", "xxx")}
MOST: Final = 20  # rows of one session
LEVEL: Final = 1.1  # inches
Level = list[tuple[float, int]]


def lanes(run: Run | Scenario | str) -> Chart:
    """The chart of a run with a dispatcher, of such a scenario, or of a token.

    Raises `SimulationError` for a run without one.
    """
    run = as_run(run)
    if not any(event.kind in ("routed", "turn_start") for event in run.trace):
        raise SimulationError(f"{run.scenario.name} has no sessions: try 'sessions.three'")
    items, level, limit = list(story(run)), running(run.trace), _limit(run.trace)
    allowed = f"the gate lets {limit} through" if limit > 0 else "there is no gate"
    name = f"{run.scenario.name}: {allowed}; ends at {seconds(run.time)}"
    told = [event["session"] for event in run.trace if event.kind in KINDS]
    names = list(dict.fromkeys([*told, *(item.lane for item in items)]))
    lines = [name]
    for lane in names:
        own = [f"{span(i.start, i.end)}: {i.label}" for i in items if i.lane == lane]
        lines += [f"  {lane if n == 0 else '':<8}{words}" for n, words in enumerate(own)]
    lines += [f"  running at most {max((number for _, number in level), default=0)} at a time"]
    return Chart(
        lambda: _figure(name, items, names, level, limit, max(0.001, run.time)),
        "\n".join(lines),
        name,
    )


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
    over = _next(events, event, "turn_start") or _next(events, event, "dropped") or events[-1]
    if over.time > event.time:
        label = f"{message} waits" + (", left over" if way == "leftover" else "")
        yield Item(lane, event.time, over.time, label, "grey", pattern="///")


def running(events: Sequence[Event]) -> Level:
    """(time, number of turns that run when all of that moment has happened), at each change."""
    number, level = 0, dict[float, int]()
    for event in events:
        if event.kind in ("turn_start", "turn_end"):
            number += 1 if event.kind == "turn_start" else -1
            level[event.time] = number
    return list(level.items())


def _limit(events: Sequence[Event]) -> int:
    return next((int(event["limit"]) for event in events if event.kind == "gate"), 0)


def _next(events: Sequence[Event], event: Event, kind: str) -> Event | None:
    """What next happened to the message of `event`."""
    message = (event["session"], event["message"])
    return next(
        (e for e in events[event.index + 1 :] if e.kind == kind and _message(e) == message), None
    )


def _message(event: Event) -> tuple[Any, Any]:
    return event.get("session"), event.get("message")


def _figure(
    name: str, items: Sequence[Item], names: Sequence[str], level: Level, limit: int, end: float
) -> Figure:
    colours = texts("timeline")["colours"]
    tall = [height(items, names, end, MOST) * ROW, LEVEL]
    figure = Figure(figsize=(WIDTH, sum(tall) + AROUND), layout="constrained")
    above, below = figure.subplots(2, sharex=True, gridspec_kw={"height_ratios": tall})
    draw(above, items, names, end, MOST)
    above.set_title(name, loc="left", fontsize=11, fontweight="bold")
    points = [(0.0, 0), *level, (end, level[-1][1] if level else 0)]
    times, numbers = zip(*points, strict=True)
    below.fill_between(times, numbers, step="post", color=colours["sky"], edgecolor=colours["ink"])
    if limit > 0:
        below.axhline(limit, color=colours["red"], linestyle="--", linewidth=1)
        below.annotate(f"gate: {limit}", (end, limit), ha="right", va="bottom", fontsize=9)
    below.set(ylim=(0, max(limit, *numbers) + 1), xlabel="virtual time (seconds)")
    below.set_ylabel("running", fontsize=9)
    below.spines[["top", "right"]].set_visible(False)
    return figure
