"""`python -m labkit test`: its parts, its verdict, and what does not change it."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import nbformat
import pytest

from labkit.commands import copies, environment, notebooks, sandbox, test
from labkit.teaching.home import answers_home


def test_every_part_runs_tracked_files_only() -> None:
    work = str(copies.work_folder())
    paths = [
        word
        for words in test.parts([]).values()
        for word in words
        if pathlib.Path(word).is_absolute()
    ]
    assert paths
    assert all(word.startswith(str(environment.ROOT)) for word in paths)
    assert not any(word.startswith((work, str(answers_home()))) for word in paths)


def test_every_tracked_notebook_is_run() -> None:
    tracked = [str(path) for path in copies.tracked()]
    words = test.parts([]).get("notebooks", [])
    assert [word for word in words if word.endswith(".ipynb")] == tracked


def test_paths_take_the_place_of_the_parts() -> None:
    assert list(test.parts([__file__ + "::anything", "-x"])) == ["chosen"]


def test_other_arguments_go_to_every_part() -> None:
    assert all(words[-2:] == ["-k", "loop"] for words in test.parts(["-k", "loop"]).values())


def test_what_the_units_leave_out_is_a_part_of_its_own() -> None:
    units, browser = (test.parts([])[name] for name in ("units", "browser"))
    [left_out] = [word for word in units if word.startswith("--ignore=")]
    assert left_out.removeprefix("--ignore=") in browser
    assert units[units.index("-m") + 1] == browser[browser.index("-m") + 1]


def test_compiled_files_are_kept_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}

    def run(line: list[str], **how: Any) -> subprocess.CompletedProcess[bytes]:
        seen.update(how["env"])
        return subprocess.CompletedProcess(line, 0)

    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(subprocess, "run", run)
    assert test.run([]) == 0
    assert seen
    assert "PYTHONDONTWRITEBYTECODE" not in seen


def test_the_slow_part_runs_alone() -> None:
    assert list(test.parts(["--slow"])) == ["slow"]


def test_the_exit_code_is_that_of_the_worst_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = iter([0, 1])
    monkeypatch.setattr(test, "parts", lambda arguments: {"units": [], "browser": []})
    monkeypatch.setattr(test, "run", lambda words: next(ended))
    assert test.main([]) == 1
    last = capsys.readouterr().out.splitlines()[-2:]
    assert last[0].startswith("units      passed in ")
    assert last[1].startswith("browser    FAILED with exit code 1 in ")


def test_the_sandbox_names_no_folder_of_the_learner(tmp_path: pathlib.Path) -> None:
    variables = sandbox.variables(tmp_path)
    kept = ("LABKIT_HOME", "LABKIT_WORK", "HOME", "IPYTHONDIR", "JUPYTER_DATA_DIR")
    assert [name for name in kept if str(tmp_path) not in variables[name]] == []


LOOK = """
import os, pathlib
from labkit.teaching.home import answers_home
print(sorted(path.name for path in answers_home().glob('*')))
print(pathlib.Path(os.environ['LABKIT_WORK']).exists(), list(pathlib.Path.home().glob('*.txt')))
"""


@pytest.mark.socket
def test_saved_answers_and_changed_copies_change_no_result(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The notebook prints what of a learner it can see, and its stored output says: nothing."""
    for name, place in {"LABKIT_HOME": "answers", "LABKIT_WORK": "work", "HOME": "home"}.items():
        (tmp_path / place).mkdir()
        monkeypatch.setenv(name, str(tmp_path / place))
    (tmp_path / "answers" / "answers.json").write_text("{}")
    (tmp_path / "home" / "note.txt").touch()
    (tmp_path / "work" / "00_look.ipynb").write_text("half solved")
    seen = {"output_type": "stream", "name": "stdout", "text": "[]\nTrue []\n"}
    cell = {"cell_type": "code", "id": "look", "metadata": {}, "source": LOOK}
    cell |= {"outputs": [seen], "execution_count": 1}
    path = tmp_path / "00_look.ipynb"
    book = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book))
    assert test.run([*test.NBVAL, str(path)]) == 0
    assert "1 passed" in capfd.readouterr().out
    seen["text"] = "['answers.json']\nTrue []\n"
    path.write_text(json.dumps(book))
    assert test.run([*test.NBVAL, str(path)]) == 1, "the check can fail"
    assert (tmp_path / "work" / "00_look.ipynb").read_text() == "half solved"


DRAWS = "import labkit; print(labkit.progress('retry chain'))"
LOOKS = "import labkit; print('done     retry chain' in str(labkit.progress()))"


@pytest.mark.socket
def test_no_notebook_sees_what_another_has_answered(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", raising=False)  # nbval is a plugin
    paths = [tmp_path / "00_draws.ipynb", tmp_path / "01_looks.ipynb"]
    for path, source in zip(paths, (DRAWS, LOOKS), strict=True):
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        nbformat.write(book, path)
    monkeypatch.setattr(copies, "tracked", lambda: paths)
    assert notebooks.main([]) == 0
    stored = [nbformat.read(path, as_version=4).cells[0].outputs[0].text for path in paths]
    assert "done     retry chain" in stored[0]
    assert stored[1] == "False\n"
    assert test.run([*test.NBVAL, *map(str, paths)]) == 0
    assert "2 passed" in capfd.readouterr().out


@pytest.mark.socket
@pytest.mark.parametrize(("ci", "code", "word"), [("true", 1, "error"), ("", 0, "skipped")])
def test_a_missing_browser_is_a_skip_and_in_ci_a_failure(
    ci: str,
    code: int,
    word: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setenv("LABKIT_CHROMIUM", "")
    one = "tests/browser/test_lab.py::test_no_popup_asks_about_news"
    assert test.run(["-p", "no:nbval", one]) == code
    assert f"1 {word}" in capfd.readouterr().out


@pytest.mark.parametrize(("arguments", "code"), [([], 5), (["-k", "one"], 0), (["--slow"], 5)])
def test_a_part_without_tests_passes_only_where_tests_were_chosen(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test, "run", lambda words: test.NO_TESTS)
    assert test.main(arguments) == code


@pytest.mark.socket
def test_the_way_in_imports_the_standard_library_only() -> None:
    """It runs before the environment exists."""
    ask = (
        f"import sys; sys.path.insert(0, {str(environment.ROOT)!r}); before = set(sys.modules)\n"
        "import labkit.__main__, labkit.commands.environment\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names) - {'labkit'}))"
    )
    line = [sys.executable, "-I", "-S", "-c", ask]
    done = subprocess.run(line, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
