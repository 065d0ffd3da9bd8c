"""Experiments are made on copies in the learner's own area."""

from __future__ import annotations

import pathlib

import pytest

import labkit
from labkit.scenarios.scripts import SCRIPTS
from labkit.simulation import SimulationError, Unknown


def test_a_copy_lies_in_the_learners_area_and_runs(tmp_path: pathlib.Path) -> None:
    path = labkit.copy_script("error-after-text")
    assert path == tmp_path / "work" / "my" / "error-after-text.json"
    mine = labkit.find("retry.guarded").but(script=labkit.load_script(path))
    assert labkit.simulate(mine).hash == labkit.simulate("retry.guarded").hash


def test_a_copy_is_never_overwritten_and_the_original_never_touched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    original = (SCRIPTS / "quota.json").read_bytes()
    path = labkit.copy_script("quota")
    assert "is yours to change; labkit.load_script(path) reads it" in capsys.readouterr().out
    path.write_text("mine")
    assert labkit.copy_script("quota") == path
    assert path.read_text() == "mine"
    assert (SCRIPTS / "quota.json").read_bytes() == original


def test_a_file_in_the_way_is_named(tmp_path: pathlib.Path) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "my").touch()
    with pytest.raises(SimulationError, match=r"my is no folder: move the file"):
        labkit.copy_script("quota")


@pytest.mark.parametrize("name", ["error", "../scripts/quota", ""])
def test_an_unknown_script_lists_those_there_are(name: str) -> None:
    with pytest.raises(Unknown, match="cut-off, drop-after-text"):
        labkit.copy_script(name)
