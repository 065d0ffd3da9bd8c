"""What keeps a learner's files and a fresh machine safe: copies, sandbox, environment."""

from .kinds import Safeguard

_TESTS = "tests/commands/test_"

SAFEGUARDS = (
    Safeguard(
        name="no notebook sees what another has answered under nbval",
        file="labkit/commands/sandbox.py",
        old='if name != "LABKIT_HOME"',
        new='if name != "LABKIT_WORK"',
        red=(f"{_TESTS}test.py::test_no_notebook_sees_what_another_has_answered",),
    ),
    Safeguard(
        name="no notebook sees what another has answered when it is stored",
        file="labkit/commands/notebooks.py",
        old='str(pathlib.Path(folder, "answers", path.stem))',
        new='str(pathlib.Path(folder, "answers"))',
        red=(f"{_TESTS}test.py::test_no_notebook_sees_what_another_has_answered",),
    ),
    Safeguard(
        name="a learner's copy is never overwritten",
        file="labkit/commands/copies.py",
        old=" if not (work / path.name).exists()]",
        new="]",
        red=(f"{_TESTS}copies.py::test_a_copy_that_is_there_is_never_overwritten",),
    ),
    Safeguard(
        name="a copy does not give the answers away",
        file="labkit/commands/copies.py",
        old='{"outputs": [], "execution_count": None}\n    cells',
        new='{"execution_count": None}\n    cells',
        red=(f"{_TESTS}copies.py::test_a_copy_has_the_cells_and_none_of_the_outputs",),
    ),
    Safeguard(
        name="a fresh copy keeps the old one",
        file="labkit/commands/copies.py",
        old="old.rename(next(work / name for name in names if not (work / name).exists()))",
        new="old.unlink()",
        red=(f"{_TESTS}copies.py::test_a_fresh_copy_sets_each_old_one_aside_under_a_dated_name",),
    ),
    Safeguard(
        name="tests see nothing of a learner",
        file="labkit/commands/sandbox.py",
        old="**fonts, **places}",
        new="**fonts}",
        red=(f"{_TESTS}test.py::test_the_sandbox_names_no_folder_of_the_learner",),
    ),
    Safeguard(
        name="a new lock makes a new environment",
        file="labkit/commands/environment.py",
        old="[*parts, str(root).encode()]",
        new="[*parts[1:], str(root).encode()]",
        red=(f"{_TESTS}environment.py::test_another_lock_makes_the_environment_anew",),
    ),
    Safeguard(
        name="pip installs where uv cannot",
        file="labkit/commands/environment.py",
        old=" or _works([*pip, *what], log)",
        new="",
        red=(f"{_TESTS}environment.py::test_uv_installs_and_pip_does_where_uv_fails",),
    ),
    Safeguard(
        name="what is missing is one line",
        file="labkit/commands/environment.py",
        old="except (Missing, OSError) as problem",
        new="except ZeroDivisionError as problem",
        red=(f"{_TESTS}environment.py::test_whatever_is_missing_is_one_line",),
    ),
    Safeguard(
        name="a token of another lab does not hide the address",
        file="labkit/commands/lab.py",
        old='os.environ.pop("JUPYTER_TOKEN", None)',
        new="pass",
        red=(f"{_TESTS}lab.py::test_nothing_of_another_lab_is_taken_over",),
    ),
    Safeguard(
        name="a rerun stores no widget view",
        file="labkit/commands/notebooks.py",
        old='output.get("data", {}).pop(WIDGET_VIEW, None)',
        new="pass",
        red=(f"{_TESTS}notebooks.py::test_widget_views_and_machine_details_are_left_out",),
    ),
)
