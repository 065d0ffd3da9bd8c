"""Two workers and one run, and something that happens to the first: who held the run when.

    labkit.floor("frozen", at=3.5, seconds=15.0, lease=10.0)

Choose what happens, when and for how long, and how long a lease is; the run is played again and
drawn as by `labkit.leases`. Below stand the three questions of the predictions with its answers.
"""

from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from labkit.recovery.policy import is_amount
from labkit.scenarios import catalogue
from labkit.scenarios.lease_facts import LEASE_FACTS
from labkit.scenarios.leases import working
from labkit.simulation import Run, SimulationError

from .chart import Chart
from .controls import TwoForms, button, choice, heard, html, pre, row
from .leases import leases
from .phrases import seconds
from .said import pick, texts
from .stepper import decided_at, stepper

HAPPENS: Final = {"killed": "kill", "frozen": "freeze", "cut off": "cut", "shut down": "shut down"}
LASTING: Final = ("frozen", "cut off")
LOOK: Final[Any] = {"style": {"description_width": "150px"}, "layout": {"width": "260px"}}
SLIDERS: Final = {  # words, least and most, in seconds
    "lease": ("length of the lease (s)", 1.0, 60.0),
    "at": ("it happens at (s)", 0.5, 20.0),
    "seconds": ("and lasts (s)", 0.5, 60.0),
}


class Floor(traitlets.HasTraits, TwoForms):
    """The floor on which this `happens` to worker-1; each of the four may be set, in seconds.

    A value out of its bounds raises `TraitError`.
    """

    happens = traitlets.Enum(tuple(HAPPENS))
    lease, at, seconds = (
        traitlets.Float(min=least, max=most) for _, least, most in SLIDERS.values()
    )
    title = "floor of two workers"

    def __init__(self, **chosen: Any) -> None:
        super().__init__(**chosen)
        self._played = lru_cache(maxsize=1)(_played)

    @property
    def run(self) -> Run:
        """The run with what is chosen."""
        return self._played(self.happens, self.at, self.seconds, self.lease)

    @property
    def answers(self) -> str:
        """What happened, and who finished, who went on when, and what the first wrote next."""
        asked, lines = texts("predictions"), [self.run.scenario.claim]
        for name, fact in LEASE_FACTS.items():
            lines.append(f"  {asked[name]['words']} {fact(self.run.trace).answer}")
        return "\n".join(lines)

    def text(self) -> str:
        """The answers, and the lanes in words."""
        return f"{self.answers}\n{self.chart.text()}"

    @property
    def chart(self) -> Chart:
        """The picture with its text form."""
        return leases(self.run)

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        message, picture, told, opened = html(), html(), html(), ipw.VBox()
        pairs = []
        for name, (label, least, most) in SLIDERS.items():
            how: Any = {"min": least, "max": most, "step": 0.5}
            number = ipw.BoundedFloatText(description=label, **how, **LOOK)  # a handle has no name
            slider = ipw.FloatSlider(readout=False, continuous_update=False, **how)
            for control in (number, slider):
                traitlets.link((self, name), (control, "value"))
            pairs.append(ipw.HBox((number, slider)))

        def draw(_: Any = None) -> None:
            told.value = f'<div role="status">{pre(self.answers, wrap=True)}</div>'
            picture.value, opened.children = self.chart.html, ()
            for control in pairs[-1].children:
                control.disabled = self.happens not in LASTING

        def step() -> None:
            opened.children = (stepper(self.run, at=decided_at(self.run)).widget,)

        self.observe(heard(draw, message, "working…"), ["happens", *SLIDERS])
        draw()
        happens = choice(self, "happens", "worker-1 is")
        happens.set_trait("style", LOOK["style"]), happens.set_trait("layout", LOOK["layout"])
        chosen = ipw.VBox((happens, *pairs))  # one under another, however wide the window is
        steps = row(button("Step", "Open the run", step, message), message)
        return ipw.VBox([chosen, told, picture, steps, opened])


def _played(happens: str, at: float, lasting: float, lease: float) -> Run:
    known = catalogue.find("leases.reference")
    lasts = [lasting] if happens in LASTING else []
    told = f"worker-1 is {happens} at {seconds(at)}{f' for {seconds(lasting)}' if lasts else ''}"
    what = [[at, HAPPENS[happens], "worker-1", *lasts]]
    client = partial(working, workers=2, happens=what)
    claim = f"{told}; a lease is {seconds(lease)}"
    return catalogue.simulate(
        known.but(name="two workers", client=client, claim=claim),
        policy=replace(known.policy, lease=lease),
    )


def floor(
    happens: str = "frozen", *, at: float = 3.5, seconds: float = 15.0, lease: float = 10.0
) -> Floor:
    """The floor on which that happens; raises `SimulationError`, with what there is."""
    chosen = {"lease": lease, "at": at, "seconds": seconds}
    for name, value in chosen.items():
        _, least, most = SLIDERS[name]
        if not (is_amount(value) and least <= value <= most):
            told = f"a number of seconds from {least:g} to {most:g}"
            raise SimulationError(f"{name} is {value!r:.40}, and must be {told}")
    return Floor(happens=pick("happening", happens, list(HAPPENS)), **chosen)
