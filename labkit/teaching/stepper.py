"""Steps through a recorded run, backwards and forwards, over source lines and over events.

    labkit.stepper(run)                      # or a scenario's name
    labkit.stepper(run, at="retry guard")

`Steps` is the model: where it stands, and how it moves. `Stepper` is one view of it, with a text
form. Each stepper has a model of its own, so two on one run do not move each other.
"""

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from labkit.scenarios import catalogue
from labkit.simulation import Run, Scenario, Unknown, View
from labkit.simulation.breakpoints import short, source

from .controls import MARK, MONO, TwoForms, button, cell, heading, heard, html, pre, row, table
from .phrases import seconds
from .views import caller_locals, opaque, run_text, shown, view_text

LINES: Final = 17  # of source
HEIGHT: Final = "356px"  # of source and locals, so that nothing below them moves
MARGIN: Final = 3  # the arrow wanders through the window, and the window follows near its edges
RECENT: Final = 6  # events
MOST: Final = 70  # characters of a value
ALL: Final = "all tasks"
ELSEWHERE: Final = ("(not at one)", -1)
MOST_PASSES: Final = 200  # in the list of breakpoints


class Steps(traitlets.HasTraits):
    """Where a stepper stands: `index` counts the run's places, `task` names the one to stay in.

    With `task` set to `ALL` it goes through the places of every task as they happened.
    """

    index = traitlets.Int()
    task = traitlets.Unicode(ALL)

    def __init__(self, run: Run, index: int = 0) -> None:
        self.run = run
        self.tasks = tuple(dict.fromkeys(place.task for place in run.recorded))
        self._own: list[int] = []
        self._choose(ALL)
        super().__init__(index=index)

    def _choose(self, task: str) -> None:
        places = self.run.recorded
        self._own = [p.index for p in places if task in (ALL, p.task)]
        self._events = [places[index].event for index in self._own]
        self._marked = [index for index in self._own if places[index].breakpoint]

    @traitlets.validate("index")
    def _known_index(self, proposal: Any) -> int:
        index: int = proposal["value"]
        return self.run.at(index).index

    @traitlets.validate("task")
    def _known_task(self, proposal: Any) -> str:
        if proposal["value"] not in (ALL, *self.tasks):
            raise Unknown("task", proposal["value"], (ALL, *self.tasks))
        return str(proposal["value"])

    @traitlets.observe("task")
    def _stay_near(self, change: Any) -> None:
        self._choose(change["new"])
        self.position = self.position  # the task's place at this index, or the nearest before

    @property
    def view(self) -> View:
        """The place where it stands."""
        return self.run.at(self.index)

    @property
    def last(self) -> int:
        """The number of the task's last place."""
        return len(self._own) - 1

    @property
    def position(self) -> int:
        """The number of the place within the task, from 0; set it to move, within the bounds."""
        return max(0, bisect_right(self._own, self.index) - 1)

    @position.setter
    def position(self, position: int) -> None:
        self.index = self._own[min(max(position, 0), self.last)]

    def event_step(self, by: int) -> None:
        """To the first place after the next event, or after the one before."""
        there = sorted(set(self._events))
        number = bisect_left(there, self._events[self.position]) + by
        self.position = bisect_left(self._events, there[min(max(number, 0), len(there) - 1)])

    @property
    def passes(self) -> list[tuple[str, int]]:
        """The task's passes of breakpoints: the words for one, and its index."""
        places = self.run.recorded
        return [(f"{places[n].breakpoint}, {seconds(places[n].time)}", n) for n in self._marked]

    def breakpoint_step(self, by: int) -> None:
        """To the next breakpoint, or to the one before; where there is none, stay."""
        before = bisect_left(self._marked, self.index)
        number = bisect_right(self._marked, self.index) if by > 0 else before - 1
        if 0 <= number < len(self._marked):
            self.index = self._marked[number]


class Stepper(TwoForms):
    """A stepper on one run; `model` is where it stands."""

    def __init__(self, run: Run, at: View) -> None:
        self.model = Steps(run, at.index)
        self.title = f"stepper of {run.scenario.name}: {at!r}"
        self._top = 0
        self._file = ""

    def text(self) -> str:
        """The text form of the place where it stands."""
        return view_text(self.model.view)

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        self._message = html()
        self._clock = html()
        self._source = html(flex="8 1 440px", min_width="0", height=HEIGHT, overflow="auto")
        self._locals = html(flex="5 1 300px", min_width="0", height=HEIGHT, overflow="auto")
        self._page = html(flex="5 1 300px", min_width="0")
        self._recent = html(flex="8 1 440px", min_width="0", overflow="auto")
        rows = [*self._controls(), self._message, self._clock]
        rows += [row(self._source, self._locals)]
        rows += [row(self._recent, self._page)]
        self.model.observe(heard(self._draw, self._message), ["index", "task"])
        self._draw()
        return ipw.VBox(rows, layout=ipw.Layout(width="100%"))

    def _controls(self) -> list[Any]:
        steps = self.model
        moves = [
            ("⏮ First", "to the first place", lambda: setattr(steps, "position", 0)),
            ("◀ Back", "one line back", lambda: setattr(steps, "position", steps.position - 1)),
            ("Next ▶", "one line on", lambda: setattr(steps, "position", steps.position + 1)),
            ("Last ⏭", "to the last place", lambda: setattr(steps, "position", steps.last)),
            ("◀ Event", "to the event before", lambda: steps.event_step(-1)),
            ("Event ▶", "to the next event", lambda: steps.event_step(1)),
            ("◀ Breakpoint", "to the breakpoint before", lambda: steps.breakpoint_step(-1)),
            ("Breakpoint ▶", "to the next breakpoint", lambda: steps.breakpoint_step(1)),
        ]
        buttons = [button(label, tip, act, self._message) for label, tip, act in moves]
        wide = {"flex": "1 1 300px", "max_width": "480px"}
        self._places = ipw.IntSlider(description="place", continuous_update=False, layout=wide)
        self._passes = ipw.Dropdown(description="breakpoint", options=[ELSEWHERE])
        self._tasks = ipw.Dropdown(description="task", options=(ALL, *steps.tasks))
        self._on(self._places, lambda value: setattr(steps, "position", value))
        self._on(self._passes, lambda value: setattr(steps, "index", value))
        self._on(self._tasks, lambda value: setattr(steps, "task", value))
        choices = [self._passes] + ([self._tasks] if len(steps.tasks) > 1 else [])
        return [row(*buttons), row(self._places, *choices)]

    def _on(self, control: Any, act: Any) -> None:
        self._drawing = False

        def moved(change: Any) -> None:
            if not self._drawing and change["new"] != ELSEWHERE[1]:  # the reader's doing
                act(change["new"])

        control.observe(heard(moved, self._message), "value")

    def _draw(self, change: Any = None) -> None:
        steps, view = self.model, self.model.view
        self._drawing = True
        try:
            if change is None or change["name"] == "task":
                self._places.max = steps.last
                self._passes.options = [ELSEWHERE, *steps.passes[:MOST_PASSES]]
            self._places.value = steps.position
            listed = {index for _, index in self._passes.options}
            self._passes.value = steps.index if steps.index in listed else ELSEWHERE[1]
        finally:
            self._drawing = False
        self._clock.value = _clock(view, len(steps.run.recorded))
        self._source.value = self._source_markup(view)
        self._locals.value = _locals(view)
        self._page.value = heading("seen by the user") + _page(view)
        told = "\n".join(repr(event) for event in view.events[-RECENT:]) or "none yet"
        self._recent.value = heading("last events") + pre(told)

    def _source_markup(self, view: View) -> str:
        place = view.place
        lines = source(place.file)
        near = self._top + MARGIN <= place.line <= self._top + LINES - 1 - MARGIN
        if place.file != self._file or not near:
            self._file = place.file
            self._top = max(1, min(place.line - LINES // 2, len(lines) - LINES + 1))
        shown_lines = enumerate(lines[self._top - 1 : self._top - 1 + LINES], start=self._top)
        told = "".join(_line(number, text, number == place.line) for number, text in shown_lines)
        style = f"margin:0;white-space:pre;overflow-x:auto;{MONO}"
        return f'{heading(short(place.file))}<pre style="{style}" tabindex="0">{told}</pre>'


def stepper(run: Run | Scenario | str, at: View | str | int | None = None) -> Stepper:
    """A stepper on `run`, or on a run of that scenario; it starts at `at`.

    `at`: a view, a breakpoint's name, or a place's number; the first place by default.
    """
    made = run if isinstance(run, Run) else catalogue.simulate(run)
    if not made.recorded:
        raise Unknown("recorded place", made.scenario.name, ())
    if isinstance(at, View):
        return Stepper(made, at)
    return Stepper(made, made.to(at) if isinstance(at, str) else made.at(at or 0))


def card(run: Run) -> Any:
    """What a notebook shows for a run: what happened, and a button for the stepper."""
    message = html()
    box = ipw.VBox([html(pre(run_text(run), wrap=True)), message])

    def open_stepper() -> None:
        box.children = (box.children[0], message, stepper(run).widget)

    step = button("Step through it", "opens the stepper on this run", open_stepper, message)
    step.layout.align_self = "flex-start"
    box.children = (*box.children, step)
    return box


def _clock(view: View, count: int) -> str:
    place = view.place
    parts = [f"virtual time {seconds(place.time)}", f"place {place.index} of 0 to {count - 1}"]
    parts += [f"in {place.function}", f"task {place.task}"]
    if place.breakpoint:
        parts.append(f"at breakpoint: {place.breakpoint}")
    style = "font-size:15px;font-weight:600"
    return f'<div role="status" style="{style}">{cell(" · ".join(parts))}</div>'


def _line(number: int, text: str, current: bool) -> str:
    told = cell(f"{'→' if current else ' '} {number:>4}  {text}")
    mark = f' style="{MARK}" aria-current="step"' if current else ""
    return f"<div{mark}>{told}</div>"


def _locals(view: View) -> str:
    changed, there = view.changed, view.locals
    names = [name for name in there if name in changed or not opaque(there[name])]
    rows = [(name, shown(there[name], MOST), _after(name, view)) for name in names]
    new = [name for name in changed if name not in there]
    rows += [(name, "(not there yet)", _after(name, view)) for name in new]
    marked = frozenset(n for n, row in enumerate(rows) if row[2])
    told = heading("locals") + table(("name", "before the line", "after the line"), rows, marked)
    if objects := [name for name in there if name not in names]:
        told += f"<div>and objects: {cell(', '.join(objects))}</div>"
    if others := caller_locals(view):
        pairs = [(name, shown(value, MOST)) for name, value in others.items()]
        told += heading("locals of the caller") + table(("name", "value"), pairs, frozenset())
    return told


def _after(name: str, view: View) -> str:
    return f"changed to {shown(view.changed[name][1], MOST)}" if name in view.changed else ""


def _page(view: View) -> str:
    told = ""
    for number, segment in enumerate(view.segments, start=1):
        state = f"closed by {segment.reason}" if segment.reason else "open"
        style = "white-space:pre-wrap;overflow-wrap:anywhere;border-left:3px solid #0072b2"
        text = cell(segment.text, keep="\n") or "<i>nothing yet</i>"
        told += f"<div>segment {number}, {cell(state)}</div>"
        told += f'<div dir="auto" style="{style};padding-left:8px;margin-bottom:4px">{text}</div>'
    return told
