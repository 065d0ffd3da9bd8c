"""Predictions: answer before anything runs, then be graded by the runs themselves.

Rules: a right answer is never stored, a fact of the run's trace is; without an answer nothing is
revealed; every verdict names the event that decided it. What was answered when first graded stays
beside what was answered later.

    table = labkit.predict("interruptions")
    table.answer("429 before the first delta", "retried?", "yes, after a wait")
    table.grade()
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from traitlets import Dict, HasTraits

from labkit.scenarios import catalogue
from labkit.simulation import Run, SimulationError, Unknown

from .answers import Answers, answers
from .controls import TwoForms
from .exercises import trouble
from .grades import Grade, Grades
from .said import pick
from .tables import Table, table

Cell = tuple[str, str]  # scenario and column


def predict(name: str, given: Mapping[Any, Any] | None = None) -> "Predictions":
    """The prediction table of that name, with the answers of before, and those `given` now.

    `given` maps a row to {column: choice}. Raises `Unknown` for a table, row, column or choice
    that is not there, and then keeps none of them.
    """
    made = Predictions(table(name), answers())
    cells = [(row, *pair) for row, columns in (given or {}).items() for pair in columns.items()]
    checked = [made.checked(*cell) for cell in cells]
    for row, column, choice in checked:
        made.answer(row, column, choice)
    return made


class Predictions(HasTraits, TwoForms):
    """A learner's answers to one table; `given` maps (scenario, column) to a choice."""

    given: "Dict[Any, Any]" = Dict()

    def __init__(self, table: Table, store: Answers) -> None:
        super().__init__()
        self.table = table
        self._store = store
        self.refresh()

    def answer(self, row: str, column: str, choice: str) -> None:
        """Give or change one answer, and keep it; raises `Unknown` with what there is."""
        row, column, choice = self.checked(row, column, choice)
        self._store.put(self.table.question(row, column), choice)
        self.refresh()

    def checked(self, row: str, column: str, choice: str) -> tuple[str, str, str]:
        """The scenario, column and choice that are meant; raises `Unknown`."""
        row, column = self.cell(row, column)
        choices = {choice: choice for choice in self.table.column(column).choices}
        return row, column, pick("choice", choice, choices)

    def cell(self, row: str, column: str) -> Cell:
        """The scenario and the column that are meant; raises `Unknown`."""
        columns = {each.name: each.words for each in self.table.columns}
        return pick("row", row, self.table.rows), pick("column", column, columns)

    def refresh(self) -> None:
        """Look again at what is kept: another kernel may have answered."""
        self.given = {cell: latest for cell, (_, latest) in self.kept().items()}

    def kept(self) -> dict[Cell, tuple[str, str]]:
        """The first and the latest answer of each cell that has one of the choices."""
        known = self._store.all()
        found = {}
        for row in self.table.rows:
            for column in self.table.columns:
                answer = known.get(self.table.question(row, column.name))
                if answer and {answer.first, answer.latest} <= set(column.choices):
                    found[row, column.name] = (answer.first, answer.latest)
        return found

    def grade(self, *, policy: Any = None, variant: str = "", seed: int = 0) -> Grades:
        """Run each row and grade its answers; `variant` names another way to run the same rows."""
        return self._graded(self._runs(policy, variant, seed), variant, reveals=False)

    def corrected(self, *, policy: Any = None, variant: str = "", seed: int = 0) -> Grades:
        """The whole key, read from the runs, beside the answers of before and after."""
        return self._graded(self._runs(policy, variant, seed), variant, reveals=True)

    def _graded(self, runs: Mapping[str, Run], variant: str, *, reveals: bool) -> Grades:
        given = self.kept()
        grades = {
            (row, column.name): _grade(self.table, row, column.name, run, given)
            for row, run in runs.items()
            for column in self.table.columns
        }
        self._store.mark_graded(self.table.question(*cell) for cell in given)
        which = f" ({variant})" if variant else ""
        return Grades(f"{self.table.title}{which}", grades, runs, reveals=reveals)

    def _runs(self, policy: Any, variant: str, seed: int) -> dict[str, Run]:
        names = self._names(variant)
        return {
            row: catalogue.simulate(name, policy=policy, seed=seed) for row, name in names.items()
        }

    def _names(self, variant: str) -> dict[str, str]:
        """Each row's scenario; its variant where there is one, and at least one row has it."""
        known = set(catalogue.names())
        if not variant:
            return {row: row for row in self.table.rows}
        names = {row: f"{row}_{variant}" for row in self.table.rows}
        if known.isdisjoint(names.values()):
            tails = [(row, n) for row in self.table.rows for n in known if n.startswith(f"{row}_")]
            raise Unknown("variant", variant, sorted({n[len(row) + 1 :] for row, n in tails}))
        return {row: name if name in known else row for row, name in names.items()}

    def text(self) -> str:
        """The questions with the answers given so far."""
        lines = [f"Predict: {self.table.title} ({self.table.name})"]
        for number, (row, words) in enumerate(self.table.rows.items(), start=1):
            lines.append(f" {number}. {words}")
            for column in self.table.columns:
                lines.append(f"    {column.words:<46}{self.given.get((row, column.name), '...')}")
        lines.append("Choices")
        for column in self.table.columns:
            lines.append(f"    {column.name}: {' | '.join(column.choices)}")
        row, column = next(iter(self.table.rows.values())), self.table.columns[0]
        call = f"table.answer({row!r}, {column.name!r}, {column.choices[0]!r})"
        return "\n".join([*lines, f"Answer in the form, or in code, like {call}"])

    def __repr__(self) -> str:
        cells = len(self.table.rows) * len(self.table.columns)
        return f"<predictions {self.table.name}: {len(self.given)} of {cells} answered>"

    @cached_property
    def widget(self) -> Any:
        """The form, built when it is first shown."""
        from .prediction_form import form

        return form(self)


def _grade(
    table: Table, row: str, column: str, run: Run, given: Mapping[Cell, tuple[str, str]]
) -> Grade:
    first, latest = given.get((row, column), ("", ""))
    question = table.column(column)
    words = (table.rows[row], question.words)
    problem = trouble(run, None)
    if not problem:
        try:
            fact = question.read(run.trace)
            return Grade(*words, first, latest, fact.answer, run.trace[fact.event])
        except SimulationError as error:
            problem = str(error)
    return Grade(*words, first, latest, problem=problem)
