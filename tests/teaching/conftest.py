"""Each test of this room has an answers folder and a work folder of its own."""

from __future__ import annotations

import pathlib
from threading import Event, RLock

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Where this test's answers are kept."""
    monkeypatch.setenv("LABKIT_HOME", str(tmp_path / "answers"))
    monkeypatch.setenv("LABKIT_WORK", str(tmp_path / "work"))
    return tmp_path / "answers"


class Turns:
    """The lock of the callbacks, which says when one comes while another has it."""

    def __init__(self) -> None:
        self.waited_for = Event()
        self._lock = RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.waited_for.set()
            self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Such a lock, in place of that of the controls."""
    made = Turns()
    for module in ("controls", "panel"):
        monkeypatch.setattr(f"labkit.teaching.{module}.ONE_AT_A_TIME", made)
    return made
