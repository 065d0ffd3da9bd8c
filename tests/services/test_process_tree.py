"""What counts as ended when a program is ended; the rest is shown by the tools that run one."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from labkit.services import process_tree
from labkit.services.process_tree import _alive
from tests.services.processes import python

pytestmark = [
    pytest.mark.socket,
    pytest.mark.skipif(not hasattr(os, "waitid"), reason="this system has no zombies, or hides it"),
]


def test_a_process_that_has_ended_and_was_not_reaped_is_not_alive() -> None:
    with subprocess.Popen(python("input()"), stdin=subprocess.PIPE) as started:
        process = psutil.Process(started.pid)
        assert _alive(process)
        started.kill()
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)  # it stays, as a zombie
        assert process.is_running()
        assert not _alive(process)


def test_what_starts_others_faster_than_it_is_found_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(number / 100 for number in range(1_000_000))
    looks: list[int] = []

    class Relay:
        pid = 2**31 - 1

        def is_running(self) -> bool:
            return False

        def suspend(self) -> None: ...
        def kill(self) -> None: ...

    def tree(pid: int, mark: str) -> set[Any]:
        looks.append(pid)
        assert len(looks) < 1_000, "it looks for ever"
        return {Relay()}

    monkeypatch.setattr(process_tree, "tree", tree)
    fake = SimpleNamespace(monotonic=lambda: next(clock), sleep=lambda seconds: None)
    monkeypatch.setattr(process_tree, "time", fake)
    process_tree.end_tree(2**31 - 1, "mark")
    assert 10 < len(looks) < 400
