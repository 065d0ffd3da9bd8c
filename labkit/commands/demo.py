"""`python -m labkit demo`: a service is killed in the middle of a run, and another goes on with it.

It starts `serve` as a process on a store of its own, has a discussion begun over HTTP, kills the
process with SIGKILL while a step is under way, starts another, and waits for the report. `--lease`:
how long a run is held without a renewal, which is how long nobody works on it after a kill.
"""

import argparse
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.request import ProxyHandler, Request, build_opener

from labkit.commands.environment import Missing
from labkit.commands.serve import TOKENS
from labkit.recovery.errors import PolicyError
from labkit.recovery.run_states import COMPLETED, FAILED
from labkit.runs.manager import RunPolicy

QUESTION: Final = "Which database suits an internal tool for five people?"
PAUSE: Final = 0.6  # seconds of a step
WATCHDOG: Final = 1.0  # seconds
PATIENCE: Final = 30.0  # seconds for what takes a moment, beside the lease
LESSON: Final = """\
Nobody worked on it for {idle:.1f} s: until another process was up, the lease of {lease:g} s was
over, and somebody looked for such runs, as each process does every {watchdog:g} s. A shorter
lease goes on sooner, and sooner takes a run away from a process that is alive and only
slow. Compare --lease 3 and --lease 10."""
say: Final = partial(print, flush=True)


class Stuck(Exception):
    """The demonstration cannot go on: the message says what was waited for."""


def main(arguments: list[str]) -> int:
    """Show it; 1 with what went wrong. Raises `Missing`."""
    made = argparse.ArgumentParser(prog="python -m labkit demo", description=__doc__)
    made.add_argument("--lease", type=float, default=3.0, help="seconds: 3; try 10, too")
    lease = made.parse_args(arguments).lease
    try:
        RunPolicy(lease=lease)
    except PolicyError as error:
        raise Missing(error) from error
    try:
        with tempfile.TemporaryDirectory() as folder:
            _show(Path(folder), lease)
    except (Stuck, OSError) as error:
        print(f"labkit: the demonstration did not work: {error}", file=sys.stderr)
        return 1
    return 0


def _show(folder: Path, lease: float) -> None:
    token = secrets.token_urlsafe(24)
    with _service(folder, token, lease) as first:
        say(f"A service runs as process {first.pid}, and holds a run for {lease:g} s at a time.")
        run = _begun(first)
        first.process.kill()
        killed = time.monotonic()
        first.process.wait()
    say("In the middle of a step the process is killed with SIGKILL: nothing can be tidied up.")
    with _service(folder, token, lease) as second:
        say(f"Another process, {second.pid}, is there, and looks for runs whose lease is over.")
        _until(lambda: _starts(second.report(run)) > 1, "a take-over", lease + PATIENCE)
        idle = time.monotonic() - killed
        say(f"{idle:.1f} s after the kill it has the run, and goes on with it.")
        _until(lambda: second.state(run)["status"] in (COMPLETED, FAILED), "the end", PATIENCE)
        report = second.report(run)
        if (second.state(run)["status"], _starts(report)) != (COMPLETED, 2):
            raise Stuck(f"the run should be completed after two starts:\n{report}")
    say(f"\n{report}\nTwo starts by two processes, and no step that was kept is done again.")
    say(LESSON.format(idle=idle, lease=lease, watchdog=WATCHDOG))


def _begun(service: "_Service") -> str:
    """The id of a run of which a step is under way."""
    run = str(service.ask("POST", "runs", {"question": QUESTION})["id"])
    say(f"Over HTTP a run is begun: {QUESTION}")
    _until(lambda: service.state(run)["seq"] >= 5, "the first steps", PATIENCE)
    time.sleep(PAUSE / 2)
    return run


def _starts(report: str) -> int:
    return report.count("run_started")


class _Service:
    """A process that serves, and how it is asked."""

    def __init__(self, process: subprocess.Popen[str], address: str, token: str) -> None:
        self.process = process
        self.pid = process.pid
        self._address = address
        self._headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def text(self, method: str, path: str, body: Any = None) -> str:
        data = None if body is None else json.dumps(body).encode()
        asked = Request(f"{self._address}/{path}", data, self._headers, method=method)
        with build_opener(ProxyHandler({})).open(asked, timeout=PATIENCE) as answered:
            return str(answered.read().decode())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self.text(method, path, body))

    def state(self, run: str) -> Any:
        return self.ask("GET", f"runs/{run}")

    def report(self, run: str) -> str:
        return self.text("GET", f"runs/{run}/report")


@contextmanager
def _service(folder: Path, token: str, lease: float) -> Iterator[_Service]:
    """A process for the length of the block, which is gone after it."""
    options = {
        "store": f"sqlite:///{folder / 'runs.db'}",
        "ledger": str(folder / "effects.db"),
        "lease": str(lease),
        "watchdog": str(WATCHDOG),
        "pause": str(PAUSE),
    }
    line = [f"--{name}={value}" for name, value in options.items()]
    with subprocess.Popen(
        [sys.executable, "-m", "labkit", "serve", "--with-parent", *line],
        env={**os.environ, TOKENS: f"demo:{token}"},
        stdin=subprocess.PIPE,  # with whose end the process ends
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            words = process.stdout.readline().split()  # or none, where it could not start
            if not words:
                raise Stuck("the service did not start")
            yield _Service(process, words[1], token)
        finally:
            process.kill()


def _until(so: Callable[[], bool], what: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not so():
        if time.monotonic() > end:
            raise Stuck(f"{what} did not come within {seconds:g} s")
        time.sleep(0.1)
