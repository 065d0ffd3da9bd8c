"""Where answers are kept."""

from __future__ import annotations

import pathlib

import pytest

from labkit.teaching.home import answers_home


def test_a_named_folder_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "answers"))
    assert answers_home() == tmp_path / "answers"


@pytest.mark.parametrize(
    ("system", "tail"),
    [
        ("linux", ".local/share/labkit"),
        ("darwin", "Library/Application Support/labkit"),
        ("win32", "AppData/Roaming/labkit"),
    ],
)
def test_each_system_has_its_own_folder(
    system: str, tail: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    for name in ("LABKIT_HOME", "XDG_DATA_HOME", "APPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", system)
    monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path)
    assert answers_home() == tmp_path / tail


def test_the_users_data_folder_is_honoured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.delenv("LABKIT_HOME", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert answers_home() == tmp_path / "labkit"
