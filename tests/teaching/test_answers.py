"""Answers are never lost: to no restart, second kernel, kill, full disk or broken file."""

from __future__ import annotations

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
FULL = """
import pathlib, resource, signal, sys
from labkit.teaching.answers import Answers
store = Answers(pathlib.Path(sys.argv[1]))
store.put("a", "1")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
store.put("b", "x" * 100_000)
store.put("c", "3")
print(sorted(store.all()))
"""


def writer(folder: pathlib.Path, name: str, count: int) -> subprocess.Popen[str]:
    line = [sys.executable, "-c", WRITER, str(folder), name, str(count)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def test_an_answer_is_there_after_a_restart(home: pathlib.Path) -> None:
    Answers(home).put("table/row/column", "yes")
    assert Answers(home).all() == {"table/row/column": Answer("yes")}


def test_until_it_is_graded_a_changed_answer_is_no_correction(home: pathlib.Path) -> None:
    store = Answers(home)
    store.put("q", "yes")
    store.put("q", "no")
    assert store.all()["q"] == Answer("no")


def test_once_graded_the_first_answer_stays_beside_the_latest(home: pathlib.Path) -> None:
    store = Answers(home)
    store.put("q", "yes")
    store.mark_graded(["q", "never answered"])
    store.put("q", "no")
    store.put("q", "maybe")
    store.mark_graded(["q"])
    assert Answers(home).all() == {"q": Answer("maybe", first="yes")}


def test_two_open_kernels_keep_each_others_answers(home: pathlib.Path) -> None:
    one, other = Answers(home), Answers(home)
    one.put("a", "old")
    other.put("a", "new")
    one.put("b", "1")
    assert one.all() == other.all() == {"a": Answer("new"), "b": Answer("1")}


@pytest.mark.socket
def test_processes_that_write_at_once_lose_nothing(home: pathlib.Path) -> None:
    writers = [writer(home, name, 25) for name in "abc"]
    ended = [process.communicate(timeout=60) and process.returncode for process in writers]
    assert ended == [0, 0, 0]
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


@pytest.mark.socket
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on a file's size there")
def test_a_full_disk_is_one_warning_and_the_lesson_goes_on(home: pathlib.Path) -> None:
    line = [sys.executable, "-c", FULL, str(home)]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stderr.count("UserWarning: your answers cannot be saved") == 1
    assert ended.stdout == "['a', 'b', 'c']\n"
    assert Answers(home).all() == {"a": Answer("1")}


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
    assert store.all() == {"a": Answer("1", first="1"), "b": Answer("2")}


@pytest.mark.parametrize("broken", [b"{}", b"\xff\xfe", b"not a database" * 100])
def test_a_broken_file_is_set_aside_under_a_dated_name(home: pathlib.Path, broken: bytes) -> None:
    home.mkdir()
    (home / "answers.sqlite").write_bytes(broken)
    with pytest.warns(UserWarning, match="could not be read and is kept as"):
        assert Answers(home).all() == {}
    [aside] = home.glob("answers.20*.sqlite")
    assert aside.read_bytes() == broken


def test_a_file_that_is_cut_short_is_set_aside_too(home: pathlib.Path) -> None:
    Answers(home).put("a", "1")
    path = home / "answers.sqlite"
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.warns(UserWarning, match="could not be read and is kept as"):
        Answers(home).put("b", "2")
    assert Answers(home).all() == {"b": Answer("2")}


def test_a_second_broken_file_does_not_replace_the_first(home: pathlib.Path) -> None:
    for broken in ("one", "two"):
        home.mkdir(exist_ok=True)
        (home / "answers.sqlite").write_text(broken)
        with pytest.warns(UserWarning, match="kept as"):
            Answers(home).put("a", "1")
    assert {path.read_text() for path in home.glob("answers.20*.sqlite")} == {"one", "two"}


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
    assert len(list(tmp_path.rglob("answers.sqlite"))) == 1
