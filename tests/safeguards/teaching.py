"""What keeps a learner's answers, grades and exercises honest."""

from .kinds import Safeguard

_ANSWERS = "tests/teaching/test_answers.py::"
_PREDICTIONS = "tests/teaching/test_predictions.py::"
_EXERCISES = "tests/teaching/test_exercises.py::"
_SESSIONS = "tests/teaching/test_session_trials.py::"
_HOLES = "tests/teaching/test_holes.py::"

SAFEGUARDS = (
    Safeguard(
        name="a broken file is set aside, not overwritten",
        file="labkit/teaching/answers.py",
        old='aside = file.rename(file.with_name(f"answers.{now}.sqlite"))',
        new="aside = file\n        file.unlink()",
        red=(_ANSWERS + "test_a_broken_file_is_set_aside_under_a_dated_name",),
    ),
    Safeguard(
        name="a change is committed",
        file="labkit/teaching/answers.py",
        old="with closing(sqlite3.connect(file)) as base, base:",
        new="with closing(sqlite3.connect(file)) as base:",
        red=(_ANSWERS + "test_an_answer_is_there_after_a_restart",),
    ),
    Safeguard(
        name="what cannot be saved stays in memory",
        file="labkit/teaching/answers.py",
        old="except (OSError, sqlite3.Error) as error:",
        new="except ZeroDivisionError as error:",
        red=(
            _ANSWERS + "test_a_home_that_cannot_be_written_is_one_warning_and_the_lesson_goes_on",
        ),
    ),
    Safeguard(
        name="what was saved before the disk was full still counts",
        file="labkit/teaching/answers.py",
        old="saved.backup(self._memory)",
        new="pass",
        red=(_ANSWERS + "test_a_full_disk_is_one_warning_and_the_lesson_goes_on",),
    ),
    Safeguard(
        name="the graded answer stays beside the latest",
        file="labkit/teaching/answers.py",
        old=" AND first IS NULL",
        new="",
        red=(_ANSWERS + "test_once_graded_the_first_answer_stays_beside_the_latest",),
    ),
    Safeguard(
        name="a test's answers are not the learner's",
        file="labkit/teaching/answers.py",
        old='tested = "PYTEST_VERSION" in os.environ and not os.environ.get("LABKIT_HOME")',
        new="tested = False",
        red=(_ANSWERS + "test_under_pytest_nothing_is_written_unless_a_folder_is_named",),
    ),
    Safeguard(
        name="the answers' folder is made with its parents",
        file="labkit/teaching/answers.py",
        old="mkdir(parents=True, exist_ok=True)",
        new="mkdir(exist_ok=True)",
        red=(_HOLES + "test_answers_are_kept_in_a_folder_whose_parents_are_not_there_yet",),
    ),
    Safeguard(
        name="a wrong answer is not printed as right",
        file="labkit/teaching/predictions.py",
        old='return "right" if self.given.latest == self.right else "wrong"',
        new='return "right"',
        red=(_HOLES + "test_a_printed_grade_says_right_wrong_and_no_answer_yet",),
    ),
    Safeguard(
        name="a wait of a second is a silent wait",
        file="labkit/teaching/diagnosis.py",
        old='e.get("seconds", 0) >= 1]',
        new='e.get("seconds", 0) > 1]',
        red=(_HOLES + "test_a_wait_is_silent_from_one_second_on",),
    ),
    Safeguard(
        name="of several things that fit none is guessed",
        file="labkit/teaching/said.py",
        old="if len(fitting) == 1:",
        new="if fitting:",
        red=(
            "tests/teaching/test_said.py::test_what_fits_more_than_one_thing_is_refused_with_those",
        ),
    ),
    Safeguard(
        name="a cell without an answer reveals nothing",
        file="labkit/teaching/predictions.py",
        old="told = given or reveals",
        new="told = True",
        red=(_PREDICTIONS + "test_a_cell_without_an_answer_reveals_nothing",),
    ),
    Safeguard(
        name="a prediction is graded by the run of the policy that was given",
        file="labkit/teaching/predictions.py",
        old='"policy": policy or asked["policy"]',
        new='"policy": asked["policy"]',
        red=(_PREDICTIONS + "test_another_policy_flips_the_right_answer_and_its_event",),
    ),
    Safeguard(
        name="a saved answer that is no choice is passed over",
        file="labkit/teaching/predictions.py",
        old="if answer and answer.latest in choices and answer.first in (None, *choices):",
        new="if answer:",
        red=(
            _PREDICTIONS
            + "test_answers_are_there_again_after_a_restart_and_strange_ones_are_passed_over",
        ),
    ),
    Safeguard(
        name="a guard that repeats visible text does not pass",
        file="labkit/teaching/trials.py",
        old="own = first(error, visible=visible,",
        new="own = first(error, visible=False,",
        red=(_EXERCISES + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="a client is judged by the findings of its run",
        file="labkit/teaching/trials.py",
        old="""    run, own = _run(load(case), my_client), _run(load(case), clients.careful)
    for finding in run.findings:
""",
        new="""    run, own = _run(load(case), my_client), _run(load(case), clients.careful)
    for finding in ():
""",
        red=(_EXERCISES + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="a clean-up is cancelled a second time",
        file="labkit/teaching/session_trials.py",
        old='combinations(cancels, case.get("cancels", 0))',
        new='combinations(cancels, min(1, case.get("cancels", 0)))',
        red=(_SESSIONS + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="a clean-up that was cut short does not pass",
        file="labkit/teaching/session_trials.py",
        old=' and [step for step in seen if step != "cancel"] == KEPT',
        new="",
        red=(_SESSIONS + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="a case is told as it was before the learner's code",
        file="labkit/teaching/exercises.py",
        old="deepcopy(case)",
        new="case",
        red=(_SESSIONS + "test_the_case_is_told_as_it_was_where_the_learners_code_changes_it",),
    ),
    Safeguard(
        name="a learner's copy of a script is never overwritten",
        file="labkit/teaching/lab_area.py",
        old="if not target.exists():",
        new="if True:",
        red=(
            "tests/teaching/test_lab_area.py::"
            "test_a_copy_is_never_overwritten_and_the_original_never_touched",
        ),
    ),
)
