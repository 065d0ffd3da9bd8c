"""What the runs say of a learner's predictions, each verdict with the event that decided it.

grades = table.grade()
grades["an ordinary error", "retried"].state     # 'wrong'
grades.view("an ordinary error", "retried")      # the place in the source at that event
"""

from collections.abc import Mapping
from dataclasses import dataclass

from labkit.simulation import Event, Run, SimulationError, View

from .said import Told, event_words, pick

OPEN = "no answer yet"


@dataclass(frozen=True, slots=True)
class Grade:
    """One cell: the answer when `first` graded, the latest, what the run says, and why.

    `problem` says why a run cannot answer the question, as with a policy that never ends.
    """

    row: str
    column: str
    first: str
    given: str
    right: str = ""
    event: Event | None = None
    problem: str = ""

    @property
    def state(self) -> str:
        """ "right", "wrong", "no answer yet" or "no verdict"."""
        if self.problem:
            return "no verdict"
        if not self.given:
            return OPEN
        return "right" if self.given == self.right else "wrong"

    @property
    def reason(self) -> str:
        """The deciding event in words, or the problem."""
        return self.problem or (event_words(self.event) if self.event else "")


class Grades(Told):
    """The grades of one table by (scenario, column), and the runs that they were read from."""

    def __init__(
        self,
        title: str,
        grades: Mapping[tuple[str, str], Grade],
        runs: Mapping[str, Run],
        *,
        reveals: bool = False,
    ) -> None:
        self.title = title
        self.grades = {
            cell: grade if reveals or grade.given or grade.problem else _hidden(grade)
            for cell, grade in grades.items()
        }
        self.runs = runs
        self.reveals = reveals

    def __getitem__(self, cell: tuple[str, str]) -> Grade:
        return self.grades[self._cell(*cell)]

    def view(self, row: str, column: str) -> View:
        """The place in the source at which the deciding event has just happened.

        Raises `SimulationError` while the cell has no answer, since that would reveal it.
        """
        cell = self._cell(row, column)
        event = self[cell].event
        if event is None:
            raise SimulationError(f"{self[cell].column} {self[cell].state}: answer it first")
        run = self.runs[cell[0]]
        after = (place for place in run.recorded if place.event >= event.index)
        return View(run, next(after, run.recorded[-1]))

    def text(self) -> str:
        """Every cell's verdict in words; where nothing was answered, nothing is revealed."""
        lines = [f"{'Corrected' if self.reveals else 'Graded'}: {self.title}"]
        for number, row in enumerate(self.runs, start=1):
            cells = {cell: grade for cell, grade in self.grades.items() if cell[0] == row}
            open_row = all(grade.state == OPEN for grade in cells.values()) and not self.reveals
            words = next(iter(cells.values())).row
            lines.append(f" {number}. {words}" + (f": {OPEN}" if open_row else ""))
            for cell, grade in cells.items() if not open_row else ():
                lines += self._lines(cell, grade)
        counts = [grade.state for grade in self.grades.values()]
        told = [f"{counts.count(state)} {state}" for state in dict.fromkeys(counts)]
        return "\n".join([*lines, ", ".join(told)])

    def _lines(self, cell: tuple[str, str], grade: Grade) -> list[str]:
        if self.reveals:
            before, after = grade.first or "-", grade.given or "-"
            return [
                f"    {grade.column}",
                f"       before: {before}   after: {after}   run: {grade.right or 'no verdict'}",
                f"       {grade.reason}",
            ]
        lines = [f"    {grade.column} {grade.state}" + (f": {grade.given}" if grade.given else "")]
        if grade.state == "wrong":
            lines.append(f"       the run says: {grade.right}")
        if grade.state != OPEN:
            lines.append(f"       {grade.reason}")
        if grade.state == "wrong":
            lines.append(f"       step there: grades.view{cell!r}")
        return lines

    def _cell(self, row: str, column: str) -> tuple[str, str]:
        rows = {cell[0]: grade.row for cell, grade in self.grades.items()}
        columns = {cell[1]: grade.column for cell, grade in self.grades.items()}
        return pick("row", row, rows), pick("column", column, columns)


def _hidden(grade: Grade) -> Grade:
    """The cell without what the run says."""
    return Grade(grade.row, grade.column, "", "")
