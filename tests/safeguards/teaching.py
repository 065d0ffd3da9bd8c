"""What keeps a learner's answers, grades and exercises honest."""

from .kinds import Safeguard

_ANSWERS = "tests/teaching/test_answers.py::"
_PREDICTIONS = "tests/teaching/test_predictions.py::"
_EXERCISES = "tests/teaching/test_exercises.py::"

SAFEGUARDS = (
    Safeguard(
        name="a file of answers is put in place whole",
        file="labkit/teaching/answers.py",
        old='new = path.with_suffix(".new")',
        new="new = path",
        red=(_ANSWERS + "test_a_write_that_breaks_off_leaves_the_old_file_whole",),
    ),
    Safeguard(
        name="answers are changed under a lock",
        file="labkit/teaching/answers.py",
        old='with FileLock(folder / "answers.lock", timeout=PATIENCE):',
        new="if True:",
        red=(_ANSWERS + "test_processes_that_write_at_once_lose_nothing",),
    ),
    Safeguard(
        name="a change is made on what the file holds now",
        file="labkit/teaching/answers.py",
        old="entries = _entries(document) | self._unsaved",
        new="entries = _entries(document) | self._known | self._unsaved",
        red=(
            _ANSWERS
            + "test_what_one_kernel_knows_of_old_does_not_undo_what_another_has_written",
        ),
    ),
    Safeguard(
        name="a broken file is set aside, not overwritten",
        file="labkit/teaching/answers.py",
        old="    return path.rename(aside)",
        new="    return aside",
        red=(_ANSWERS + "test_a_broken_file_is_set_aside_under_a_dated_name",),
    ),
    Safeguard(
        name="what cannot be saved stays in memory",
        file="labkit/teaching/answers.py",
        old="        self._unsaved |= change(self._known | self._unsaved)",
        new="        change(self._known | self._unsaved)",
        red=(
            _ANSWERS + "test_a_home_that_cannot_be_written_is_one_warning_and_the_lesson_goes_on",
        ),
    ),
    Safeguard(
        name="the graded answer stays beside the latest",
        file="labkit/teaching/answers.py",
        old="first = old.first if old is not None and graded else value",
        new="first = value",
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
        name="a cell without an answer reveals nothing",
        file="labkit/teaching/grades.py",
        old="grade if reveals or grade.given or grade.problem else _hidden(grade)",
        new="grade",
        red=(_PREDICTIONS + "test_a_cell_without_an_answer_reveals_nothing",),
    ),
    Safeguard(
        name="a prediction is graded by the run of the policy that was given",
        file="labkit/teaching/predictions.py",
        old="catalogue.simulate(name, policy=policy, seed=seed)",
        new="catalogue.simulate(name, seed=seed)",
        red=(_PREDICTIONS + "test_another_policy_flips_the_right_answer_and_its_event",),
    ),
    Safeguard(
        name="a saved answer that is no choice is passed over",
        file="labkit/teaching/predictions.py",
        old="if answer and {answer.first, answer.latest} <= set(column.choices):",
        new="if answer:",
        red=(
            _PREDICTIONS
            + "test_answers_are_there_again_after_a_restart_and_strange_ones_are_passed_over",
        ),
    ),
    Safeguard(
        name="a guard that repeats visible text does not pass",
        file="labkit/teaching/retry_exercises.py",
        old="    if again and shown:",
        new="    if False:",
        red=(_EXERCISES + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="a client is judged by the findings of its run",
        file="labkit/teaching/retry_exercises.py",
        old="    for finding in run.findings:",
        new="    for finding in run.findings[:0]:",
        red=(_EXERCISES + "test_a_typical_wrong_answer_is_told_its_case",),
    ),
    Safeguard(
        name="code that spins is stopped",
        file="labkit/teaching/patience.py",
        old="            raiser(ctypes.c_ulong(each.ident or 0), ctypes.py_object(KeyboardInterrupt))",
        new="            pass",
        red=(_EXERCISES + "test_code_that_spins_is_stopped_and_the_kernel_is_usable",),
    ),
    Safeguard(
        name="a learner's copy of a script is never overwritten",
        file="labkit/teaching/lab_area.py",
        old='target.open("xb")',
        new='target.open("wb")',
        red=(
            "tests/teaching/test_lab_area.py::"
            "test_a_copy_is_never_overwritten_and_the_original_never_touched",
        ),
    ),
)
