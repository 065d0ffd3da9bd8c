"""The outside world is refused by name, and the refusal stands in the trace."""

import _thread
import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from labkit.simulation import NotDeterministic, Observer, Refused, simulate
from labkit.simulation.outside import guarded, loading

from .kit import scenario


def connect() -> None:
    with socket.socket() as opened:
        opened.connect(("127.0.0.1", 9))


def listen() -> None:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))


def send() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.sendto(b"", ("127.0.0.1", 9))


def another_simulation() -> None:
    simulate(scenario(quick))


ASKS: list[tuple[Callable[[], Any], str, str]] = [
    (connect, "a network connection", "fake provider"),
    (send, "a network connection", "fake provider"),
    (listen, "a server", "fake provider"),
    (lambda: socket.getaddrinfo("example.invalid", 80), "a name look-up", "fake provider"),
    (lambda: subprocess.run([sys.executable], check=False), "a subprocess", "fake service"),
    (lambda: os.system("true"), "a subprocess", "fake service"),
    (lambda: threading.Thread(target=print).start(), "a thread", "asyncio task"),
    (lambda: ThreadPoolExecutor().submit(print), "a thread", "asyncio task"),
    (lambda: time.sleep(0), "time.sleep", "await asyncio.sleep"),
    (another_simulation, "a simulation", "await the inner client"),
]


async def quick(provider: Any, policy: Any, observe: Observer) -> str:
    await asyncio.sleep(1)
    return "done"


@pytest.mark.parametrize(("ask", "what", "cure"), ASKS)
def test_the_outside_world_is_refused_with_a_cure(
    ask: Callable[[], Any], what: str, cure: str
) -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        ask()

    run = simulate(scenario(client))
    assert isinstance(run.error, Refused)
    assert what in str(run.error)
    assert cure in str(run.error)


def test_a_refusal_that_the_client_swallows_stands_in_the_trace() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> str:
        try:
            connect()
        except Exception:
            return "fell back"
        return "connected"

    run = simulate(scenario(client))
    assert run.result == "fell back"
    assert [event["what"] for event in run.trace if event.kind == "refused"] == [
        "a network connection"
    ]


def test_what_a_refusal_left_behind_does_not_hold_the_next_run() -> None:
    for _ in range(3):
        assert simulate(scenario(quick)).result == "done"
        test_a_refusal_that_the_client_swallows_stands_in_the_trace()


def test_what_the_import_of_a_library_asks_for_is_not_the_runs() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        with suppress(ModuleNotFoundError), loading():
            listen()
            raise ModuleNotFoundError
        observe("loaded")
        listen()

    run = simulate(scenario(client))
    assert isinstance(run.error, Refused)  # after the block, also one that failed
    assert [event.kind for event in run.trace] == ["loaded", "refused", "end"]


def test_other_threads_may_do_what_they_like_meanwhile() -> None:
    notes: list[str] = []
    opened: list[bool] = []

    def body() -> None:
        meet.wait(10)
        time.sleep(0)
        listen()
        opened.append(True)

    meet = threading.Event()
    thread = threading.Thread(target=body)
    thread.start()  # waits until this thread is guarded, which forbids to start one
    with guarded(notes.append):
        meet.set()
        with pytest.raises(Refused):
            listen()
        thread.join(10)
    listen()
    assert (notes, opened) == (["a server"], [True])


def test_a_debuggers_own_threads_are_let_be() -> None:
    of_a_debugger = type("Timeout", (threading.Thread,), {"__module__": "_pydevd_bundle.timeout"})
    ran = threading.Event()

    def work() -> None:
        ran.set()

    work.__module__ = "pydevd_tracing"

    async def traced(provider: Any, policy: Any, observe: Observer) -> None:
        of_a_debugger().start()
        _thread.start_new_thread(work, ())

    run = simulate(scenario(traced))
    assert run.error is None
    assert ran.wait(10)
    assert all(event.kind != "refused" for event in run.trace)


def test_this_thread_is_free_again_after_a_run() -> None:
    simulate(scenario(quick))
    listen()
    time.sleep(0)


def test_a_wall_clock_that_decides_is_found_when_recording() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        observe("clock", at=time.time_ns())

    run = simulate(scenario(client))
    assert run.error is None
    with pytest.raises(NotDeterministic, match=r"#0 .* client clock at=\d+.* look for a clock"):
        _ = run.recorded


def test_a_wall_clock_that_decides_nothing_is_let_be() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        started = time.time()
        observe("sane", after=time.time() >= started)

    assert simulate(scenario(client)).recorded


@pytest.mark.parametrize(
    "event",
    "socket.connect socket.sendto socket.sendmsg socket.bind socket.getaddrinfo "
    "socket.gethostbyname socket.gethostbyaddr socket.getnameinfo subprocess.Popen os.system "
    "os.fork os.forkpty os.exec os.posix_spawn time.sleep".split(),
)
def test_each_audit_event_of_the_outside_world_is_refused(event: str) -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        sys.audit(event, None)

    run = simulate(scenario(client))
    assert isinstance(run.error, Refused)
    sys.audit(event, None)  # outside a run nobody minds
