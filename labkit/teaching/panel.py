"""A panel to project: choose scenario, fault, policy and seed, and see the run beside the last.

    labkit.panel("retry.guarded")
    labkit.panel("retry.stall~cancel@5w~attempts=2")     # what somebody else's token stands for

`Panel.model` is a `Bench`: setting its `choice` runs at once and keeps the run before. The token
under the controls brings anybody else to the same run.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from labkit.scenarios import catalogue
from labkit.simulation import Fault, Point, Run, Scenario, SimulationError
from labkit.simulation.faults import PHASES, STEP_FAULTS, TASK_FAULTS

from .controls import TwoForms, alert, cell, heading, heard, html, pre, row
from .phrases import fault_words, point_words
from .timeline import timeline
from .token import TokenError, inputs, numbers, token_of
from .views import run_text

_PICTURE: Final = {"max_width": "100%", "width": "auto", "align_self": "flex-start"}
NONE: Final = "none"
KINDS: Final = (NONE, *TASK_FAULTS, *STEP_FAULTS)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be run: `numbers` are those of the policy that differ from the scenario's own."""

    scenario: Scenario
    numbers: dict[str, float] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    seed: int = 0

    @property
    def policy(self) -> Any:
        """The policy with the numbers chosen; raises its own error if it contradicts itself."""
        own = self.scenario.policy
        return replace(own, **self.numbers) if self.numbers else own

    @property
    def kind(self) -> str:
        """The kind of the first fault, the one that the controls are for."""
        return self.faults[0].kind if self.faults else NONE


class Bench(traitlets.HasTraits):
    """The panel's model: set `choice`, read `run`, `before`, `points`, `message`.

    A choice that cannot be run leaves the former run and says why in `message`. `tries` counts the
    choices, whatever came of them: one number for a view to watch.
    """

    choice = traitlets.Instance(Choice)
    tries = traitlets.Int()

    def __init__(self, choice: Choice) -> None:
        self.run: Run = catalogue.simulate(choice.scenario)
        self.before: Run | None = None
        self.message = ""
        self.points: list[Point] = []
        self._plain = self.run  # without a fault: the run in which the points are counted
        super().__init__(choice=choice)
        self.before = None

    @traitlets.observe("choice")
    def _run_again(self, _: Any) -> None:
        try:
            made = self._made(self.choice)
        except (ValueError, LookupError, ImportError, SimulationError) as error:
            self.message = f"{error}. The run before is kept."
        else:
            self.before, self.run = self.run, made
            self.message = "; ".join(f"{fault_words(f)} did not strike" for f in made.missed)
        self.tries += 1

    def _made(self, choice: Choice) -> Run:
        inputs = {"policy": choice.policy, "seed": choice.seed}
        kind = choice.kind
        plain = catalogue.simulate(choice.scenario, **inputs)
        self.points = [] if kind == NONE else catalogue.points(choice.scenario, kind, **inputs)
        self._plain = plain
        return catalogue.simulate(choice.scenario, faults=choice.faults, **inputs)

    def choose(self, **changes: Any) -> None:
        """Change parts of the choice and run again: `choose(seed=3)`."""
        self.choice = replace(self.choice, **changes)

    def open(self, name: str) -> None:
        """Go to a scenario, or to what a token stands for; raises `TokenError`."""
        self.choice = _choice(name)

    def number(self, name: str, value: float) -> None:
        """Set one number of the policy and run again."""
        self.choose(numbers={**self.choice.numbers, name: value})

    def strike(self, kind: str, place: int = 0, phase: str = PHASES[0]) -> None:
        """Place the fault at number `place` in the list of its points; `NONE` takes it away."""
        others = self.choice.faults[1:]
        if kind == NONE:
            self.choose(faults=others)
            return
        choice = self.choice
        points = catalogue.points(choice.scenario, kind, policy=choice.policy, seed=choice.seed)
        if not points:
            raise ValueError(f"this run has no point for a {kind}")
        point = points[min(max(place, 0), len(points) - 1)]
        if kind in STEP_FAULTS:
            fault = Fault(kind, point.number)
        else:
            fault = Fault(kind, point.number, point.task, phase)
        self.choose(faults=(fault, *others))

    @property
    def place(self) -> int | None:
        """The number of the fault's point in the list; None where it is not there."""
        if not self.choice.faults:
            return None
        fault = self.choice.faults[0]
        for number, point in enumerate(self.points):
            if point.number == fault.point and (
                fault.kind in STEP_FAULTS or point.task == fault.task
            ):
                return number
        return None

    @property
    def where(self) -> str:
        """Where the fault strikes, in words."""
        if self.choice.kind == NONE:
            return "no fault is placed"
        if self.place is None:
            return "this run has no such point"
        return point_words(self.points[self.place], self.choice.kind, self._plain)

    @property
    def token(self) -> str:
        """The token of the run that is shown; empty for a scenario that nobody else has."""
        try:
            return token_of(self.run)
        except TokenError:
            return ""


class Panel(TwoForms):
    """The panel as a widget and in words; `model` is its bench."""

    def __init__(self, model: Bench) -> None:
        self.model = model
        self.title = f"panel on {model.choice.scenario.name}"

    def text(self) -> str:
        """Outcome and token."""
        note = [f"note      {self.model.message}"] if self.model.message else []
        token = f"token     {self.model.token or 'none: this scenario is your own'}"
        return "\n".join([run_text(self.model.run), token, *note])

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        self._drawing = False
        self._shown: tuple[Run, Run | None] | None = None
        self._fields: dict[str, Any] = {}
        self._message, self._error, self._where = html(), html(), html()
        self._picture = ipw.Image(format="png", layout=_PICTURE)
        self._now, self._then = (html(flex="1 1 380px", min_width="0") for _ in range(2))
        rows = [row(*self._controls()), self._share, self._message, self._error]
        rows += [self._picture, row(self._now, self._then)]
        self.model.observe(heard(self._draw, self._error), "tries")
        self._draw()
        return ipw.VBox(rows, layout=ipw.Layout(width="100%"))

    def _controls(self) -> list[Any]:
        model = self.model
        own = model.choice.scenario.name
        names = catalogue.names()
        self._scenario = _made(ipw.Dropdown, "scenario", options=list(dict.fromkeys([own, *names])))
        self._kind = _made(ipw.Dropdown, "fault", options=KINDS)
        self._place = _made(ipw.IntSlider, "strikes at", continuous_update=False, max=0)
        self._phase = _made(ipw.Dropdown, "phase", options=PHASES)
        self._seed = _made(ipw.BoundedIntText, "seed", max=10**9)
        self._share = _made(ipw.Text, "token", continuous_update=False)
        self._share.layout.width = "min(100%, 640px)"
        self._numbers = [ipw.VBox(), ipw.VBox()]
        self._on(self._scenario, model.open)
        self._on(self._kind, lambda kind: model.strike(kind, phase=self._phase.value))
        for control in (self._place, self._phase):
            self._on(control, lambda _: self._strike())
        self._on(self._seed, lambda seed: model.choose(seed=seed))
        self._on(self._share, model.open)
        faults = [self._scenario, self._kind, self._place, self._phase, self._where]
        for control in faults:
            control.layout.width = "360px"
        return [ipw.VBox(faults), *self._numbers]

    def _strike(self) -> None:
        self.model.strike(self._kind.value, self._place.value, self._phase.value)

    def _on(self, control: Any, act: Any) -> None:
        def changed(change: Any) -> None:
            if not self._drawing:  # it was the reader, not the view that follows the model
                act(change["new"])

        control.observe(heard(changed, self._error), "value")

    def _draw(self, _: Any = None) -> None:
        self._drawing = True
        try:
            self._follow()
        finally:
            self._drawing = False
        model = self.model
        self._message.value = alert(model.message) if model.message else ""
        if self._shown == (model.run, model.before):
            return
        self._shown = (model.run, model.before)
        marks = ("now: ", "before: ")
        self._picture.value = timeline(model.run, model.before, marks=marks).png
        self._now.value = heading("now") + pre(run_text(model.run), wrap=True)
        then = pre(run_text(model.before), wrap=True) if model.before else "nothing yet"
        self._then.value = heading("before") + then

    def _follow(self) -> None:
        """Bring the controls to what the model says."""
        model, choice = self.model, self.model.choice
        self._scenario.value = choice.scenario.name
        self._kind.value = choice.kind
        self._place.max = max(0, len(model.points) - 1)
        self._place.value = self._place.max if model.place is None else model.place
        self._place.disabled = choice.kind == NONE
        self._phase.disabled = choice.kind not in TASK_FAULTS
        if choice.faults:
            self._phase.value = choice.faults[0].phase
        self._where.value = f'<div role="status" style="line-height:1.3">{cell(model.where)}</div>'
        self._seed.value = choice.seed
        self._share.value = model.token
        own = numbers(choice.scenario.policy)
        if list(self._fields) != list(own) or not self._numbers[0].children:
            self._fields = {name: self._number(name, value) for name, value in own.items()}
            shown = (*self._fields.values(), self._seed)
            half = (len(shown) + 1) // 2
            self._numbers[0].children, self._numbers[1].children = shown[:half], shown[half:]
        for name, value in own.items():
            self._fields[name].value = choice.numbers.get(name, value)

    def _number(self, name: str, value: float) -> Any:
        whole = name == "attempts"
        made = _made(ipw.IntText if whole else ipw.FloatText, name, step=1 if whole else 0.5)
        made.value = value
        self._on(made, lambda new: self.model.number(name, new))
        return made


def panel(scenario: str | Scenario = "retry.guarded") -> Panel:
    """A panel that starts with a scenario, by name or as a record, or with a token's run.

    Raises `TokenError`, which names the part of the token that is wrong.
    """
    if isinstance(scenario, Scenario):
        return Panel(Bench(Choice(scenario)))
    return Panel(Bench(_choice(scenario)))


def _choice(token: str) -> Choice:
    scenario, policy, faults, seed = inputs(token)
    own = numbers(scenario.policy)
    changed = {name: v for name, v in numbers(policy).items() if v != own[name]}
    return Choice(scenario, changed, faults, seed)


def _made(kind: Any, label: str, **options: Any) -> Any:
    style = {"description_width": "100px"}
    return kind(description=label, layout=ipw.Layout(width="225px"), style=style, **options)
