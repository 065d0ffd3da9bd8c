"""Predictions: answer before anything runs, then be graded by the runs themselves.

Rules: a right answer is never stored, a fact of the run's trace is; without an answer nothing is
revealed; every verdict names the event that decided it. What was answered when first graded stays
beside what was answered later.

    table = labkit.predict("interruptions")
    table.answer("429 before", "retried?", "yes, after a wait")
    table.grade().view("429 before", "retried?")    # the place at the event that decided it
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from traitlets import Dict, HasTraits

from labkit.recovery.errors import ProviderError
from labkit.scenarios import catalogue
from labkit.simulation import Event, Run, SimulationError, Unknown, View

from .answers import Answer, answers
from .controls import TwoForms
from .said import Told, pick
from .tables import FACTS, Cell, Table, tables


def predict(name: str) -> "Predictions":
    """The prediction table of that name, with the answers of before; raises `Unknown`."""
    known = tables()
    if name not in known:
        raise Unknown("prediction table", name, known)
    return Predictions(known[name])


class Predictions(HasTraits, TwoForms):
    """A learner's answers to one table; `given` maps (scenario, column) to a choice."""

    given: "Dict[Any, Any]" = Dict()

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self.title = f"predictions {table.name}"
        self.refresh()

    def answer(self, row: str, column: str, choice: str) -> Told:
        """Give or change one answer, keep it and say so; raises `Unknown` with what there is."""
        cell = self.table.cell(row, column)
        choices = {choice: choice for choice in self.table.columns[cell[1]]["choices"]}
        chosen = pick("choice", choice, choices)
        answers().put(self.table.cells()[cell], chosen)
        self.refresh()
        asked = self.table.columns[cell[1]]["words"]
        return Told(f"Answered: {self.table.rows[cell[0]]}. {asked} {chosen}")

    def refresh(self) -> None:
        """Look again at what is kept: another kernel may have answered."""
        self.given = {cell: answer.latest for cell, answer in self._kept().items()}

    def grade(self, *, policy: Any = None, variant: str = "", reveals: bool = False) -> "Grades":
        """Run each row and grade its answers; `variant` names another way to run the same rows.

        Cells without an answer stay hidden unless it `reveals` them. An error that ends a run and
        is not a provider's, such as `Livelock`, leaves.
        """
        if variant and variant not in (known := self._variants()):
            raise Unknown("variant", variant, known)
        tail = f"_{variant}" if variant else ""
        runs = {row: catalogue.simulate(row + tail, policy=policy) for row in self.table.rows}
        for run in runs.values():
            if run.error is not None and not isinstance(run.error, ProviderError):
                raise run.error
        answers().mark_graded([self.table.cells()[cell] for cell in self._kept()])
        kept, grades = self._kept(), {}
        for row, column in self.table.cells():
            given, trace = kept.get((row, column)), runs[row].trace
            fact = FACTS[column](trace)
            told = given or reveals
            grades[row, column] = Grade(given, fact.answer, trace[fact.event]) if told else Grade()
        title = "Corrected" if reveals else "Graded"
        how = ["policy=..."] if policy else []
        again = ", ".join([*how, f'variant="{variant}"'] if variant else how)
        title += f" ({variant})" if variant else ""
        return Grades(self.table, grades, runs, title, f"table.grade({again})")

    def corrected(self, *, policy: Any = None, variant: str = "") -> "Grades":
        """The whole key, read from the runs, beside the answers of before and after."""
        return self.grade(policy=policy, variant=variant, reveals=True)

    def text(self) -> str:
        """The questions with the answers given so far, and the choices."""
        lines = self.table.lines(lambda cell: self.given.get(cell, "..."))
        columns = self.table.columns.items()
        choices = [f"    {name}: {' | '.join(column['choices'])}" for name, column in columns]
        how = "Answer in the form, or by table.answer(row, column, choice)"
        return "\n".join([f"Predict: {self.table.title}", *lines, "Choices", *choices, how])

    @cached_property
    def widget(self) -> Any:
        """The form, built when it is first shown."""
        from .prediction_form import Form

        return Form(self).box

    def _variants(self) -> list[str]:
        """The names of the other ways to run, which each row has."""
        known, first = catalogue.names(), next(iter(self.table.rows))
        tails = [name.removeprefix(first) for name in known if name.startswith(f"{first}_")]
        return [tail[1:] for tail in tails if all(row + tail in known for row in self.table.rows)]

    def _kept(self) -> dict[Cell, Answer]:
        """The answer to each cell that has one of its choices."""
        known, found = answers().all(), {}
        for cell, question in self.table.cells().items():
            answer, choices = known.get(question), self.table.columns[cell[1]]["choices"]
            if answer and answer.latest in choices and answer.first in (None, *choices):
                found[cell] = answer
        return found


@dataclass(frozen=True, slots=True)
class Grade:
    """One cell: what was `given`, what the run says is `right`, and the `event` that decided it.

    Where the cell is not revealed, `right` is empty and `event` None.
    """

    given: Answer | None = None
    right: str = ""
    event: Event | None = None

    @property
    def state(self) -> str:
        """ "right", "wrong", "not answered" where it is revealed, else "no answer yet"."""
        if self.given is None:
            return "not answered" if self.event else "no answer yet"
        return "right" if self.given.latest == self.right else "wrong"

    def __str__(self) -> str:
        if self.event is None:
            return self.state
        told = f"the run: {self.right}"
        if self.given:
            first, now = self.given.first, self.given.latest
            yours = (
                f"your answer: {now}" if first in (None, now) else f"first: {first}   now: {now}"
            )
            told = f"{self.state}\n       {yours}   {told}"
        return f"{told}\n       {self.event!r}"


class Grades(Told):
    """The grades of one table by cell, and the `runs` by row that they were read from.

    `again` is the call that makes them.
    """

    def __init__(
        self,
        table: Table,
        grades: Mapping[Cell, Grade],
        runs: Mapping[str, Run],
        title: str,
        again: str,
    ) -> None:
        lines = table.lines(lambda cell: str(grades[cell]))
        states = [grade.state for grade in grades.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        step = [f"Step to an event: {again}.view(row, column)"] if "wrong" in states else []
        super().__init__("\n".join([f"{title}: {table.title}", *lines, counts, *step]))
        self.table = table
        self.grades = grades
        self.runs = runs

    def __getitem__(self, cell: Cell) -> Grade:
        return self.grades[self.table.cell(*cell)]

    def view(self, row: str, column: str) -> View:
        """The place in the source at which the deciding event has just happened.

        Raises `SimulationError` while the cell has no answer, since that would reveal it.
        """
        event = self[row, column].event
        if event is None:
            raise SimulationError(f"{self.table.title}: no answer yet, so answer it first")
        run = self.runs[self.table.cell(row, column)[0]]
        after = (place for place in run.recorded if place.event >= event.index)
        return View(run, next(after, run.recorded[-1]))
