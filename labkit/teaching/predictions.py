"""Predictions: answer before anything runs, then be graded by the runs themselves.

Rules: scenarios are the rows (or tokens of their runs), and the columns are facts of a trace, read
by the function of that name in `labkit.scenarios.facts`. Words and choices stand in
`data/exercises/predictions.toml`, a right answer nowhere. Without an answer nothing is revealed;
every verdict names the event that decided it. What was answered when first graded stays beside
what was answered later.

    table = labkit.predict("interruptions")
    table.answer("429 before", "retried?", "yes, after a wait")
    table.grade().view("429 before", "retried?")    # the place at the event that decided it
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from traitlets import Dict, HasTraits

from labkit.recovery.errors import ProviderError
from labkit.scenarios import catalogue
from labkit.scenarios.durable_facts import DURABLE_FACTS
from labkit.scenarios.effect_facts import EFFECT_FACTS
from labkit.scenarios.facts import FACTS
from labkit.scenarios.lease_facts import LEASE_FACTS
from labkit.simulation import Event, Run, SimulationError, View

from .answers import Answer, answers
from .controls import TwoForms
from .said import Told, pick, texts
from .token import read

Cell = tuple[str, str]  # scenario and column
_FACTS: Final = {**FACTS, **EFFECT_FACTS, **LEASE_FACTS, **DURABLE_FACTS}


def predict(name: str) -> "Predictions":
    """The prediction table of that name, with the answers of before; raises `Unknown`."""
    return Predictions(pick("prediction table", name, list(texts("predictions")["tables"])))


class Predictions(HasTraits, TwoForms):
    """One table with a learner's answers; `given` maps (scenario, column) to a choice.

    `rows` maps a scenario to its words, `columns` a name to its "words" and "choices", and `cells`
    every cell, row by row, to the id under which its answer is kept.
    """

    given: "Dict[Any, Any]" = Dict()

    def __init__(self, name: str) -> None:
        super().__init__()
        told = texts("predictions")
        table = told["tables"][name]
        self.name = name
        self.title = f"predictions {name}"
        self.about: str = table["title"]
        self.rows: Mapping[str, str] = table["rows"]
        self.columns: Mapping[str, Any] = {column: told[column] for column in table["columns"]}
        self.cells = {(r, c): f"{name}/{r}/{c}" for r in self.rows for c in self.columns}
        self.variants: list[str] = table.get("variants", [])
        self.refresh()

    def answer(self, row: str, column: str, choice: str) -> Told:
        """Give or change one answer, keep it and say so; raises `Unknown` with what there is."""
        cell = self.cell(row, column)
        asked = self.columns[cell[1]]
        chosen = pick("choice", choice, asked["choices"])
        answers().put(self.cells[cell], chosen)
        self.refresh()
        return Told(f"Answered: {self.rows[cell[0]]}. {asked['words']} {chosen}")

    def cell(self, row: str, column: str) -> Cell:
        """The cell that is meant, by names, words or parts of them; raises `Unknown`."""
        questions = {name: asked["words"] for name, asked in self.columns.items()}
        return pick("row", row, self.rows), pick("column", column, questions)

    def refresh(self) -> None:
        """Look again at what is kept: another kernel may have answered."""
        self.given = {cell: answer.latest for cell, answer in self.kept().items()}

    def kept(self) -> dict[Cell, Answer]:
        """The answer to each cell that has one of its choices."""
        known, found = answers().all(), {}
        for cell, question in self.cells.items():
            answer, choices = known.get(question), self.columns[cell[1]]["choices"]
            if answer and answer.latest in choices and answer.first in (None, *choices):
                found[cell] = answer
        return found

    def grade(self, *, policy: Any = None, variant: str = "", reveals: bool = False) -> "Grades":
        """Run each row and grade its answers; `variant` names another way to run the same rows.

        Cells without an answer stay hidden unless it `reveals` them. An error that ends a run and
        is not a provider's, such as `Livelock`, leaves.
        """
        how, tail = "Corrected" if reveals else "Graded", ""
        if variant:
            named = pick("variant", variant, self.variants)
            how, tail = f"{how} ({named})", f"_{named}"
        runs = {row: self._run(row + tail, policy) for row in self.rows}
        for run in runs.values():
            if run.error is not None and not isinstance(run.error, ProviderError):
                raise run.error
        answers().mark_graded([self.cells[cell] for cell in self.kept()])
        kept, grades = self.kept(), {}
        for row, column in self.cells:
            given, trace = kept.get((row, column)), runs[row].trace
            fact = _FACTS[column](trace)
            told = given or reveals
            grades[row, column] = Grade(given, fact.answer, trace[fact.event]) if told else Grade()
        return Grades(self, grades, runs, how)

    def _run(self, row: str, policy: Any) -> Run:
        asked = read(row)
        return catalogue.simulate(**(asked | {"policy": policy or asked["policy"]}))

    def corrected(self, *, policy: Any = None, variant: str = "") -> "Grades":
        """The whole key, read from the runs, beside the answers of before and after."""
        return self.grade(policy=policy, variant=variant, reveals=True)

    def lines(self, told: Callable[[Cell], str]) -> list[str]:
        """The table as text: after each question what is `told` of its cell."""
        lines = []
        for number, (row, words) in enumerate(self.rows.items(), start=1):
            lines.append(f" {number}. {words}")
            for name, asked in self.columns.items():
                lines.append(f"    {asked['words']:<46}{told((row, name))}")
        return lines

    def text(self) -> str:
        """The questions with the answers given so far, and the choices."""
        lines = self.lines(lambda cell: self.given.get(cell, "..."))
        columns = self.columns.items()
        choices = [f"    {name}: {' | '.join(column['choices'])}" for name, column in columns]
        how = "Answer in the form, or by table.answer(row, column, choice)"
        return "\n".join([f"Predict: {self.about}", *lines, "Choices", *choices, how])

    @cached_property
    def widget(self) -> Any:
        """The form, built when it is first shown."""
        from .prediction_form import Form

        return Form(self).box


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
            changed = first not in (None, now)
            yours = f"first: {first}   now: {now}" if changed else f"your answer: {now}"
            told = f"{self.state}\n       {yours}   {told}"
        return f"{told}\n       {self.event!r}"


class Grades(Told):
    """The grades of a table: `grades` by cell, and the `runs` by row that they were read from."""

    def __init__(
        self, table: Predictions, grades: Mapping[Cell, Grade], runs: Mapping[str, Run], how: str
    ) -> None:
        lines = table.lines(lambda cell: str(grades[cell]))
        states = [grade.state for grade in grades.values()]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        step = ["Step to an event: .view(row, column) of these grades"] if "wrong" in states else []
        super().__init__("\n".join([f"{how}: {table.about}", *lines, counts, *step]))
        self.table = table
        self.grades = grades
        self.runs = runs

    def __getitem__(self, cell: Cell) -> Grade:
        """The grade of (row, column); raises `Unknown` with what there is."""
        pair = cell if isinstance(cell, tuple) and len(cell) == 2 else (cell, None)
        return self.grades[self.table.cell(*pair)]

    def view(self, row: str, column: str) -> View:
        """The place in the source at which the deciding event has just happened.

        Raises `SimulationError` while the cell has no answer, since that would reveal it.
        """
        event = self[row, column].event
        if event is None:
            raise SimulationError(f"{self.table.about}: no answer yet, so answer it first")
        run = self.runs[self.table.cell(row, column)[0]]
        after = (place for place in run.recorded if place.event >= event.index)
        return View(run, next(after, run.recorded[-1]))
