"""One thread for each run: its result, its errors, and its end at an interrupt."""

import contextvars
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from labkit.simulation import Observer, simulate
from labkit.simulation.thread import in_thread

from .kit import scenario
from .pythons import ROOT

KINDS = ("turns", "events", "python", "deaf", "deaf_python", "recording")


@pytest.mark.socket
@pytest.mark.skipif(os.name == "nt", reason="SIGINT to another process: not on Windows")
@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_run_within_a_second_and_changes_nothing(kind: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "tests/simulation/interrupted.py", kind],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.3)
        asked = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "left\n"
        assert time.monotonic() - asked < 2  # a second, and what a busy machine adds
        assert child.stdout.readline() == "same\n"
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()


def test_an_interrupt_is_never_the_runs_error() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(scenario(client))
    assert "simulation" not in {thread.name for thread in threading.enumerate()}


def test_work_runs_in_another_thread_and_in_the_callers_context() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable")
    variable.set("cell")
    ident, seen = in_thread(lambda: (threading.get_ident(), variable.get()), lambda: None)
    assert ident != threading.get_ident()
    assert seen == "cell"


def test_what_the_work_raises_leaves() -> None:
    def fail() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        in_thread(fail, lambda: None)


def test_the_collector_is_off_for_the_length_of_the_work() -> None:
    assert gc.isenabled()
    assert in_thread(gc.isenabled, lambda: None) is False
    assert gc.isenabled()
    gc.disable()
    try:
        in_thread(gc.isenabled, lambda: None)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_work_that_looks_at_nothing_is_thrown_out() -> None:
    started, ended = threading.Event(), threading.Event()
    flags: list[bool] = []

    def spin() -> None:
        started.set()
        try:
            while True:
                sum(range(10))
        finally:
            ended.set()

    interrupting = threading.Thread(target=interrupt_main_when, args=(started,))
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        in_thread(spin, lambda: flags.append(True))
    interrupting.join()
    assert flags == [True]
    assert ended.wait(5)


def interrupt_main_when(started: threading.Event) -> None:
    started.wait(10)
    signal.raise_signal(signal.SIGINT)
