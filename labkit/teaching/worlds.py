"""The two worlds of a timeout: it did not happen, or it did, and the caller has seen the same.

    labkit.worlds("tries again", "payment")

Both runs stand on one time axis. Their lanes are read from the traces, and so is the bar that says
how long both callers have seen exactly the same: up to the first thing that differs in what they
see. Until then a caller cannot know in which world it is, so a way must be right in both.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any, Final

import ipywidgets as ipw
import traitlets
from matplotlib.figure import Figure

from labkit.recovery.outcomes import OPEN
from labkit.scenarios.effects import KINDS, WAYS, world
from labkit.simulation import Event, Run

from .chart import Chart
from .controls import TwoForms, button, choice, heard, html, pre, row
from .phrases import cell, seconds
from .said import pick
from .stepper import decided_at, stepper
from .timeline import Item, figure, in_words, story

WORLDS: Final = {"did_not_happen": "it did not happen", "happened": "it happened"}
SEEN: Final = "what the caller sees"
SAME: Final = "both callers"
TRUE: Final = "what really happened"
LANES: Final = {"model": SEEN, "worker": SEEN, "service": TRUE, "kept": TRUE}


class Worlds(traitlets.HasTraits, TwoForms):
    """Both worlds for a `way` of calling and a `kind` of service; `runs` are by world."""

    way = traitlets.Enum(tuple(WAYS))
    kind = traitlets.Enum(KINDS)
    runs: Mapping[str, Run]

    def __init__(self, way: str, kind: str) -> None:
        super().__init__(way=way, kind=kind)
        self._live()

    @traitlets.observe("way", "kind")
    def _live(self, _: Any = None) -> None:
        self.runs = {name: world(name, self.way, kind=self.kind) for name in WORLDS}
        self.title = f"two worlds: {self.way}, {self.kind}"

    @property
    def same_until(self) -> float | None:
        """Until when both callers have seen exactly the same, in seconds; None: to the end."""
        for pair in zip_longest(*map(_observed, self.runs.values())):
            if pair[0] != pair[1]:
                return float(min(told[0] for told in pair if told))
        return None

    @property
    def verdict(self) -> str:
        """Which world is hurt, and whether the call is still open."""
        hurt = [
            f"the world where {WORLDS[name]} ({', '.join(found.name for found in run.findings)})"
            for name, run in self.runs.items()
            if run.findings
        ]
        told = f"{self.way}, {self.kind}: hurts {' and '.join(hurt) or 'neither world'}"
        if any(_told(run)["status"] in OPEN for run in self.runs.values()):
            told += "; it stays open, and a person has to look"
        if "keyed" in WAYS[self.way]:
            told += "; what such a key is worth shows in a repeat: labkit.grid()"
        until = self.same_until
        how = "to the end" if until is None else f"until {seconds(until)}"
        return f"{told}.\nBoth callers have seen exactly the same {how}."

    def text(self) -> str:
        """The verdict, and both worlds lane by lane."""
        return "\n\n".join([self.verdict, *map(in_words, *self._drawn())])

    @property
    def chart(self) -> Chart:
        """The picture with its text form."""
        names, items = self._drawn()
        end = max(run.time for run in self.runs.values())
        return Chart(lambda: _figure(names, items, end), self.text(), self.title)

    def _drawn(self) -> tuple[list[str], list[list[Item]]]:
        """Each world's heading and what is drawn of it."""
        end, names, items = self.same_until, [], []
        for name, run in self.runs.items():
            found = ", ".join(found.name for found in run.findings) or "nothing"
            told = f"the model is told {_told(run)['status']}; effects: {len(run.ledger)}"
            names.append(f"{WORLDS[name].capitalize()}: {told}; found: {found}")
            until = _told(run).time if end is None else end
            same = Item(SAME, 0.0, until, "have seen exactly the same", "yellow", pattern="//")
            own = ((LANES.get(item.lane.partition(" ")[0]), item) for item in story(run))
            items.append([same, *(replace(item, lane=lane) for lane, item in own if lane)])
        return names, items

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        message, picture, told, opened = html(), html(), html(), ipw.VBox()
        buttons = [
            button(
                f"Step: {words}",
                f"Open the run where {words}",
                partial(self._open, name, opened),
                message,
            )
            for name, words in WORLDS.items()
        ]

        def draw(_: Any = None) -> None:
            told.value = f'<div role="status">{pre(self.verdict, wrap=True)}</div>'
            picture.value, opened.children = self.chart.html, ()

        self.observe(heard(draw, message, "working…"), ["way", "kind"])
        draw()
        chosen = (choice(self, "way"), choice(self, "kind", "service"))
        return ipw.VBox([row(*chosen), told, picture, row(*buttons, message), opened])

    def _open(self, name: str, opened: Any) -> None:
        title = html(f"<b>{cell(f'{self.way}, {self.kind}: {WORLDS[name]}')}</b>")
        run = self.runs[name]
        opened.children = (title, stepper(run, at=decided_at(run)).widget)


def worlds(way: str = "tries again", kind: str = "payment") -> Worlds:
    """Both worlds for a way of calling and a kind of service; raises `Unknown`, with what there is.

    In a notebook other ways and services are chosen in place.
    """
    return Worlds(pick("way", way, list(WAYS)), pick("service", kind, KINDS))


def _figure(names: list[str], items: list[list[Item]], end: float) -> Figure:
    made = figure(names, items, end)
    for axes, (same, *_) in zip(made.axes, items, strict=True):
        axes.axvline(same.end, color="#222222", linewidth=0.8, linestyle=":")
    return made


def _observed(run: Run) -> list[tuple[Any, ...]]:
    """All that the model and its worker get to see, each with its time."""
    own = (event for event in run.trace if event.actor.partition(" ")[0] in ("model", "worker"))
    return [(event.time, event.actor, event.kind, event.data) for event in own]


def _told(run: Run) -> Event:
    return next(event for event in reversed(run.trace) if event.kind == "told")
