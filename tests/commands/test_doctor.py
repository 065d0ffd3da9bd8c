"""`python -m labkit doctor`."""

from __future__ import annotations

import pathlib

import pytest
from jupyter_client import manager

from labkit.commands import doctor


def test_a_line_says_its_state_in_words_and_its_cure() -> None:
    assert doctor.Check("kernel", "starts", "mend it").line() == "ok      kernel             starts"
    assert (
        doctor.Check("kernel", None, "mend it").line()
        == "PROBLEM kernel             missing: mend it"
    )
    optional = doctor.Check("browser for lab", None, "open it", essential=False)
    assert optional.line() == "note    browser for lab    missing: open it"


@pytest.mark.socket
def test_all_is_well_where_the_tests_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = {line.split()[1] for line in lines}
    assert {"Python", "jupyterlab", "kernel", "widgets", "openai", "answers", "copies"} <= names
    assert not any(line.startswith("PROBLEM") for line in lines)


@pytest.mark.parametrize(("essential", "code"), [(True, 1), (False, 0)])
def test_only_what_is_essential_fails(
    essential: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = doctor.Check("thing", None, "its cure", essential)
    monkeypatch.setattr(doctor, "checks", lambda: iter([found]))
    assert doctor.main([]) == code


def test_a_place_that_cannot_be_written_is_a_finding(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    assert doctor.writable(tmp_path / "file" / "answers") is None
    assert doctor.writable(tmp_path / "new" / "answers") == str(tmp_path / "new" / "answers")


def test_a_kernel_that_does_not_start_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(**_: object) -> None:
        raise RuntimeError("Kernel died before replying to kernel_info")

    monkeypatch.setattr(manager, "start_new_kernel", refuses)
    assert doctor.from_a_kernel("1") == ""


def test_every_check_has_a_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(doctor, "from_a_kernel", lambda source: "")
    (tmp_path / "file").touch()
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "file" / "home"))
    checks = list(doctor.checks())
    answers = next(check for check in checks if check.name == "answers")
    assert f"missing: make {tmp_path / 'file' / 'home'} writable" in answers.line()
    assert all(check.cure for check in checks)
    assert {check.name for check in checks if not check.found} >= {"kernel", "widgets"}
