"""`python -m labkit doctor`."""

from __future__ import annotations

import pathlib

import pytest

from labkit.commands import doctor, environment


def test_a_line_says_its_state_in_words_and_its_cure() -> None:
    assert doctor.Check("kernel", "starts").line() == "ok      kernel       starts"
    assert doctor.Check("kernel", "none", "mend it").line().startswith("PROBLEM kernel")
    optional = doctor.Check("browser", "none", "open it", essential=False)
    assert optional.line() == "note    browser      none: open it"


@pytest.mark.socket
def test_all_is_well_where_the_tests_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LABKIT_ENVIRONMENT", "current")
    assert doctor.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = {line.split()[1] for line in lines}
    assert {"Python", "environment", "kernel", "widgets", "openai", "answers", "copies"} <= names
    assert not any(line.startswith("PROBLEM") for line in lines)


@pytest.mark.parametrize(("essential", "code"), [(True, 1), (False, 0)])
def test_only_what_is_essential_fails(
    essential: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = doctor.Check("thing", "missing", "its cure", essential)
    monkeypatch.setattr(doctor, "checks", lambda: iter([found]))
    assert doctor.main([]) == code


def test_a_place_that_cannot_be_written_has_a_cure(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").touch()
    check = doctor.writable("answers", tmp_path / "file" / "answers", doctor.ANSWERS)
    assert "cannot be written" in check.found
    assert "LABKIT_HOME" in check.cure


def test_a_kernel_that_does_not_start_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = pathlib.Path("no") / "such" / "python"
    monkeypatch.setattr(environment, "python", lambda: missing)
    [check] = doctor.kernel()
    assert check.cure
    assert check.essential
