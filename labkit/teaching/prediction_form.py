"""The form of a prediction table: a choice a cell, a button that grades, and steps to each miss.

The answers live in the `Predictions`; the form only shows them and passes choices on.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import ipywidgets as ipw

from .controls import button, heard, html, pre
from .grades import Grades
from .predictions import Cell, Predictions

UNCHOSEN: Final = "choose..."
KEYS: Final = "By keyboard: Tab to a list, Space opens it, arrows and Enter choose."


def form(model: Predictions) -> ipw.VBox:
    """The widget; its private parts follow `model.given`, and the other way round."""
    return _Form(model).box


class _Form:
    def __init__(self, model: Predictions) -> None:
        self._model = model
        self._message, self._said = html(), html()
        self._steps, self._place = ipw.VBox(), ipw.Output()
        self._choices = {
            (row, column.name): self._choice(row, column.name)
            for row in model.table.rows
            for column in model.table.columns
        }
        grade = self._button("Grade my answers", "Run each row and grade its answers", self._grade)
        self.box = ipw.VBox(
            [*self._rows(), grade, self._message, self._said, self._steps, self._place]
        )
        self._follow()
        model.observe(heard(self._follow, self._message), "given")

    def _button(self, label: str, tooltip: str, act: Callable[[], None]) -> Any:
        made = button(label, tooltip, act, self._message)
        made.layout.align_self = "flex-start"
        return made

    def _rows(self) -> list[Any]:
        parts: list[Any] = [ipw.Label(KEYS)]
        for number, (row, words) in enumerate(self._model.table.rows.items(), start=1):
            parts.append(ipw.Label(f"{number}. {words}"))
            parts += [choice for cell, choice in self._choices.items() if cell[0] == row]
        return parts

    def _choice(self, row: str, column: str) -> ipw.Dropdown:
        question = self._model.table.column(column)
        number = list(self._model.table.rows).index(row) + 1  # tells equal questions apart
        made = ipw.Dropdown(
            options=[(UNCHOSEN, ""), *((choice, choice) for choice in question.choices)],
            description=f"{number}. {question.words}",
            style={"description_width": "26em"},
            layout={"width": "54em", "max_width": "100%"},
        )
        made.observe(heard(partial(self._chosen, row, column), self._message), "value")
        return made

    def _chosen(self, row: str, column: str, change: Any) -> None:
        if change.new and change.new != self._model.given.get((row, column)):
            self._model.answer(row, column, change.new)
        elif not change.new:
            self._follow()  # an answer can be changed, not taken back

    def _follow(self, *_: Any) -> None:
        for cell, choice in self._choices.items():
            choice.value = self._model.given.get(cell, "")

    def _grade(self) -> None:
        grades = self._model.grade()
        self._said.value = pre(grades.text(), wrap=True)
        wrong = [cell for cell, grade in grades.grades.items() if grade.state == "wrong"]
        self._steps.children = [self._step(grades, cell) for cell in wrong]

    def _step(self, grades: Grades, cell: Cell) -> Any:
        label = f"Step there: {self._choices[cell].description}"
        return self._button(label, "Open the stepper there", partial(self._go, grades, cell))

    def _go(self, grades: Grades, cell: Cell) -> None:
        from .stepper import stepper

        view = grades.view(*cell)
        self._place.outputs = ()
        self._place.append_display_data(stepper(view.run, view))
