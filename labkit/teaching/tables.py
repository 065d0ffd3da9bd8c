"""The prediction tables: scenarios are the rows, and facts of a trace the columns.

The words and choices stand in `data/exercises/predictions.toml`; a column has the name of the
function in `FACTS` that reads its answer from a run, with the event that decided it.

    FACTS["requests"](run.trace)    # Fact(answer='2', event=8)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from labkit.scenarios.facts import Fact, checkpoint_saved, retried, text_kept
from labkit.simulation import Event
from labkit.simulation.judge import duplicate_text

from .said import pick, texts

Cell = tuple[str, str]  # scenario and column


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` maps a scenario to its words; each of the `columns` ("words", "choices") asks all."""

    name: str
    title: str
    rows: Mapping[str, str]
    columns: Mapping[str, Mapping[str, Any]]

    def cells(self) -> Mapping[Cell, str]:
        """Every cell, row by row, with the id under which its answer is kept."""
        return {(r, c): f"{self.name}/{r}/{c}" for r in self.rows for c in self.columns}

    def cell(self, row: str, column: str) -> Cell:
        """The cell that is meant, by names, words or parts of them; raises `Unknown`."""
        questions = {name: asked["words"] for name, asked in self.columns.items()}
        return pick("row", row, self.rows), pick("column", column, questions)

    def lines(self, told: Callable[[Cell], str]) -> list[str]:
        """The table as text: after each question what is `told` of its cell."""
        lines = []
        for number, (row, words) in enumerate(self.rows.items(), start=1):
            lines.append(f" {number}. {words}")
            for name, asked in self.columns.items():
                lines.append(f"    {asked['words']:<46}{told((row, name))}")
        return lines


def tables() -> Mapping[str, Table]:
    """All tables by name, in the order of the lessons."""
    told = texts("predictions")
    return {
        name: Table(name, text["title"], text["rows"], {c: told[c] for c in text["columns"]})
        for name, text in told["tables"].items()
    }


def requests(events: Sequence[Event]) -> Fact:
    """How many requests reached the provider; giving up decides, else the last request."""
    told = [e for e in events if e.kind == "request" or e.get("action") == "give_up"]
    made = sum(event.kind == "request" for event in told)
    return Fact(str(made) if made < 4 else "4 or more", told[-1].index)


def outcome(events: Sequence[Event]) -> Fact:
    """How the run ended for the caller."""
    return Fact(events[-1]["outcome"], events[-1].index)


def seen(events: Sequence[Event]) -> Fact:
    """What stands on the page at the end; the last text shown decides."""
    shown = [event.index for event in events if event.kind == "shown"]
    kinds = {event.kind for event in events}
    if not shown:
        return Fact("nothing", events[-1].index)
    if twice := next(duplicate_text(events), None):
        return Fact("the beginning twice", twice.event)
    if "finish" not in kinds:
        return Fact("a part of the answer", shown[-1])
    closed = "a part, marked as interrupted, then the whole answer"
    return Fact(closed if "segment_end" in kinds else "the whole answer, once", shown[-1])


FACTS: Final[Mapping[str, Callable[[Sequence[Event]], Fact]]] = {
    "requests": requests,
    "outcome": outcome,
    "seen": seen,
    "retried": retried,
    "text_kept": text_kept,
    "checkpoint_saved": checkpoint_saved,
}
