"""The environment, and the files that it is made from."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rattler import MatchSpec

from labkit.commands import doctor, environment, system

LOCK_LINE = re.compile(r"[a-z0-9-]+==[\w.]+( ; [\w.' =!<>()]+)?")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((environment.ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def conda() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((environment.ROOT / "environment.yml").read_text())
    return found


@pytest.fixture(scope="module")
def lock() -> dict[str, str]:
    lines = [line.split(" ; ")[0] for line in environment.LOCK.read_text().splitlines()]
    return dict(line.split("==") for line in lines)


def asked_for(project: dict[str, Any]) -> list[Requirement]:
    extras = project["project"]["optional-dependencies"].values()
    lines = [line for extra in extras for line in extra]
    return [Requirement(line) for line in [*lines, *project["build-system"]["requires"]]]


# --- the three files agree


def test_ctrl_c_while_a_command_is_imported_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("LABKIT_ENVIRONMENT", "current")
    monkeypatch.setattr(importlib, "import_module", interrupted)
    try:
        code = environment.run("worker", [])
    except KeyboardInterrupt:  # which would end the tests
        code = -1
    assert code == 130
    assert capsys.readouterr() == ("", "")


def test_the_lock_holds_names_versions_and_markers_only() -> None:
    lines = environment.LOCK.read_text().splitlines()
    assert lines
    assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []


@pytest.mark.parametrize("name", ["environment.yml", "pyproject.toml", "requirements.lock"])
def test_no_file_holds_an_address_or_a_hash(name: str) -> None:
    text = (environment.ROOT / name).read_text()
    assert re.findall(r"\w+://|--hash|sha256|\.org\b|\.com\b|@ ", text) == []


def test_every_requirement_is_met_by_the_lock(
    project: dict[str, Any], lock: dict[str, str]
) -> None:
    missed = [
        str(need)
        for need in asked_for(project)
        if not need.specifier.contains(lock.get(canonicalize_name(need.name), "0"))
    ]
    assert missed == []


def test_the_lock_holds_nothing_that_nobody_asked_for(
    project: dict[str, Any], lock: dict[str, str]
) -> None:
    reached: set[str] = set()
    waiting = [need.name for need in asked_for(project)]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name in reached:
            continue
        reached.add(name)
        try:
            needs = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # a package for another system
        waiting += [Requirement(need).name for need in needs]
    assert sorted(set(lock) - reached) == []


def test_what_is_installed_is_what_the_lock_says(lock: dict[str, str]) -> None:
    wrong = {
        name: (version, importlib.metadata.version(name))
        for name, version in lock.items()
        if importlib.util.find_spec("labkit")
        and any(importlib.metadata.distributions(name=name))
        and importlib.metadata.version(name) != version
    }
    assert wrong == {}


def test_the_core_needs_nothing(project: dict[str, Any]) -> None:
    assert project["project"]["dependencies"] == []
    assert set(project["project"]["optional-dependencies"]) == {"lab", "sdk", "test", "bench"}


def test_condas_part_is_python_and_pip_and_the_rest_is_the_lock(conda: dict[str, Any]) -> None:
    *own, last = conda["dependencies"]
    assert [MatchSpec(line).name.normalized for line in own] == ["python", "pip"]
    assert last == {"pip": ["-r requirements.lock", "-e ."]}
    assert conda["name"] == "labkit"


def test_conda_and_the_project_ask_for_the_same_python(
    conda: dict[str, Any], project: dict[str, Any]
) -> None:
    python = MatchSpec(conda["dependencies"][0])
    assert str(python.version) == project["project"]["requires-python"]


# --- what is missing is one line with its cure


@pytest.mark.socket
def test_a_python_without_venv_is_named_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "venv.py").write_text("raise ModuleNotFoundError('split off')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(environment.Missing, match=r"cannot make .*: .*python3\.\d+-venv"):
        environment.ensure(tmp_path / "venv")


def test_a_folder_that_cannot_be_written_is_named_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    def refused(venv: pathlib.Path) -> None:
        raise PermissionError(13, "Permission denied", str(venv))

    monkeypatch.setattr(environment, "_make", refused)
    with pytest.raises(environment.Missing, match=r"may not write .*venv: copy the folder"):
        environment.ensure(tmp_path / "venv")


@pytest.mark.parametrize(
    "problem", [environment.Missing("no venv: get it"), OSError(28, "No space left on device")]
)
def test_whatever_is_missing_is_one_line(
    problem: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise problem

    monkeypatch.delenv("LABKIT_ENVIRONMENT", raising=False)
    monkeypatch.setattr(environment, "ensure", fails)
    assert environment.run("doctor", []) == 2
    assert capsys.readouterr().err == f"labkit: {problem}\n"


def installed(venv: pathlib.Path, monkeypatch: pytest.MonkeyPatch, *working: str) -> list[str]:
    """The ways that were tried, where only those of `working` work."""
    tried: list[str] = []

    def works(line: list[str], log: object) -> bool:
        tried.append(line[2])
        return line[2] in working

    monkeypatch.setattr(environment, "_works", works)
    monkeypatch.setattr(environment, "_create", pathlib.Path.mkdir)
    environment._make(venv)
    return tried


def test_uv_installs_and_pip_does_where_uv_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    assert installed(tmp_path / "a", monkeypatch, "uv") == ["pip", "uv", "uv"]
    assert installed(tmp_path / "b", monkeypatch, "pip") == ["pip", "uv", "pip", "uv", "pip"]


def test_a_failed_installation_is_one_line_with_its_cure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(environment.Missing, match=r"installed: connect .*install\.log"):
        installed(tmp_path / "venv", monkeypatch)


# --- the second time


def stamped(venv: pathlib.Path) -> pathlib.Path:
    python = system.python_of(venv)
    python.parent.mkdir(parents=True)
    python.touch()
    (venv / "labkit.stamp").write_text(environment.fingerprint())
    return venv


def test_an_environment_made_from_the_same_files_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(environment, "_make", lambda venv: pytest.fail("made again"))
    environment.ensure(stamped(tmp_path / "venv"))


@pytest.mark.parametrize(("old", "created"), [("", 1), ("3.10 of old", 1), (sys.version, 0)])
def test_only_another_python_throws_the_old_environment_away(
    old: str, created: int, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    venv = stamped(tmp_path / "venv")
    (venv / "labkit.stamp").write_text(f"{old}\nanother lock\n")
    thrown: list[pathlib.Path] = []
    monkeypatch.setattr(environment, "_create", thrown.append)
    monkeypatch.setattr(environment, "_works", lambda line, log: True)
    environment._make(venv)
    assert len(thrown) == created


def test_another_lock_makes_the_environment_anew(tmp_path: pathlib.Path) -> None:
    for name in ("requirements.lock", "pyproject.toml"):
        (tmp_path / name).write_text("one")
    before = environment.fingerprint(tmp_path)
    (tmp_path / "requirements.lock").write_text("two")
    assert environment.fingerprint(tmp_path) != before


def test_an_environment_without_its_python_is_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    made: list[pathlib.Path] = []
    monkeypatch.setattr(environment, "_make", made.append)
    venv = stamped(tmp_path / "venv")
    environment.ensure(venv)
    assert made == []
    system.python_of(venv).unlink()
    environment.ensure(venv)
    assert made == [venv]


def test_conda_and_binder_use_the_environment_they_are_in(
    conda: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in conda["variables"].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(environment, "VENV", environment.ROOT / "no" / "venv")
    monkeypatch.setattr(environment, "_make", lambda venv: pytest.fail("made one"))
    monkeypatch.setattr(system, "hand_over", lambda line: pytest.fail("left it"))
    monkeypatch.setattr(doctor, "checks", lambda: iter([]))
    assert environment.run("doctor", []) == 0


@pytest.mark.slow
@pytest.mark.socket
def test_a_fresh_checkout_makes_its_environment_and_finds_it_again(
    root: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    checkout = tmp_path / "a place with spaces"
    ignored = shutil.ignore_patterns(".*", "work", "__pycache__")
    shutil.copytree(root, checkout, ignore=ignored)
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith("LABKIT_")
    }
    ask = "import jupyterlab, labkit, json, sys; print(json.dumps([sys.prefix, labkit.__file__]))"
    base = pathlib.Path(sys.base_prefix) / system.python_of(pathlib.Path()).name
    python = getattr(sys, "_base_executable", str(base))
    printed = [
        subprocess.run(
            [python, "-m", "labkit", "python", "-c", ask],
            cwd=checkout,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        ).stdout
        for _ in range(2)
    ]
    first, second = (text.splitlines() for text in printed)
    assert len(first) == 2
    assert first[1:] == second, "the second time nothing is made"
    assert all(str(checkout) in path for path in json.loads(second[0]))
