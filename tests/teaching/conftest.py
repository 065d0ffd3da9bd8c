"""Each test of this room has an answers folder and a work folder of its own."""

from __future__ import annotations

import pathlib

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Where this test's answers are kept."""
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "answers"))
    monkeypatch.setenv("LABKIT_WORK", str(tmp_path / "work"))
    return tmp_path / "answers"
