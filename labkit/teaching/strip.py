"""An exploration as a strip: a row for each kind of fault, a tick for each point where it struck.

    labkit.strip(labkit.explore("retry.guarded", faults="all"))

A tick stands behind the event that was the last one before its fault; its shape says the verdict,
as its colour does. `Strip.model` is a `Ticks`: the tick that is chosen has a ring, and below the
picture the stepper stands in its run, where the fault struck. Pairs have a row for each first kind.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import accumulate
from math import ceil
from typing import Any, Final

import ipywidgets as ipw
import traitlets
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from labkit.simulation import Exploration, Outcome, Run, SimulationError, View, breakpoints
from labkit.simulation.breakpoints import statements
from labkit.simulation.faults import PROCESS_FAULTS, TASK_FAULTS

from .chart import Chart
from .controls import TwoForms, button, heard, html, pre, row
from .panel import KINDS
from .phrases import cell, printable, seconds, span
from .said import texts
from .stepper import stepper

MOST: Final = 12  # lines that tell of outcomes one by one
LOOKS: Final = {  # of each verdict: matplotlib's sign, colour, size
    "held": ("|", "green", 12),
    "broken": ("X", "red", 10),
    "refused": ("s", "sky", 7),
    "unresolved": ("D", "orange", 7),
}
_WORDS: Final = {kind: words for words, kind in KINDS}
_MEANT: Final = {
    "refused": "refused: the client ended with an error by which it says an honest no",
    "unresolved": "unresolved: nobody can tell, since it has no end or ended with another error",
}
LEAST: Final = 0.3  # inches of a row of ticks
APART: Final = 0.18  # inches between two that stand behind one event
DEEP: Final = 16  # of them; more share the room up to the next event
STEPS: Final = {"Tick": "tick", "Row": "row", "Not held": "tick that did not hold"}


class Ticks(traitlets.HasTraits):
    """Which outcome is chosen: `position`, from 0 to `last`, counts them row by row."""

    last = traitlets.Int()
    position = traitlets.Int()

    def __init__(self, found: Exploration) -> None:
        super().__init__()
        self.found = found
        self.rows: dict[str, list[Outcome]] = {row_of(each): [] for each in found.outcomes}
        for outcome in sorted(found.outcomes, key=lambda each: each.event):
            self.rows[row_of(outcome)].append(outcome)
        self.outcomes = [outcome for own in self.rows.values() for outcome in own]
        self.last = len(self.outcomes) - 1
        bad = (n for n, outcome in enumerate(self.outcomes) if outcome.verdict == "broken")
        self.position = next(bad, 0)

    @traitlets.validate("position")
    def _within(self, proposal: Any) -> int:
        return int(min(max(proposal["value"], 0), self.last))

    @property
    def outcome(self) -> Outcome:
        """The one that is chosen."""
        return self.outcomes[self.position]

    def step(self, over: str, by: int) -> None:
        """To the next "Tick", "Row" or "Not held", or to the one before; never past the ends."""
        every = list(enumerate(self.outcomes))
        stops = {
            "Tick": [n for n, _ in every],
            "Row": [n for n, each in every if each is self.rows[row_of(each)][0]],
            "Not held": [n for n, each in every if each.verdict != "held"],
        }[over]
        there = [stop for stop in stops if (stop - self.position) * by > 0]
        if there:
            self.position = min(there) if by > 0 else max(there)


class Strip(TwoForms):
    """The strip of one exploration; `model` is the tick that is chosen."""

    def __init__(self, found: Exploration) -> None:
        self.model = Ticks(found)
        self.title = f"strip of {found.scenario.name}"

    def text(self) -> str:
        """The counts, and whatever did not hold, in words."""
        model = self.model
        notes = [f"  {each}" for each in _notes(model.found)]
        return "\n".join([*_told(model), *notes, *_bad(model.outcomes)])

    @cached_property
    def chart(self) -> Chart:
        """The picture with its text form, without a tick that is chosen."""
        return Chart(lambda: figure(self.model, None), self.text(), self.title)

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        model, message, picture, told = self.model, html(), html(), html()
        counts, opened = model.found.counts, ipw.VBox()
        meant = (words for verdict, words in _MEANT.items() if counts[verdict])
        notes = html(pre("\n".join([*_notes(model.found), *meant]), wrap=True))
        buttons = [
            button(label, f"to the {which} {what}", partial(model.step, over, by), message)
            for over, what in STEPS.items()
            for label, which, by in ((f"◀ {over}", "previous", -1), (f"{over} ▶", "next", 1))
        ]
        for each in buttons[-2:]:
            each.disabled = counts["held"] == len(model.outcomes)
        number = ipw.BoundedIntText(description="tick", min=1, max=model.last + 1)
        counting = (lambda position: position + 1, lambda value: value - 1)
        traitlets.link((model, "position"), (number, "value"), transform=counting)

        def draw(_: Any = None) -> None:
            outcome = model.outcome
            words = f"tick {model.position + 1} of {model.last + 1} · {_words(outcome)}"
            words += f", {seconds(outcome.time)}"
            told.value = f'<div role="status" style="font-weight:600">{cell(words)}</div>'
            chosen = Chart(lambda: figure(model, model.position), self.text(), self.title)
            picture.value = chosen.html
            run = model.found.run(outcome)
            opened.children = (stepper(run, at=struck_at(run, outcome)).widget,)

        model.observe(heard(draw, message, "working…"), "position")
        heard(draw, message)()
        return ipw.VBox([picture, notes, row(number, *buttons, message), told, opened])


def strip(found: Exploration) -> Strip:
    """The strip of what `labkit.explore` found; raises `SimulationError` where nothing struck."""
    if not isinstance(found, Exploration):
        raise SimulationError(f"give it an exploration, labkit.explore(...), not {found!r}")
    if not found.outcomes:
        raise SimulationError(f"there is nothing to draw, since no fault struck: {found!r}")
    return Strip(found)


def row_of(outcome: Outcome) -> str:
    """The name of its row: the fault's kind and phase, or the first one's kind of two."""
    first, *second = outcome.faults
    return f"{first.kind}, then another" if second else _WORDS[first.kind, first.phase]


def struck_at(run: Run, outcome: Outcome) -> View:
    """The place of the run where its last fault struck.

    Of a task that wakes it is the first one after: there it feels the fault. Else it is the last
    one before: of the task that suspends, or whose process never wakes, where that has one, and of
    any task for other kinds.
    """
    fault, strike = outcome.faults[-1], outcome.event + 1
    own = [place for place in run.recorded if place.task == outcome.point.task]
    woken = [place for place in own if place.event >= strike]
    if fault.phase == "waking" and woken:
        return run.at(woken[0].index)
    before = [place for place in run.recorded if place.event < strike]
    suspends = fault.kind in TASK_FAULTS and fault.phase == "waiting"
    if suspends or fault.kind in PROCESS_FAULTS:
        before = [place for place in own if place.event < strike] or before
    return run.at(before[-1].index if before else 0)


def figure(model: Ticks, chosen: int | None) -> Figure:
    """The picture; a ring is around the tick `chosen`."""
    colours, names, found = texts("timeline")["colours"], list(model.rows), model.found
    tall = [_tall(own) for own in model.rows.values()]
    made = Figure(figsize=(9.6, 1.3 + sum(tall)), layout="constrained")
    axes = made.subplots()
    places = list(_places(model))
    for verdict, (sign, colour, size) in LOOKS.items():
        own = [
            at for at, each in zip(places, model.outcomes, strict=True) if each.verdict == verdict
        ]
        look: Any = {"color": colours[colour], "markersize": size, "linestyle": "none"}
        label = f"{verdict}: {found.counts[verdict]}"
        axes.plot([x for x, _ in own], [y for _, y in own], sign, label=label, **look)
    if chosen is not None:
        ring: Any = {"markerfacecolor": "none", "markeredgecolor": colours["ink"]}
        axes.plot(*places[chosen], "o", markersize=17, markeredgewidth=2, **ring)
    below = list(accumulate(tall))
    axes.set_yticks([end - inches / 2 for end, inches in zip(below, tall, strict=True)], names)
    axes.set_ylim(below[-1], 0)
    axes.tick_params(axis="y", length=0)
    axes.hlines(below[:-1], 0, 1, transform=axes.get_yaxis_transform(), colors="#EEEEEE", zorder=0)
    axes.set_title(f"{found.scenario.name}: {found.struck} runs", loc="left", fontweight="bold")
    axes.set_xlabel("last event before the fault", fontsize=9)
    events = [0, *(outcome.event for outcome in model.outcomes)]
    ticks = MaxNLocator(12, integer=True).tick_values(0, max(1, *events))
    axes.set_xticks([min(events), *(at for at in ticks if 0 < at <= max(events))])
    axes.xaxis.set_major_formatter(lambda at, _: "none" if at < 0 else f"{at:g}")
    axes.spines[["top", "right", "left"]].set_visible(False)
    made.legend(loc="outside lower center", ncols=len(LOOKS), frameon=False, fontsize=9)
    return made


def _places(model: Ticks) -> Iterator[tuple[float, float]]:
    """Where each tick stands: those behind one event one under another, in inches from above."""
    top = LEAST / 2
    for own in model.rows.values():
        together, taken = Counter(outcome.event for outcome in own), Counter[int]()
        for outcome in own:
            column, deep = divmod(taken[outcome.event], DEEP)
            share = column / ceil(together[outcome.event] / DEEP)
            yield outcome.event + share, top + APART * deep
            taken[outcome.event] += 1
        top += _tall(own)


def _tall(own: Sequence[Outcome]) -> float:
    """The inches of a row, from the most that stand behind one event."""
    most = max(Counter(outcome.event for outcome in own).values())
    return LEAST + APART * (min(most, DEEP) - 1)


def _told(model: Ticks) -> Iterator[str]:
    found = model.found
    yield f"{found.scenario.name}: {found.struck} runs, {_counts(model.outcomes)}"
    wide = max(map(len, model.rows))
    for name, own in model.rows.items():
        yield f"  {name:<{wide}}  {len(own)} runs, {_counts(own)}"


def _notes(found: Exploration) -> Iterator[str]:
    """What does not show in the picture."""
    if found.nowhere:
        yield f"no point for: {', '.join(found.nowhere)}"
    if found.missed:
        yield f"{found.missed} more did not strike"
    if found.left_out:
        yield f"{found.left_out} pairs were left out"
    if not found.complete:
        yield "interrupted, so not complete"
    if found.usual:
        yield f"found without any fault, so not counted: {', '.join(found.usual)}"


def _bad(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Whatever did not hold and is no refusal; what differs by its time alone is one line."""
    times: dict[str, list[float]] = {}
    for verdict in ("broken", "unresolved"):
        for outcome in outcomes:
            if outcome.verdict == verdict:
                times.setdefault(_words(outcome), []).append(outcome.time)
    for words, own in list(times.items())[:MOST]:
        yield f"  {len(own)} × {words}, {span(min(own), max(own))}"
    if len(times) > MOST:
        yield f"  and {len(times) - MOST} more of such lines"


def _counts(outcomes: Sequence[Outcome]) -> str:
    counted = Counter(outcome.verdict for outcome in outcomes)
    return ", ".join(f"{counted[verdict]} {verdict}" for verdict in LOOKS if counted[verdict])


def _words(outcome: Outcome) -> str:
    """The verdict and why, the faults, and where the last one struck; no line number."""
    point, verdict = outcome.point, outcome.verdict
    why = ", ".join(outcome.findings) or ("" if verdict == "held" else outcome.error)
    told = f"{verdict} ({why})" if why else verdict
    faults = ", then ".join(_WORDS[fault.kind, fault.phase] for fault in outcome.faults)
    at = f"{point.task} in {point.function}" if point.function else point.task
    marks = breakpoints([point.file]) if point.file else ()
    line = statements(point.file).get(point.line, point.line) if marks else 0
    named = next((f" at breakpoint {m.name!r}" for m in marks if m.line == line), "")
    return printable(f"{told}: {faults}, {at}{named}")
