"""What keeps the views honest: the stepper, the charts, the panel and its token."""

from .kinds import Safeguard

_TESTS = "tests/teaching/test_"

SAFEGUARDS = (
    Safeguard(
        name="text from a script is never markup",
        file="labkit/teaching/controls.py",
        old="return escape(printable(text, keep=keep))",
        new="return printable(text, keep=keep)",
        red=(f"{_TESTS}views.py::test_text_from_a_script_is_never_markup",),
    ),
    Safeguard(
        name="control characters have no effect in a view",
        file="labkit/teaching/phrases.py",
        old="if _reads(c) or c in keep else _escaped(c) for c in text",
        new="for c in text",
        red=(f"{_TESTS}views.py::test_what_would_act_on_a_screen_is_shown_as_an_escape",),
    ),
    Safeguard(
        name="a callback's error is seen",
        file="labkit/teaching/controls.py",
        old='message.value = alert(f"{type(error).__name__}: {error}")',
        new="pass",
        red=(
            f"{_TESTS}stepper.py::test_an_error_in_a_callback_is_seen",
            f"{_TESTS}panel.py::test_a_bad_token_or_number_keeps_the_picture_and_is_seen",
        ),
    ),
    Safeguard(
        name="a task is stepped without the others",
        file="labkit/teaching/stepper.py",
        old="self._own = [p.index for p in places if task in (ALL, p.task)]",
        new="self._own = [p.index for p in places]",
        red=(f"{_TESTS}stepper.py::test_a_task_is_stepped_without_the_others",),
    ),
    Safeguard(
        name="what a line changes is said in a word",
        file="labkit/teaching/stepper.py",
        old='return f"changed to {shown(view.changed[name][1], MOST)}"',
        new='return ""',
        red=(f"{_TESTS}stepper.py::test_what_the_line_changes_is_marked_by_a_word",),
    ),
    Safeguard(
        name="labels of a chart do not cover each other",
        file="labkit/teaching/timeline.py",
        old="if until <= left), MOST_ROWS)",
        new="), MOST_ROWS)",
        red=(f"{_TESTS}timeline.py::test_no_label_stands_on_another_label_or_bar_of_its_row",),
    ),
    Safeguard(
        name="a sign that the font lacks gives no warning",
        file="labkit/teaching/chart.py",
        old='c if ord(c) in _glyphs() else "□" for c in told',
        new="c for c in told",
        red=(
            f"{_TESTS}timeline.py::test_other_scripts_and_markup_are_drawn_as_text_and_told_whole",
        ),
    ),
    Safeguard(
        name="a policy that contradicts itself leaves the run",
        file="labkit/teaching/panel.py",
        old='self.message = f"{error}. The run before is kept."',
        new="raise",
        red=(f"{_TESTS}panel.py::test_a_policy_that_contradicts_itself_says_so_and_the_run_stays",),
    ),
    Safeguard(
        name="a fault that did not strike is said",
        file="labkit/teaching/panel.py",
        old="for f in made.missed)",
        new="for f in ())",
        red=(f"{_TESTS}panel.py::test_a_fault_that_did_not_strike_is_said",),
    ),
    Safeguard(
        name="a token names each thing once",
        file="labkit/teaching/token.py",
        old="if name in given:",
        new="if not name:",
        red=(f"{_TESTS}token.py::test_nonsense_is_refused_with_the_part_and_what_there_is",),
    ),
    Safeguard(
        name="a token says the whole policy or is refused",
        file="labkit/teaching/token.py",
        old="if policy != (replace(default, **told) if told else default):",
        new="if False:",
        red=(f"{_TESTS}token.py::test_a_policy_that_differs_in_more_than_numbers_has_no_token",),
    ),
)
