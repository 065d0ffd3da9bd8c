"""A panel to project: choose scenario, fault, policy and seed, and see the run beside the last.

    labkit.panel("retry.guarded")
    labkit.panel("retry.stall~cancel@5w~attempts=2")     # what somebody else's token stands for

`Panel.model` is a `Bench`: changing it runs at once and keeps the run before. The token under the
controls brings anybody else to the same run. JupyterLab takes the arrow keys away from a list, so
whatever a list chooses can also be reached by a button, a number or the token.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from labkit.scenarios import catalogue
from labkit.simulation import Fault, Run, Scenario
from labkit.simulation.faults import TASK_FAULTS

from .controls import ONE_AT_A_TIME, TwoForms, heard, html, parts, pre, row
from .lanes import has_lanes, lanes
from .lease_story import has_leases
from .leases import leases
from .phrases import cell, seconds
from .timeline import timeline
from .token import CLIENT, from_token, numbers, token_of
from .views import run_text

KINDS: Final = (  # the words for each kind of fault; its kind and phase
    ("none", ("", "")),
    ("cancel while it waits", ("cancel", "waiting")),
    ("cancel as it wakes", ("cancel", "waking")),
    ("timeout while it waits", ("timeout", "waiting")),
    ("timeout as it wakes", ("timeout", "waking")),
    ("process killed while it waits", ("kill", "waiting")),
    ("process killed as it wakes", ("kill", "waking")),
    ("process frozen while it waits", ("freeze", "waiting")),
    ("process frozen as it wakes", ("freeze", "waking")),
    ("crash", ("crash", "waiting")),
    ("disconnect", ("disconnect", "waiting")),
    ("stall", ("stall", "waiting")),
    ("connection cut", ("cut", "waiting")),
    ("event lost", ("lose", "waiting")),
    ("event twice", ("duplicate", "waiting")),
    ("events swapped", ("reorder", "waiting")),
)


class Bench(traitlets.HasTraits):
    """The panel's model: the `run` that is shown, and the one `before` it.

    What cannot be run raises its own error, and leaves the run as it is.
    """

    run = traitlets.Instance(Run)
    before: Run | None = None

    @traitlets.observe("run")
    def _keep(self, change: Any) -> None:
        self.before = change["old"] or None

    def open(self, token: str) -> None:
        """Go to a scenario, by name, or to a token's run; raises `TokenError`."""
        self.run = from_token(token)

    def change(self, **inputs: Any) -> None:
        """Run again with other `faults`, another `seed`, or other numbers of the policy."""
        run = self.run
        faults, seed = inputs.pop("faults", run.faults), inputs.pop("seed", run.seed)
        policy = replace(run.policy, **inputs) if inputs else run.policy
        self.run = catalogue.simulate(run.scenario, policy=policy, faults=faults, seed=seed)

    def strikes(self, kind: str, phase: str = "waiting") -> list[tuple[str, Fault]]:
        """The faults of a kind that can strike, with words for where each does; none for ""."""
        run, found = self.run, []
        inputs = {"policy": run.policy, "seed": run.seed}
        for point in catalogue.points(run.scenario, kind, **inputs) if kind else ():
            words = f"{point.task} in {point.function}, {seconds(point.time)}"
            task = point.task if kind in TASK_FAULTS else CLIENT
            found.append((words, Fault(kind, point.number, task, phase)))
        return found

    def strike(self, *fault: Fault) -> None:
        """Put `fault` in place of the first one, or take that away, and run again."""
        self.change(faults=(*fault, *self.run.faults[1:]))


class Panel(TwoForms):
    """The panel as a widget and in words; `model` is its bench."""

    def __init__(self, run: Run) -> None:
        self.model = Bench(run=run)
        self.title = f"panel on {run.scenario.name}"

    def text(self) -> str:
        """Outcome and token."""
        token = token_of(self.model.run) or "none: this scenario is your own"
        return f"{run_text(self.model.run)}\ntoken     {token}"

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        model, self._message, self._where = self.model, html(min_height="2em"), html()
        self._picture, self._told, self._numbers = html(), html(), row()
        names = list(dict.fromkeys([model.run.scenario.name, *catalogue.names()]))
        self._scenario = self._made(ipw.Dropdown, "scenario", model.open, options=names)
        self._kind = self._made(ipw.ToggleButtons, "fault", self._strike, "100%", options=KINDS)
        self._place = self._made(ipw.BoundedIntText, "strikes at", self._strike, "200px")
        self._token = self._made(ipw.Text, "token", model.open, continuous_update=False)
        self._fields: dict[str, Any] = {}
        model.observe(self._draw, "run")
        self._draw()
        choices = (row(self._scenario, self._token), self._kind, row(self._place, self._where))
        return ipw.VBox([*choices, self._numbers, self._message, self._picture, self._told])

    def _strike(self, _: Any) -> None:
        there = self.model.strikes(*self._kind.value)
        self.model.strike(*[fault for _, fault in there[: self._place.value + 1][-1:]])

    def _made(
        self, kind: Any, label: str, act: Callable[[Any], object], width: str = "400px", **more: Any
    ) -> Any:
        """A control whose value goes to `act` when the reader changes it."""
        style = {"description_width": "100px"}
        if kind is ipw.ToggleButtons:
            style["button_width"] = "auto"  # of its words
        made = kind(description=label, layout={"width": width}, style=style, **more)
        run = heard(lambda change: act(change["new"]), self._message, "working…")

        def changed(change: Any) -> None:
            with ONE_AT_A_TIME:  # the reader may be quicker than we draw
                if not self._drawing:
                    run(change)

        made.observe(changed, "value")
        return made

    def _draw(self, _: Any = None) -> None:
        self._drawing = True
        try:
            self._draw_controls()
        finally:
            self._drawing = False
        run, before = self.model.run, self.model.before
        chart, beside = timeline, before
        for has, own in ((has_lanes, lanes), (has_leases, leases)):
            if has(run):
                chart, beside = own, before if before and has(before) else None
        self._picture.value = chart(run, beside, marks=("now: ", "before: ")).html
        told = [("now", _lines(run)), ("before", _lines(before) if before else "nothing yet")]
        self._told.value = parts(*((name, pre(text, wrap=True)) for name, text in told))

    def _draw_controls(self) -> None:
        run, strikes = self.model.run, self.model.strikes
        self._scenario.value, self._token.value = run.scenario.name, token_of(run)
        first = run.faults[0] if run.faults else None
        now = (first.kind, first.phase) if first else ("", "")
        kinds = [(told, kind) for told, kind in KINDS if kind in (now, ("", "")) or strikes(*kind)]
        if list(self._kind.options) != kinds:
            self._kind.options = kinds
        self._kind.value = now
        there = self.model.strikes(*self._kind.value)
        number = next((n for n, (_, fault) in enumerate(there) if fault == first), None)
        self._place.max, self._place.disabled = max(0, len(there) - 1), not there
        self._place.value = number or 0
        nowhere = "this run has no such place" if first else "nowhere"
        self._where.value = cell(nowhere if number is None else there[number][0])
        values = {**numbers(run.policy), "seed": run.seed}
        if list(self._fields) != list(values):
            self._fields = {name: self._field(name, value) for name, value in values.items()}
            self._numbers.children = tuple(self._fields.values())
        for name, value in values.items():
            self._fields[name].value = value

    def _field(self, name: str, value: float) -> Any:
        kind, step = (ipw.IntText, 1) if isinstance(value, int) else (ipw.FloatText, 0.5)
        return self._made(
            kind, name, lambda new: self.model.change(**{name: new}), "200px", step=step
        )


def _lines(run: Run) -> str:
    """The run in words, and which way each message went where it has sessions."""
    return f"{run_text(run)}\n{lanes(run).text()}" if has_lanes(run) else run_text(run)


def panel(scenario: str | Scenario = "retry.guarded") -> Panel:
    """A panel that starts with a scenario, by name or as a record, or with a token's run.

    Raises `TokenError`, which names the part of the token that is wrong.
    """
    own = isinstance(scenario, Scenario)
    return Panel(catalogue.simulate(scenario) if own else from_token(str(scenario)))
