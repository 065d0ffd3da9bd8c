"""The provider in a process of its own, for a notebook or a test.

    with serve(load_script("cut-off.json"), speed=50) as provider:
        provider.address            # http://127.0.0.1:40613, for any client
        provider.events()           # what the provider has noted, as a simulation's trace has it

Rule: the process ends when its parent does, however that ends: it watches a pipe that only a living
parent holds open. `running` does the same for any module that makes a server.
"""

import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

from labkit.recovery.errors import RecoveryError

from .script import Script


class ServerError(RecoveryError):
    """The server could not start: do what the message says."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server on a socket of this machine, at `address`."""

    address: str
    pid: int


@dataclass(frozen=True, slots=True)
class Served(Running):
    """A provider on such a socket."""

    def events(self) -> list[dict[str, Any]]:
        """What it has noted so far: time in the script's seconds, kind, details."""
        with build_opener(ProxyHandler({})).open(f"{self.address}/events", timeout=5) as answered:
            told: list[dict[str, Any]] = json.load(answered)
            return told


@contextmanager
def serve(script: Script, *, port: int = 0, speed: float = 1.0) -> Iterator[Served]:
    """Serve `script` for the length of the block; `speed` 50 makes waits 50 times shorter.

    Port 0 lets the system choose. Raises `ServerError` when it could not start.
    """
    with running("labkit.providers.server", script, port=port, speed=speed) as child:
        yield Served(child.address, child.pid)


@contextmanager
def running(module: str, *arguments: Any, port: int = 0, **options: Any) -> Iterator[Running]:
    """Run what `serving(*arguments, **options)` of `module` gives, for the length of the block.

    What is given must be picklable. Port 0 lets the system choose. Raises `ServerError`, with the
    process's own words, when it could not start.
    """
    with subprocess.Popen(
        [sys.executable, "-c", "from labkit.providers.process import child; child()"],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # an interrupt of the kernel's group is not meant for it
        cwd=Path(__file__).parents[2],  # where `labkit` can be imported from
    ) as process:  # the end of the block closes the pipe that it watches
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has died: what it said says why
            process.stdin.write(pickle.dumps((module, port, arguments, options)))
        told = process.stdout.readline().decode().strip()
        if not told.startswith("http"):
            raise ServerError(told or f"the process of {module} ended before it served anything")
        try:
            yield Running(told, process.pid)
        finally:
            process.kill()  # a forked child of this process may hold the pipe open


def child() -> None:
    """What the process runs: its task comes through the pipe that is then watched."""
    from .server import listen  # its libraries are of no use to the parent

    module, port, arguments, options = pickle.load(sys.stdin.buffer)
    end_with_parent()
    try:
        server = import_module(module).serving(*arguments, **options)
        listening, address = listen(port)
    except Exception as error:
        print(" ".join(str(error).split()), flush=True)  # the parent raises it
        os._exit(1)  # a thread that reads the pipe would be in the way of a quiet end
    print(address, flush=True)
    server.run(sockets=[listening])


def end_with_parent() -> None:
    """End this process when its parent does, which holds the other end of its standard input."""
    for watch in (_watch_the_pipe, partial(_watch_the_parent, os.getppid())):
        threading.Thread(target=watch, daemon=True).start()


def _watch_the_pipe() -> None:
    while os.read(0, 65_536):  # not by sys.stdin, whose lock an end of this process would wait for
        pass
    os._exit(0)  # the parent is gone, or has closed it


def _watch_the_parent(parent: int) -> None:
    """For a parent that is gone while a forked child of it still holds the pipe open."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)
