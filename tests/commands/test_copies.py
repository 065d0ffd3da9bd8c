"""Learners' copies."""

from __future__ import annotations

import json
import pathlib
import re

import pytest

from labkit.commands import copies
from labkit.commands.environment import Missing


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name in ("00_start.ipynb", "01_next.ipynb"):
        (folder / name).write_text(json.dumps(notebook("print('the answer')")))
    (folder / "draft.ipynb").write_text("{}")
    return folder


def notebook(source: str) -> dict[str, object]:
    code = {"cell_type": "code", "execution_count": 4, "outputs": [{"text": "the answer"}]}
    return {"cells": [{**code, "source": source}, {"cell_type": "markdown", "source": "# 你好"}]}


def test_a_copy_has_the_cells_and_none_of_the_outputs(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    made = copies.make(tmp_path / "work", source)
    assert [path.name for path in made] == ["00_start.ipynb", "01_next.ipynb"]
    code, prose = json.loads(made[0].read_text(encoding="utf-8"))["cells"]
    assert code["source"] == "print('the answer')"
    assert (code["outputs"], code["execution_count"]) == ([], None)
    assert prose["source"] == "# 你好"


def test_a_copy_that_is_there_is_never_overwritten(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    work = tmp_path / "work"
    first, _ = copies.make(work, source)
    first.write_text("half solved")
    (work / "01_next.ipynb").unlink()
    assert [path.name for path in copies.make(work, source)] == ["01_next.ipynb"]
    assert first.read_text() == "half solved"


def test_a_fresh_copy_sets_each_old_one_aside_under_a_dated_name(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    work = tmp_path / "work"
    for text in ("first", "second"):
        copies.make(work, source)
        (work / "00_start.ipynb").write_text(text)
        copies.fresh("00", work, source)
    aside = {path.name: path.read_text() for path in work.glob("00_start.*-*.ipynb")}
    assert sorted(aside.values()) == ["first", "second"]
    assert all(re.fullmatch(r"00_start\.\d{4}-\d\d-\d\d-[12]\.ipynb", name) for name in aside)
    assert "the answer" in (work / "00_start.ipynb").read_text()


def test_a_fresh_copy_of_the_same_notebook_needs_no_old_one(
    source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    assert copies.fresh("01_next.ipynb", tmp_path / "work", source).exists()


@pytest.mark.parametrize("name", ["01", "01_next", "01_next.ipynb", "work/01_next.ipynb"])
def test_a_notebook_is_found_by_number_and_by_name(source: pathlib.Path, name: str) -> None:
    assert copies.find(name, source) == source / "01_next.ipynb"


def test_an_unknown_notebook_lists_those_there_are(source: pathlib.Path) -> None:
    with pytest.raises(Missing, match=r"there are: 00_start, 01_next$"):
        copies.find("07", source)
