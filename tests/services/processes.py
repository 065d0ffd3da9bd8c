"""What tests on real processes share: programs, what is left of them, and waiting without luck."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from labkit.services.process_tree import MARK


def python(source: str) -> list[str]:
    """A Python program of these lines."""
    return [sys.executable, "-c", source]


def runs(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def survivors(pids: list[int]) -> list[int]:
    """Those of them that still run; they are ended here, so that a failing test leaves none."""
    found = [pid for pid in pids if runs(pid)]
    for pid in found:
        psutil.Process(pid).kill()
    return found


def left_over() -> list[Any]:
    """Our own children, and whatever a program of ours has left, wherever it went."""
    return [*psutil.Process().children(recursive=True), *filter(_ours, psutil.process_iter())]


def _ours(process: Any) -> bool:
    try:
        return str(process.environ().get(MARK)).startswith(f"{os.getpid()}-")
    except psutil.Error:
        return False


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """After each test no process is left: none that runs, and no zombie of ours."""
    before = left_over()
    yield
    left = [found for found in left_over() if found not in before]
    for process in left:
        with suppress(psutil.Error):
            process.kill()
    assert left == []


async def until(done: Callable[[], object], seconds: float = 10.0) -> None:
    """Return when `done()` is true; fail after so many seconds."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not come"
        await asyncio.sleep(0.005)


def written(file: Path) -> str:
    """What stands in the file so far; nothing where there is none."""
    return file.read_text() if file.exists() else ""
