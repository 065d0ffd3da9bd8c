"""What keeps the views honest: the stepper, the charts, the panel and its token."""

from .kinds import Safeguard

_TESTS = "tests/teaching/test_"

SAFEGUARDS = (
    Safeguard(
        name="text from a script is never markup",
        file="labkit/teaching/phrases.py",
        old="return escape(printable(text, keep=keep))",
        new="return printable(text, keep=keep)",
        red=(f"{_TESTS}views.py::test_text_from_a_script_is_never_markup",),
    ),
    Safeguard(
        name="control characters have no effect in a view",
        file="labkit/teaching/phrases.py",
        old="_escaped(c) if _acts(c) and c not in keep else c for c in text",
        new="c for c in text",
        red=(f"{_TESTS}views.py::test_what_would_act_on_a_screen_is_shown_as_an_escape",),
    ),
    Safeguard(
        name="a callback's error is seen",
        file="labkit/teaching/controls.py",
        old="""message.value = f'<div role="alert" style="{_ALERT}">{named}</div>'""",
        new="pass",
        red=(
            f"{_TESTS}stepper.py::test_an_error_in_a_callback_is_seen",
            f"{_TESTS}panel.py::test_a_bad_token_or_number_keeps_the_picture_and_is_seen",
        ),
    ),
    Safeguard(
        name="a task is stepped without the others",
        file="labkit/teaching/stepper.py",
        old="[p for p in self.run.recorded if self.task in (ALL, p.task)]",
        new="list(self.run.recorded)",
        red=(f"{_TESTS}stepper.py::test_a_task_is_stepped_without_the_others",),
    ),
    Safeguard(
        name="a place has one number in the heading and in the box",
        file="labkit/teaching/stepper.py",
        old="place {steps.position} of",
        new="place {place.index} of",
        red=(f"{_TESTS}stepper.py::test_the_heading_counts_places_like_the_number_box",),
    ),
    Safeguard(
        name="what a line changes is said in a word",
        file="labkit/teaching/views.py",
        old='f"changed to {_value(new)}" for',
        new="_value(new) for",
        red=(f"{_TESTS}stepper.py::test_what_the_line_changes_is_marked_by_a_word",),
    ),
    Safeguard(
        name="labels of a chart do not cover each other",
        file="labkit/teaching/timeline.py",
        old="all(right <= begins or ends <= left for begins, ends, _ in taken)",
        new="True",
        red=(f"{_TESTS}timeline.py::test_no_label_stands_on_another_label_or_bar_of_its_row",),
    ),
    Safeguard(
        name="a lane has the rows that it needs",
        file="labkit/teaching/timeline.py",
        old="MOST_ROWS: Final = 16",
        new="MOST_ROWS: Final = 6",
        red=(f"{_TESTS}timeline.py::test_every_mark_of_a_turn_has_its_label[turn.trusting]",),
    ),
    Safeguard(
        name="a tool stands under the one before it",
        file="labkit/teaching/timeline.py",
        old='first = number % MOST_ROWS if lane == "tools" else 0',
        new="first = 0",
        red=(f"{_TESTS}timeline.py::test_tools_stand_in_their_order_also_where_a_row_is_free",),
    ),
    Safeguard(
        name="a panel on sessions draws their lanes",
        file="labkit/teaching/panel.py",
        old="((has_lanes, lanes), (has_leases, leases))",
        new="((has_leases, leases),)",
        red=(f"{_TESTS}panel.py::test_a_panel_on_sessions_shows_where_each_message_goes",),
    ),
    Safeguard(
        name="a fault on a task that is not there names those that are",
        file="labkit/teaching/views.py",
        old="if fault.kind in TASK_FAULTS and fault.task not in run.tasks:",
        new="if False:",
        red=(f"{_TESTS}views.py::test_a_fault_on_a_task_that_is_not_there_names_those_that_are",),
    ),
    Safeguard(
        name="a bar of the picture stands where the run was",
        file="labkit/teaching/timeline.py",
        old="left=item.start, color=colour, hatch=item.pattern",
        new="left=0.0, color=colour, hatch=item.pattern",
        red=(
            f"{_TESTS}holes.py::"
            "test_the_bars_of_the_picture_stand_where_the_run_was_and_their_hatch_says_what_it_was",
        ),
    ),
    Safeguard(
        name="a bar of the picture is told by its pattern",
        file="labkit/teaching/timeline.py",
        old="color=colour, hatch=item.pattern",
        new="color=colour",
        red=(
            f"{_TESTS}holes.py::"
            "test_the_bars_of_the_picture_stand_where_the_run_was_and_their_hatch_says_what_it_was",
        ),
    ),
    Safeguard(
        name="the picture has the labels of the story",
        file="labkit/teaching/timeline.py",
        old='axes.text(at, middle, label, ha=side, va="center", fontsize=9)',
        new="axes.text(at, middle, label[:9], ha=side)",
        red=(
            f"{_TESTS}holes.py::test_bars_and_marks_of_the_picture_carry_the_labels_of_the_story",
        ),
    ),
    Safeguard(
        name="a wait is drawn only until the user's cancel",
        file="labkit/teaching/timeline.py",
        old='_CUTS: Final = ("cancel", "fault", "end")',
        new='_CUTS: Final = ("fault", "end")',
        red=(f"{_TESTS}holes.py::test_a_wait_is_drawn_only_until_it_is_cut_short",),
    ),
    Safeguard(
        name="a sign that the font lacks gives no warning",
        file="labkit/teaching/chart.py",
        old='warnings.filterwarnings("ignore", "Glyph")',
        new="pass",
        red=(
            f"{_TESTS}timeline.py::test_other_scripts_and_markup_are_drawn_as_text_and_told_whole",
        ),
    ),
    Safeguard(
        name="a screen reader is given the text of a chart",
        file="labkit/teaching/chart.py",
        old='alt="{words}"',
        new='alt=""',
        red=(
            f"{_TESTS}timeline.py::"
            "test_a_screen_reader_is_given_the_text_form_in_place_of_the_picture",
            f"{_TESTS}panel.py::test_the_picture_of_a_panel_has_the_text_form_of_both_runs",
        ),
    ),
    Safeguard(
        name="a chart is stored as a picture too",
        file="labkit/teaching/chart.py",
        old=', "image/png": picture}',
        new="}",
        red=(f"{_TESTS}timeline.py::test_every_scenario_is_drawn_without_a_warning",),
    ),
    Safeguard(
        name="a private helper is folded into its caller",
        file="labkit/teaching/chain.py",
        old="if place.function[0].isalpha():",
        new="if True:",
        red=(f"{_TESTS}chain.py::test_a_private_helper_is_a_part_of_its_caller",),
    ),
    Safeguard(
        name="the panel says that it works",
        file="labkit/teaching/controls.py",
        old="message.value = working",
        new="pass",
        red=(f"{_TESTS}panel.py::test_the_panel_says_that_it_works_until_the_picture_is_there",),
    ),
    Safeguard(
        name="the panel keeps the run before",
        file="labkit/teaching/panel.py",
        old='self.before = change["old"] or None',
        new="pass",
        red=(f"{_TESTS}panel.py::test_a_change_runs_again_and_keeps_the_run_before",),
    ),
    Safeguard(
        name="a fault that did not strike is said",
        file="labkit/teaching/views.py",
        old="'struck' if fault in run.struck else",
        new="'struck' if True else",
        red=(
            f"{_TESTS}panel.py::test_a_fault_that_did_not_strike_is_said",
            f"{_TESTS}views.py::test_a_fault_that_did_not_strike_is_said",
        ),
    ),
    Safeguard(
        name="a token names each thing once",
        file="labkit/teaching/token.py",
        old="if name in given:",
        new="if not name:",
        red=(f"{_TESTS}token.py::test_nonsense_is_refused_with_the_part_and_what_there_is",),
    ),
    Safeguard(
        name="a token says the whole policy or there is none",
        file="labkit/teaching/token.py",
        old="same = run.policy == (replace(default, **told) if told else default)",
        new="same = True",
        red=(f"{_TESTS}token.py::test_a_policy_that_differs_in_more_than_numbers_has_no_token",),
    ),
)
