"""Steps through a recorded run, backwards and forwards, over source lines and over events.

    labkit.stepper(run)                      # or a scenario's name
    labkit.stepper(run, at="retry guard")

`Steps` is the model: where it stands, and how it moves. `Stepper` is one view of it, with a text
form. Each stepper has a model of its own, so two on one run do not move each other.
"""

from bisect import bisect_right
from functools import cached_property, partial
from itertools import chain
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from labkit.simulation import Run, Scenario, View
from labkit.simulation.breakpoints import short, source

from .controls import MARK, MONO, TwoForms, button, heard, html, parts, pre, row, table
from .phrases import cell, seconds
from .said import as_run
from .views import has_page, local_rows, page, view_text

ALL: Final = "all tasks"
FEW: Final = 12  # tasks that have a button each; more are a list
RECENT: Final = 6  # events
LINES: Final = 17  # of source
LONG: Final = 60  # characters of a value that stands below the others
TURN: Final = 9  # lines; the window turns like a page, so that the arrow wanders and not the text
END: Final = 10**9  # more steps than any run has
MOVES: Final = (  # the button, what it does, over what, how far
    ("⏮ First", "to the first place", "line", -END),
    ("◀ Back", "one line back", "line", -1),
    ("Next ▶", "one line on", "line", 1),
    ("Last ⏭", "to the last place", "line", END),
    ("◀ Event", "to the event before", "event", -1),
    ("Event ▶", "to the next event", "event", 1),
    ("◀ Breakpoint", "to the breakpoint before", "breakpoint", -1),
    ("Breakpoint ▶", "to the next breakpoint", "breakpoint", 1),
)


class Steps(traitlets.HasTraits):
    """Where a stepper stands: `position` counts the places of `task`, or of ALL, to `last`."""

    task = traitlets.Unicode(ALL)
    last = traitlets.Int()
    position = traitlets.Int()

    def __init__(self, run: Run, index: int = 0) -> None:
        super().__init__()
        self.run = run
        self.tasks = (ALL, *dict.fromkeys(place.task for place in run.recorded))
        self._choose(index)

    @traitlets.validate("position")
    def _within(self, proposal: Any) -> int:
        return int(min(max(proposal["value"], 0), self.last))

    @traitlets.observe("task")
    def _stay_near(self, _: Any) -> None:
        self._choose(self.view.index)

    def _choose(self, index: int) -> None:
        """Stand at the task's place of that index, or at its last one before."""
        self.own = [p for p in self.run.recorded if self.task in (ALL, p.task)]
        self.last = len(self.own) - 1
        self.position = bisect_right(self.own, index, key=lambda place: place.index) - 1

    @property
    def view(self) -> View:
        """The place where it stands."""
        return View(self.run, self.own[self.position])

    def step(self, over: str, by: int) -> None:
        """On by so many "line", "event" or "breakpoint" steps, or back; never past the ends.

        An event's step is to the first place after it.
        """
        stops = [n for n, place in enumerate(self.own) if over == "line" or place.breakpoint]
        if over == "event":
            first = {place.event: n for n, place in reversed([*enumerate(self.own)])}
            stops = sorted(first.values())
        ahead = [stop for stop in stops if stop > self.position]
        behind = [stop for stop in stops if stop < self.position]
        for reached in ahead[:by][-1:] if by > 0 else behind[by:][:1]:
            self.position = reached


class Stepper(TwoForms):
    """A stepper on one run; `model` is where it stands."""

    def __init__(self, run: Run, index: int) -> None:
        self.model = Steps(run, index)
        self.title = f"stepper of {run.scenario.name}: {self.model.view!r}"

    def text(self) -> str:
        """The text form of the place where it stands."""
        return view_text(self.model.view)

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        steps, message, shown = self.model, html(), html()
        buttons = [
            button(label, tip, partial(steps.step, over, by), message)
            for label, tip, over, by in MOVES
        ]
        slider = ipw.IntSlider(readout=False, continuous_update=False)
        number = ipw.BoundedIntText(description="place")  # since a slider's handle has no name
        names = [(name or "a callback", name) for name in steps.tasks]
        kind = ipw.ToggleButtons if len(names) <= FEW else ipw.Dropdown
        task = kind(description="task", options=names)
        for control in (slider, number):
            traitlets.link((steps, "last"), (control, "max"))
            traitlets.link((steps, "position"), (control, "value"))
        traitlets.link((steps, "task"), (task, "value"))
        choice = [task] if len(steps.tasks) > 2 else []  # all of them, and each one

        def draw(_: Any = None) -> None:
            shown.value = markup(steps)
            marked = any(place.breakpoint for place in steps.own)
            for (_, _, over, _), each in zip(MOVES, buttons, strict=True):
                each.disabled = over == "breakpoint" and not marked

        steps.observe(heard(draw, message), ["position", "task"])
        draw()
        return ipw.VBox([row(*buttons), row(number, slider, *choice), message, shown])


def stepper(run: Run | Scenario | str, at: View | str | int = 0) -> Stepper:
    """A stepper on `run`, or on a run of that scenario; it starts at `at`.

    `at`: a view, a breakpoint's name, or a place's number; the first place by default.
    """
    made = as_run(run)
    if isinstance(at, View):
        return Stepper(made, at.index)
    return Stepper(made, made.to(at).index if isinstance(at, str) else made.at(at).index)


def decided_at(run: Run) -> View:
    """The last place before the event that decides: that of the first finding.

    Without findings it is where the first try ends in an error; without one, the end of the run.
    """
    failed = (event.index for event in run.trace if event.kind == "tried" and event["error"])
    found = (finding.event for finding in run.findings)
    at = next(chain(found, failed), len(run.trace))
    before = [place.index for place in run.recorded if place.event < at]
    return run.at(max(before, default=0))


def markup(steps: Steps) -> str:
    """One place: when and where, then source and locals, then events and what the user saw."""
    view, place = steps.view, steps.view.place
    where = f"virtual time {seconds(place.time)} · place {steps.position} of {steps.last}"
    where += f" · in {place.function} · task {place.task}"
    if place.breakpoint:
        where += f" · at breakpoint: {place.breakpoint}"
    events = "\n".join(repr(event) for event in view.events[-RECENT:]) or "none yet"
    seen = pre("\n".join(page(view.segments)), wrap=True)
    changed_first = sorted(local_rows(view), key=lambda row: (not row[2], len(row[1]) >= LONG))
    rows = [("name", "value before the line", ""), *changed_first]
    told = f'<div role="status" style="font-size:15px;font-weight:600">{cell(where)}</div>'
    told += parts(
        (short(place.file), _source(view)),
        ("locals", table(rows)),
        height="376px",
        flex=("2 1 440px", "1 1 220px"),
    )
    beside = [("seen by the user", seen)] if has_page(view.run) else []
    return told + parts(("last events", pre(events)), *beside)


def _source(view: View) -> str:
    first = max(1, (view.place.line - 1) // TURN * TURN - 3)
    told = ""
    for number, text in enumerate(source(view.place.file)[first - 1 :][:LINES], start=first):
        here = number == view.place.line
        arrow, mark = ("→", f' style="{MARK}" aria-current="step"') if here else (" ", "")
        told += f"<div{mark}>{cell(f'{arrow} {number:>4}  {text}')}</div>"
    return f'<pre style="margin:0;white-space:pre;{MONO}">{told}</pre>'
