"""Answers are never lost: to no restart, second kernel, kill, full disk or broken file."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

import pytest

from labkit.teaching.answers import Answer, Answers, answers

WRITER = """
import pathlib, sys
from labkit.teaching.answers import Answers
store = Answers(pathlib.Path(sys.argv[1]))
for number in range(int(sys.argv[3])):
    store.put(f"{sys.argv[2]}/{number}", "x" * 100)
    print(number, flush=True)
"""


def writer(folder: pathlib.Path, name: str, count: int) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def test_an_answer_is_there_after_a_restart(home: pathlib.Path) -> None:
    Answers(home).put("table/row/column", "yes")
    assert Answers(home).all() == {"table/row/column": Answer("yes", "yes")}


def test_until_it_is_graded_a_changed_answer_is_no_correction(home: pathlib.Path) -> None:
    store = Answers(home)
    store.put("q", "yes")
    store.put("q", "no")
    assert store.all()["q"] == Answer("no", "no")


def test_once_graded_the_first_answer_stays_beside_the_latest(home: pathlib.Path) -> None:
    store = Answers(home)
    store.put("q", "yes")
    store.mark_graded(["q", "never answered"])
    store.put("q", "no")
    store.put("q", "maybe")
    assert Answers(home).all() == {"q": Answer("yes", "maybe", graded=True)}


def test_two_open_kernels_keep_each_others_answers(home: pathlib.Path) -> None:
    one, other = Answers(home), Answers(home)
    one.put("a", "1")
    other.put("b", "2")
    one.put("c", "3")
    assert set(one.all()) == set(other.all()) == {"a", "b", "c"}


def test_what_one_kernel_knows_of_old_does_not_undo_what_another_has_written(
    home: pathlib.Path,
) -> None:
    one, other = Answers(home), Answers(home)
    one.put("a", "old")
    other.put("a", "new")
    one.put("b", "1")
    assert Answers(home).all()["a"].latest == "new"


@pytest.mark.socket
def test_processes_that_write_at_once_lose_nothing(home: pathlib.Path) -> None:
    writers = [writer(home, name, 25) for name in "abc"]
    assert [process.communicate(timeout=60) and process.returncode for process in writers] == [
        0
    ] * 3
    wanted = {f"{name}/{number}" for name in "abc" for number in range(25)}
    assert set(Answers(home).all()) == wanted


@pytest.mark.socket
def test_a_kill_in_the_middle_of_writing_loses_nothing_that_was_saved(home: pathlib.Path) -> None:
    for round_number in range(4):
        with writer(home, str(round_number), 100_000) as process:
            assert process.stdout is not None
            seen = [process.stdout.readline() for _ in range(5)]
            time.sleep(0.003 * round_number)  # real: the kill has to fall into other moments
            process.kill()
            seen += process.stdout.readlines()
        saved = {f"{round_number}/{line.strip()}" for line in seen if line.endswith("\n")}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert saved <= set(Answers(home).all())


def test_a_write_that_breaks_off_leaves_the_old_file_whole(
    home: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Answers(home)
    store.put("a", "1")
    before = (home / "answers.json").read_bytes()

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        store.put("b", "2")
    assert (home / "answers.json").read_bytes() == before


def test_a_home_that_cannot_be_written_is_one_warning_and_the_lesson_goes_on(
    tmp_path: pathlib.Path,
) -> None:
    (tmp_path / "file").write_text("in the way")
    store = Answers(tmp_path / "file")
    with pytest.warns(UserWarning, match="cannot be saved"):
        store.put("a", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.put("b", "2")
        store.mark_graded(["a"])
    assert store.all() == {"a": Answer("1", "1", graded=True), "b": Answer("2", "2")}


def test_what_could_not_be_saved_is_saved_as_soon_as_it_can_be(tmp_path: pathlib.Path) -> None:
    blocked = tmp_path / "home"
    blocked.write_text("in the way")
    store = Answers(blocked)
    with pytest.warns(UserWarning, match="cannot be saved"):
        store.put("a", "1")
    blocked.unlink()
    store.put("b", "2")
    assert set(Answers(blocked).all()) == {"a", "b"}


@pytest.mark.parametrize(
    "broken", [b"{", b"\xff\xfe", b"[]", b'{"answers": 3}', b"", b"[" * 100_000]
)
def test_a_broken_file_is_set_aside_under_a_dated_name(home: pathlib.Path, broken: bytes) -> None:
    home.mkdir()
    (home / "answers.json").write_bytes(broken)
    with pytest.warns(UserWarning, match="could not be read and is kept as"):
        assert Answers(home).all() == {}
    [aside] = home.glob("answers.20*.json")
    assert aside.read_bytes() == broken


def test_a_second_broken_file_does_not_replace_the_first(home: pathlib.Path) -> None:
    for broken in ("one", "two"):
        home.mkdir(exist_ok=True)
        (home / "answers.json").write_text(broken)
        with pytest.warns(UserWarning, match="kept as"):
            Answers(home).put("a", "1")
    assert {path.read_text() for path in home.glob("answers.20*.json")} == {"one", "two"}


def test_what_the_file_holds_beside_answers_is_left_alone(home: pathlib.Path) -> None:
    home.mkdir()
    document = {"version": 9, "later": [1], "answers": {"odd": 7, "half": {"first": "x"}}}
    (home / "answers.json").write_text(json.dumps(document))
    store = Answers(home)
    assert store.all() == {}
    store.put("a", "\ud83d lone and 中文")
    written = json.loads((home / "answers.json").read_text())
    assert written["later"] == [1]
    assert written["answers"]["odd"] == 7
    assert Answers(home).all()["a"].latest == "\ud83d lone and 中文"


def test_under_pytest_nothing_is_written_unless_a_folder_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LABKIT_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    answers().put("in memory", "yes")
    assert answers().all()["in memory"].latest == "yes"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.socket
def test_outside_pytest_answers_are_saved_in_the_users_data_folder(tmp_path: pathlib.Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTEST_VERSION", "LABKIT_HOME")}
    environ |= {"XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "APPDATA": str(tmp_path)}
    line = "from labkit.teaching.answers import answers; answers().put('a', '1')"
    subprocess.run([sys.executable, "-c", line], env=environ, check=True, timeout=60)
    assert len(list(tmp_path.rglob("answers.json"))) == 1
