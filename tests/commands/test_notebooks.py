"""Running notebooks again, and what of them is stored."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import nbformat
import pytest

from labkit.commands import notebooks, sandbox


def stream(*text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": list(text)}


def code(source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "id": f"cell-{source[:4]}",
        "metadata": metadata,
        "source": source,
        "outputs": list(outputs),
        "execution_count": 9,
    }


def book(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def tidied(found: dict[str, Any]) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(notebooks.tidy(nbformat.from_dict(found)))
    return stored


def test_widget_views_and_machine_details_are_left_out() -> None:
    shown = {
        "output_type": "execute_result",
        "execution_count": 9,
        "metadata": {},
        "data": {"text/plain": "a slider", notebooks.WIDGET_VIEW: {"model_id": "7"}},
    }
    found = tidied(
        book(
            code("slider", shown, execution={"iopub.status.busy": "2026"}, tags=["kept"]),
            language_info={"name": "python", "version": "3.12.1"},
            widgets={"state": {}},
        )
    )
    assert found["metadata"]["language_info"] == {"name": "python"}
    assert "widgets" not in found["metadata"]
    [cell] = found["cells"]
    assert cell["metadata"] == {"tags": ["kept"]}
    assert cell["outputs"][0]["data"] == {"text/plain": ["a slider"]}


def test_an_errors_traceback_is_stored_without_paths() -> None:
    error = {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["/a/path", "x"]}
    found = tidied(book(code("fail", error)))
    assert found["cells"][0]["outputs"][0]["traceback"] == ["E: no"]


def test_tidying_twice_changes_nothing() -> None:
    once = notebooks.tidy(nbformat.from_dict(book(code("print(1)", stream("1\n")), code("x"))))
    assert notebooks.tidy(nbformat.reads(once, as_version=4)) == once


@pytest.mark.socket
def test_a_rerun_stores_the_outputs_and_a_second_one_leaves_the_file_alone(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sandbox.variables(tmp_path / "sandbox").items():
        monkeypatch.setitem(os.environ, name, value)
    path = tmp_path / "00_try.ipynb"
    fails = code("1 / 0", tags=["raises-exception"])
    says = code("for word in ('你好', 2):\n    print(word, flush=True)")
    path.write_text(json.dumps(book(says, fails)))
    assert notebooks.rerun(path) == 0
    before = path.read_bytes()
    [said, failed] = json.loads(before)["cells"]
    assert [output["text"] for output in said["outputs"]] == [["你好\n", "2\n"]]
    assert failed["outputs"][0]["traceback"] == ["ZeroDivisionError: division by zero"]
    assert notebooks.rerun(path) == 0
    assert path.read_bytes() == before


@pytest.mark.socket
def test_a_notebook_that_fails_is_left_as_it_was(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in sandbox.variables(tmp_path / "sandbox").items():
        monkeypatch.setitem(os.environ, name, value)
    path = tmp_path / "00_try.ipynb"
    path.write_text(before := json.dumps(book(code("1 / 0"))))
    assert notebooks.rerun(path) == 1
    assert path.read_text() == before
    assert "ZeroDivisionError" in capsys.readouterr().err
