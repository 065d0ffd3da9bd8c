"""The form of a prediction table: a choice a cell, a button that grades, and steps to each miss.

The answers live in the `Predictions`; the form only shows them and passes choices on. Where there
is no room beside a question, its list stands below it.
"""

from functools import partial
from typing import Any, Final

import ipywidgets as ipw

from .controls import button, heard, html, pre
from .predictions import Cell, Grades, Predictions
from .stepper import stepper

KEYS: Final = (
    "By keyboard: Tab to a list, Space opens it, arrows and Enter choose; letters are JupyterLab's."
)
_STYLE: Final = """<style>
.labkit-predict .widget-label {white-space: normal; height: auto; max-width: 100%; flex: 0 1 auto}
.labkit-predict .widget-button {white-space: normal; height: auto; max-width: 100%}
.labkit-predict .widget-dropdown {flex-wrap: wrap}
.labkit-predict .widget-dropdown > .widget-label {text-align: left}
.labkit-predict .widget-dropdown > select {flex: 1 1 18em}
</style>"""


class Form:
    """The widget is `box`; its choices follow `model.given`, and the other way round."""

    def __init__(self, model: Predictions) -> None:
        self._model = model
        self._message, self._graded = html(), html()
        self._steps, self._place = ipw.VBox(), ipw.VBox()
        self._choices: dict[Cell, Any] = {}
        parts: list[Any] = [ipw.Label(KEYS)]
        for number, (row, words) in enumerate(model.rows.items(), start=1):
            parts.append(ipw.Label(f"{number}. {words}"))
            for column in model.columns:
                self._choices[row, column] = self._choice(number, (row, column))
                parts.append(self._choices[row, column])
        parts.append(button("Grade my answers", "Run each row", self._grade, self._message))
        parts += [self._message, self._graded, self._steps, self._place, html(_STYLE)]
        self.box = ipw.VBox(parts)
        self.box.add_class("labkit-predict")
        model.observe(heard(self._follow, self._message), "given")

    def _choice(self, number: int, cell: Cell) -> Any:
        """A list for one cell; the row's number tells equal questions apart."""
        column = self._model.columns[cell[1]]
        made = ipw.Dropdown(
            options=[("choose...", ""), *((choice, choice) for choice in column["choices"])],
            value=self._model.given.get(cell, ""),
            description=f"{number}. {column['words']}",
            style={"description_width": "26em"},
            layout={"width": "54em", "max_width": "100%", "height": "auto"},
        )
        made.observe(heard(partial(self._chosen, cell), self._message), "value")
        return made

    def _chosen(self, cell: Cell, change: Any) -> None:
        if change.new not in ("", self._model.given.get(cell)):
            self._model.answer(*cell, change.new)
        self._follow()  # an answer can be changed, not taken back

    def _follow(self, *_: Any) -> None:
        for cell, choice in self._choices.items():
            choice.value = self._model.given.get(cell, "")

    def _grade(self) -> None:
        grades = self._model.grade()
        self._graded.value = pre(grades.text(), wrap=True)
        self._steps.children = [
            button(
                f"Step there: {self._choices[cell].description}",
                "Open the stepper",
                partial(self._step, grades, cell),
                self._message,
            )
            for cell, grade in grades.grades.items()
            if grade.state == "wrong"
        ]

    def _step(self, grades: Grades, cell: Cell) -> None:
        view = grades.view(*cell)
        self._place.children = [stepper(view.run, view).widget]
