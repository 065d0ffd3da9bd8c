"""Predictions are graded by runs, and every verdict names the event that decided it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import labkit
from labkit.scenarios import catalogue
from labkit.simulation import Livelock, SimulationError, Unknown
from labkit.teaching.answers import answers
from labkit.teaching.predictions import Predictions
from labkit.teaching.said import texts

ROW = "interruption.rate_limit"
ONCE = labkit.RetryPolicy(retry_on=labkit.TRANSIENT, attempts=1)


TABLES = list(texts("predictions")["tables"])


def predicted(name: str, given: dict[str, Any]) -> Predictions:
    """The table of that name with answers: row -> {column: choice}."""
    table = labkit.predict(name)
    for row, columns in given.items():
        for column, choice in columns.items():
            table.answer(row, column, choice)
    return table


def graded(given: dict[str, Any], **how: Any) -> Any:
    return predicted("interruptions", given).grade(**how)


def all_right(name: str) -> dict[str, dict[str, str]]:
    """The key of a table, from its own corrected form."""
    key: dict[str, dict[str, str]] = {}
    for (row, column), grade in labkit.predict(name).corrected().grades.items():
        key.setdefault(row, {})[column] = grade.right
    return key


@pytest.mark.parametrize("name", TABLES)
def test_every_right_answer_is_one_of_the_choices_and_has_its_event(name: str) -> None:
    grades = labkit.predict(name).corrected()
    for (row, column), grade in grades.grades.items():
        assert grade.right in labkit.predict(name).columns[column]["choices"]
        assert grade.event in grades.runs[row].trace


@pytest.mark.parametrize("name", TABLES)
def test_every_column_tells_some_rows_apart(name: str) -> None:
    key = all_right(name)
    for column in labkit.predict(name).columns:
        assert len({key[row][column] for row in key}) > 1


@pytest.mark.parametrize("name", TABLES)
def test_the_key_of_a_table_is_graded_right_in_every_cell(name: str) -> None:
    grades = predicted(name, all_right(name)).grade()
    assert {grade.state for grade in grades.grades.values()} == {"right"}


def test_the_nine_cells_of_the_three_interruptions_have_labkits_key() -> None:
    key = [list(row.values()) for row in all_right("interruptions").values()]
    draft, steps = (
        "on the page, and in the session as a draft",
        "the user's turn and the tool's result",
    )
    assert key == [
        ["yes, after a wait", "there was none yet", "the user's turn"],
        ["no, the turn ends", draft, steps],
        ["no, the turn ends", draft, steps],
    ]


def test_a_cell_without_an_answer_reveals_nothing() -> None:
    grades = graded({ROW: {"retried": "no, the turn ends"}})
    open_cell = grades["stop", "retried"]
    assert (open_cell.state, open_cell.right, open_cell.event) == ("no answer yet", "", None)
    assert "draft" not in grades.text()
    with pytest.raises(SimulationError, match="answer it first"):
        grades.view("stop", "retried")


def test_a_wrong_answer_names_the_event_that_proves_it_wrong() -> None:
    grades = graded({ROW: {"retried": "no, the turn ends"}})
    grade = grades["429 before the first delta", "retried?"]
    assert (grade.state, grade.right) == ("wrong", "yes, after a wait")
    assert (grade.event.kind, grade.event["action"]) == ("decision", "retry")
    assert repr(grade.event) in grades.text()


def test_a_miss_links_to_the_first_place_after_its_event() -> None:
    grades = graded({ROW: {"retried": "no, the turn ends"}})
    view, event = grades.view(ROW, "retried"), grades[ROW, "retried"].event
    assert view.place.event >= event.index
    assert view.run.at(view.index - 1).place.event < event.index


def test_another_policy_flips_the_right_answer_and_its_event() -> None:
    answers = {ROW: {"retried": "yes, after a wait"}}
    right, wrong = graded(answers)[ROW, "retried"], graded(answers, policy=ONCE)[ROW, "retried"]
    assert (right.state, wrong.state) == ("right", "wrong")
    assert (right.event["action"], wrong.event["action"]) == ("retry", "give_up")


def test_the_forgetful_variant_flips_where_the_text_is_kept() -> None:
    answers = {"interruption.stop": {"text_kept": "on the page, and in the session as a draft"}}
    right = graded(answers)["stop", "text_kept"]
    wrong = graded(answers, variant="forgetful")["stop", "text_kept"]
    assert (right.state, right.event.kind) == ("right", "draft")
    assert (wrong.state, wrong.right, wrong.event.kind) == ("wrong", "on the page only", "end")


def test_a_run_that_never_ends_leaves_as_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    table = predicted("interruptions", {ROW: {"retried": "yes, after"}})
    monkeypatch.setattr(catalogue, "simulate", partial(catalogue.simulate, total=10))
    with pytest.raises(Livelock):
        table.grade()
    assert answers().all()[f"interruptions/{ROW}/retried"].first is None, "it was not graded"


def test_before_and_after_stand_side_by_side_with_what_the_run_says() -> None:
    table = predicted("interruptions", {ROW: {"retried": "no, the turn ends"}})
    table.grade()
    table.answer(ROW, "retried", "yes, after a wait")
    told = "first: no, the turn ends   now: yes, after a wait   the run: yes, after a wait"
    assert told in table.corrected().text()


def test_one_answer_stands_once_and_a_miss_says_how_to_step_to_it() -> None:
    text = graded({ROW: {"retried": "no, the turn ends"}}).text()
    assert text.startswith("Graded: three interruptions")
    assert "wrong\n       your answer: no, the turn ends   the run: yes, after a wait\n" in text
    assert text.endswith("Step to an event: .view(row, column) of these grades")
    right = graded({ROW: {"retried": "yes, after a wait"}}).text()
    assert "Step to an event" not in right


def test_the_title_says_what_it_is_and_names_the_variant() -> None:
    table = predicted("interruptions", {ROW: {"retried": "no, the turn ends"}})
    text = table.corrected(variant="forgetful", policy=ONCE).text()
    assert text.startswith("Corrected (forgetful): three interruptions")
    assert "no answer yet" not in text
    assert "the run: there was none yet\n" in text


def test_an_answer_is_confirmed_in_one_line() -> None:
    told = labkit.predict("interruptions").answer("429 before", "retried?", "yes, after")
    assert repr(told) == (
        "Answered: the provider answers 429 before the first delta. "
        "Is it tried again? yes, after a wait"
    )


def test_the_corrected_table_reveals_the_cells_that_were_never_answered() -> None:
    grades = labkit.predict("interruptions").corrected()
    assert all(grade.right for grade in grades.grades.values())


@pytest.mark.parametrize(
    ("wrong", "listed"),
    [
        (("rate_limits", "retried", "no, the turn ends"), "the user presses stop"),
        (("stop", "colour", "no, the turn ends"), "Is it tried again?"),
        (("stop", "retried", "perhaps"), "yes, in a new segment"),
        (("stop", "retried", "yes"), "yes, in a new segment"),  # which yes?
        (("stop", "retried", ""), "yes, in a new segment"),
    ],
)
def test_an_unknown_row_column_or_choice_lists_what_there_is(
    wrong: tuple[str, str, str], listed: str
) -> None:
    table = labkit.predict("interruptions")
    with pytest.raises(Unknown, match=listed.replace("?", r"\?")):
        table.answer(*wrong)
    assert table.given == {}


@pytest.mark.parametrize(
    ("cell", "listed"),
    [
        ("stop", "Is it tried again?"),
        (("stop",), "the user presses stop"),
        (("stop", "retried", "text_kept"), "the user presses stop"),
        (("stop", None), "Is it tried again?"),
        ((["stop"], "retried"), "the user presses stop"),
        (4, "the user presses stop"),
        ((3, 4), "Is it tried again?"),
    ],
)
def test_a_grade_that_is_not_there_lists_what_there_is(cell: Any, listed: str) -> None:
    grades = labkit.predict("interruptions").grade()
    with pytest.raises(Unknown, match=listed.replace("?", r"\?")):
        grades[cell]
    with pytest.raises(Unknown, match="the user presses stop"):
        labkit.predict("interruptions").answer([], {}, 5)  # type: ignore[arg-type]


def test_an_unknown_table_or_variant_lists_what_there_is() -> None:
    with pytest.raises(Unknown, match="'first_stream', 'interruptions', 'retry_boundary'"):
        labkit.predict("weather")
    with pytest.raises(Unknown, match="'first_stream', 'interruptions', 'retry_boundary'"):
        labkit.predict([])  # type: ignore[arg-type]
    with pytest.raises(Unknown, match=r"no variant 'careless'; there is: 'forgetful'$"):
        labkit.predict("interruptions").corrected(variant="careless")


def test_answers_are_there_again_after_a_restart_and_strange_ones_are_passed_over() -> None:
    predicted("interruptions", {ROW: {"retried": "no, the turn"}})
    answers().put(f"interruptions/{ROW}/text_kept", "a choice of an older lab")
    assert labkit.predict("interruptions").given == {(ROW, "retried"): "no, the turn ends"}


def test_the_text_form_asks_and_shows_the_answers_given_and_gives_no_other_away() -> None:
    table = predicted("interruptions", {ROW: {"retried": "no, the turn"}})
    questions, _, choices = table.text().partition("Choices")
    assert questions.count("...") == 8
    assert questions.count("no, the turn ends") == 1
    assert "on the page only" in choices


# --- the form


def form(table: Predictions) -> tuple[list[Any], list[Any], Any]:
    """Its choices, its buttons, and a function that gives all that it shows as markup."""
    parts = list(walk(table.widget))
    kinds: dict[str, list[Any]] = {}
    for part in parts:
        kinds.setdefault(type(part).__name__, []).append(part)
    return kinds["Dropdown"], kinds["Button"], lambda: "".join(p.value for p in kinds["HTML"])


def walk(widget: Any) -> Any:
    yield widget
    for child in getattr(widget, "children", ()):
        yield from walk(child)


def test_nothing_is_preselected_and_every_control_has_a_label_of_its_own() -> None:
    choices, buttons, _ = form(labkit.predict("interruptions"))
    assert [choice.value for choice in choices] == [""] * 9
    labels = [control.description for control in [*choices, *buttons]]
    assert all(labels)
    assert len(set(labels)) == len(labels)


def test_the_form_says_how_a_list_is_used_by_keyboard() -> None:
    assert labkit.predict("interruptions").widget.children[0].value.startswith("By keyboard: Tab")


def test_where_a_form_has_no_room_its_lists_stand_below_their_questions() -> None:
    box = labkit.predict("interruptions").widget
    assert "labkit-predict" in box._dom_classes
    (style,) = [part.value for part in walk(box) if "<style>" in str(getattr(part, "value", ""))]
    assert ".labkit-predict .widget-dropdown {flex-wrap: wrap}" in style
    assert ".labkit-predict .widget-label {white-space: normal" in style


def test_a_choice_in_the_form_is_an_answer_and_an_answer_in_code_shows_in_the_form() -> None:
    table = labkit.predict("interruptions")
    choices, _, _ = form(table)
    choices[0].value = "no, the turn ends"
    assert labkit.predict("interruptions").given == {(ROW, "retried"): "no, the turn ends"}
    table.answer("stop", "text_kept", "on the page only")
    assert choices[7].value == "on the page only"
    choices[0].value = ""
    assert choices[0].value == "no, the turn ends"  # nothing is taken back


def test_the_button_grades_and_offers_a_step_to_each_miss() -> None:
    table = predicted("interruptions", {ROW: {"retried": "no, the turn"}})
    _, buttons, shown = form(table)
    buttons[0].click()
    assert "your answer: no, the turn ends" in shown()
    assert {(b.layout.width, b.layout.align_self) for b in form(table)[1]} == {
        ("auto", "flex-start")
    }
    step = form(table)[1][1]
    assert step.description == "Step there: 1. Is it tried again?"
    before = len(list(walk(table.widget)))
    step.click()
    assert len(list(walk(table.widget))) > before, "the stepper is there"


def test_an_error_in_a_callback_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    table = labkit.predict("interruptions")
    _, buttons, shown = form(table)

    def fails(self: Predictions) -> None:
        raise RuntimeError("<b>no</b>")

    monkeypatch.setattr(Predictions, "grade", fails)
    buttons[0].click()
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt;" in shown()


def test_one_object_has_two_forms() -> None:
    table = labkit.predict("interruptions")
    bundle = table._repr_mimebundle_()
    assert bundle["text/plain"] == table.text()
    assert set(bundle) == {"text/plain", "application/vnd.jupyter.widget-view+json"}
    assert repr(table) == "<predictions interruptions>"


def test_a_row_and_a_column_may_be_named_by_their_numbers() -> None:
    table = labkit.predict("interruptions")
    table.answer(1, 1, 1)
    assert table.given == {("interruption.rate_limit", "retried"): "yes, after a wait"}
    for wrong in (0, 4, -1, True, 1.0):
        with pytest.raises(Unknown, match="the user presses stop"):
            table.answer(wrong, 1, 1)  # type: ignore[arg-type]
