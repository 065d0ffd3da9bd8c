"""What waits for a person, as a queue: find out what happened, say so, and the run goes on.

    queue = labkit.queue("effects.manual")
    queue.books()                       # what the service's books have
    queue.resolve(happened=True)        # the run with that word

The person's word is kept like any answer, so it outlives the cell and the kernel. Nothing checks
it: what a wrong word does is seen in the findings of the run.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

import ipywidgets as ipw

from labkit.scenarios import catalogue
from labkit.scenarios.effect_judges import meant
from labkit.scenarios.effects import resolved_by
from labkit.simulation import Event, Run, Scenario, SimulationError

from .answers import answers
from .controls import TwoForms, button, html, pre, row
from .phrases import cell, seconds
from .said import Told, as_run, pick
from .views import run_text

WORDS: Final = {True: "it happened", False: "it did not happen"}


class Item(NamedTuple):
    """One thing that waits: the first `call` for it, and what is `known` of it."""

    call: Event
    known: str


class Queue(TwoForms):
    """What waits in a scenario; `items` are by digest, and `said` is the person's word of each."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.title = f"queue of {scenario.name}"
        self._unresolved = catalogue.simulate(resolved_by(scenario, happened={}))
        self.items: dict[str, Item] = {}
        for event in self._unresolved.trace:
            if event.kind == "kept" and event["handed_over"]:
                self.items.setdefault(event["digest"], _item(self._unresolved, event))
        if not self.items:
            raise SimulationError(f"nothing waits in {scenario.name}: try 'effects.manual'")

    @property
    def said(self) -> Mapping[str, bool]:
        """The person's words so far, by digest."""
        words, known = {told: said for said, told in WORDS.items()}, answers().all()
        kept = {each: known.get(self._question(each)) for each in self.items}
        return {e: words[told.latest] for e, told in kept.items() if told and told.latest in words}

    @property
    def run(self) -> Run:
        """The run with the person's words."""
        return catalogue.simulate(resolved_by(self.scenario, happened=self.said))

    def resolve(self, *, happened: bool, digest: str = "") -> Run:
        """Say it of one thing, or of all that wait, and keep it; the run with that word."""
        for each in [pick("digest", digest, self.items)] if digest else self.items:
            answers().put(self._question(each), WORDS[happened])
        return self.run

    def books(self, digest: str = "") -> Told:
        """What the service's books have about one thing, or about all that wait."""
        lines = []
        for each in [pick("digest", digest, self.items)] if digest else self.items:
            about = meant(self.items[each].call)
            real = [e for e in self._unresolved.trace if e.actor == "ledger" and meant(e) == about]
            told = [f"{_about(event)}, at {seconds(event.time)}" for event in real]
            lines.append(f"the books on {each}: {'; '.join(told) or 'nothing'}")
        return Told("\n".join(lines))

    def text(self) -> str:
        """What waits and is known of it, the person's words, and what comes of them all."""
        said, lines = self.said, [f"{self.scenario.name}: a person has to find out:"]
        after = "Find out and say what happened: then the run goes on."
        if len(said) == len(self.items):
            after = f"and so it goes on\n{run_text(self.run)}"
        for each, item in self.items.items():
            word = WORDS[said[each]] if each in said else "none yet"
            lines += [item.known, f"  your word: {word}"]
        return "\n".join([*lines, after])

    def _question(self, digest: str) -> str:
        return f"queue/{self.scenario.name}/{digest}"

    @cached_property
    def widget(self) -> Any:
        """The widget, built when first shown."""
        message, shown = html(), html()

        def draw() -> None:
            shown.value = f'<div role="status">{pre(self.text(), wrap=True)}</div>'

        def say(digest: str, happened: bool) -> None:
            self.resolve(happened=happened, digest=digest)
            draw()

        def ask(digest: str, books: Any) -> None:
            books.value = f'<div role="status">{pre(self.books(digest).text(), wrap=True)}</div>'

        rows = []
        for digest, item in self.items.items():
            books, about = html(), f"{_about(item.call)} ({digest})"
            acts = [("Ask the service's books", partial(ask, digest, books))]
            acts += [
                (told.capitalize(), partial(say, digest, is_so)) for is_so, told in WORDS.items()
            ]
            made = (button(label, f"{label}: {about}", act, message) for label, act in acts)
            rows += [html(f"<b>{cell(about)}</b>"), row(*made), books]
        draw()
        return ipw.VBox([shown, *rows, message])


def queue(run: Run | Scenario | str = "effects.manual") -> Queue:
    """What waits for a person in a run or a scenario with effects, with the words said before.

    Raises `SimulationError` for one in which nothing waits.
    """
    return Queue(as_run(run).scenario)


def _item(run: Run, waits: Event) -> Item:
    """What a person can know from the trace: what it is about, since when, and what was tried."""
    own = [e for e in run.trace[: waits.index] if e.get("digest") == waits["digest"]]
    call = next(event for event in own if event.kind == "calls")
    told = next(e for e in run.trace if e.kind == "told" and e["call"] == call["call"])
    tries = [f"try {e['number']} {e['error']}" for e in own if e.kind == "tried"]
    asked = [e.get("error") or e["state"] for e in own if e.kind == "looked_up"]
    lines = [
        f"  {waits['digest']}: {_about(call)}; waits since {seconds(waits.time)}",
        f"  tried: {', '.join(tries)}; the service was asked: {', '.join(asked) or 'never'}",
        f"  the model was told: {told['text']}",
    ]
    return Item(call, "\n".join(lines))


def _about(event: Event) -> str:
    return f"{event['name']}, {event['order']}, {event['amount']}"
