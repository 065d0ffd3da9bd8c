"""Ways of calling against what goes wrong: a cell is a run, and its figure stands in it.

    labkit.grid("payment", "duplicates")
    labkit.grid()["tries again", "lose_answer"]      # the run of that cell

Each run makes three calls for two orders, of which the second call repeats the first; what its
first request meets is the column. Only a way that has no duplicates and no losses in any column is
right; what is left open, waited for and asked is its price. What a cue does stands below.
"""

from functools import cache, cached_property, partial
from typing import Any, Final

import ipywidgets as ipw
import traitlets
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure

from labkit.scenarios.effects import CUES, KINDS, WAYS, cell, figures
from labkit.simulation import Run, SimulationError

from .chart import Chart
from .controls import TwoForms, button, choice, heard, html, pre, row
from .phrases import cell as markup
from .said import pick, texts
from .stepper import decided_at, stepper
from .timeline import WIDTH
from .views import run_text

FIGURES: Final = {
    "duplicates": "effects that nobody meant",
    "losses": "orders that have no effect, and that nobody looks into",
    "open": "calls that wait for a person or whose end is unknown",
    "waiting": "seconds that the three calls took together",
    "cost": "requests and questions to the service, at 1 each",
}

Values = dict[tuple[str, str], float]


class Grid(traitlets.HasTraits, TwoForms):
    """The grid for a `kind` of service, with the figure to `show`; both may be set.

    `grid[way, cue]` is the run of a cell. A run is made when it is first asked for, and kept.
    """

    title = "grid of ways and cues"
    kind = traitlets.Enum(KINDS)
    show = traitlets.Enum(tuple(FIGURES))

    def __init__(self, kind: str, show: str) -> None:
        super().__init__(kind=kind, show=show)
        self._run = cache(lambda way, cue, kind: cell(way, cue, kind=kind))

    @property
    def heading(self) -> str:
        """What the cells show, in which unit, of which service."""
        return f"{self.show} ({FIGURES[self.show]}), {self.kind}"

    def __getitem__(self, place: Any) -> Run:
        """The run of a way and a cue; raises `Unknown`, with what there is, `SimulationError`."""
        if not isinstance(place, tuple) or len(place) != 2:
            told = "give it a way and a cue, like grid['tries again', 'lose_answer']"
            raise SimulationError(f"{told}, not {place!r}")
        way, cue = place
        return self._run(pick("way", way, list(WAYS)), pick("cue", cue, list(CUES)), self.kind)

    @property
    def values(self) -> Values:
        """What `show` names, of each cell, row by row."""
        return {(way, cue): figures(self[way, cue])[self.show] for way in WAYS for cue in CUES}

    def text(self) -> str:
        """The table, in which rows every cell is 0, and what each cue does."""
        values, wide = self.values, max(map(len, WAYS))
        lines = [self.heading, "  ".join([" " * wide, *CUES])]
        for way in WAYS:
            told = (f"{values[way, cue]:>{len(cue)}g}" for cue in CUES)
            lines.append("  ".join([f"{way:<{wide}}", *told]))
        clean = [way for way in WAYS if not any(values[way, cue] for cue in CUES)]
        return "\n".join([*lines, f"0 in every cell: {', '.join(clean) or 'no way'}", _cues()])

    @property
    def chart(self) -> Chart:
        """The heat map with its text form."""
        values, heading = self.values, self.heading
        return Chart(lambda: _figure(values, heading), self.text(), heading)

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown: each cell is a button that opens its run."""
        message, told, opened = html(), html(), ipw.VBox()
        buttons = {
            (way, cue): button("", "", partial(self._open, (way, cue), told, opened), message)
            for way in WAYS
            for cue in CUES
        }
        cells = [html(""), *(html(f"<b>{markup(cue)}</b>", margin="0 auto") for cue in CUES)]
        for way in WAYS:
            cells += [html(f"<b>{markup(way)}</b>"), *(buttons[way, cue] for cue in CUES)]
        columns = f"max-content repeat({len(CUES)}, minmax(4em, 1fr))"
        table = ipw.GridBox(cells, layout={"grid_template_columns": columns, "width": "100%"})
        title = html()

        def draw(_: Any = None) -> None:
            values, most, shades = self.values, _most(self.values), _shades()
            title.value, told.value, opened.children = f"<b>{markup(self.heading)}</b>", "", ()
            for place, each in buttons.items():
                each.description = f"{values[place]:g}"
                each.tooltip = f"{', '.join(place)}: {each.description} {self.show}; opens the run"
                each.style.button_color = to_hex(shades(values[place] / most))

        for each in buttons.values():
            each.layout, each.style.text_color = (
                ipw.Layout(width="auto"),
                texts("timeline")["colours"]["ink"],
            )
        self.observe(heard(draw, message, "working…"), ["kind", "show"])
        draw()
        chosen = row(choice(self, "kind", "service"), choice(self, "show", "figure"))
        meant = html(pre(_cues(), wrap=True))
        return ipw.VBox([chosen, title, table, meant, message, told, opened])

    def _open(self, place: tuple[str, str], told: Any, opened: Any) -> None:
        run = self[place]
        told.value = f'<div role="status">{pre(run_text(run), wrap=True)}</div>'
        opened.children = (stepper(run, at=decided_at(run)).widget,)


def grid(kind: str = "payment", show: str = "duplicates") -> Grid:
    """The grid for a kind of service and a figure; raises `Unknown`, with what there is."""
    return Grid(pick("service", kind, KINDS), pick("figure", show, list(FIGURES)))


def _cues() -> str:
    wide = max(map(len, CUES))
    return "\n".join(f"  {cue:<{wide}}  {words}" for cue, words in CUES.items())


def _figure(values: Values, heading: str) -> Figure:
    made = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = made.subplots()
    table = [[values[way, cue] for cue in CUES] for way in WAYS]
    axes.pcolormesh(table, cmap=_shades(), vmin=0, vmax=_most(values), edgecolors="#DDDDDD")
    for y, way in enumerate(WAYS):
        for x, cue in enumerate(CUES):
            axes.text(x + 0.5, y + 0.5, f"{values[way, cue]:g}", ha="center", va="center")
    axes.set_xticks([x + 0.5 for x in range(len(CUES))], CUES)
    axes.set_yticks([y + 0.5 for y in range(len(WAYS))], list(WAYS))
    axes.invert_yaxis()
    axes.tick_params(length=0, labelsize=9)
    axes.set_xlabel("what the first request meets", fontsize=9)
    axes.set_ylabel("way of calling", fontsize=9)
    axes.set_title(heading, loc="left", fontsize=11, fontweight="bold")
    axes.spines[:].set_visible(False)
    return made


def _shades() -> Colormap:
    """From white to orange, on both of which dark figures are easy to read."""
    return LinearSegmentedColormap.from_list(
        "cost", ["#FFFFFF", texts("timeline")["colours"]["orange"]]
    )


def _most(values: Values) -> float:
    """What has the darkest shade: the largest figure, and at least 1."""
    return max(1.0, *values.values())
