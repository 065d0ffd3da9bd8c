"""What the notebooks cost under nbval, and how long the second `make lab` takes to a page."""

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from jupyter_client.manager import start_new_kernel

from labkit.commands import sandbox
from labkit.commands.test import NBVAL, SPREAD

from .table import Measure, Row, best

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE: Final = 60.0  # seconds for a page


def notebooks() -> Iterator[Row]:
    """All tracked notebooks as `make test` runs them, beside as many kernels started and ended."""
    found = sorted((ROOT / "notebooks").glob("*.ipynb"))
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        variables = sandbox.for_tests(folder)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *NBVAL, *SPREAD]
        command += map(str, found)
        spent = best(lambda: _quietly(command, variables), 2)
        bare = best(lambda: [_kernel(variables) for _ in found], 2)
    what = f"{len(found)} notebooks under nbval"
    peer = "as many bare kernels"
    yield Row(what=what, value=spent, unit="s", peer=peer, beside=bare, ratio=-3)


def page() -> Iterator[Row]:
    """From `python -m labkit lab`, the environment being there, to the first page served."""
    with tempfile.TemporaryDirectory(prefix="labkit-bench-") as folder:
        spent = best(lambda: _until_a_page(sandbox.variables(folder)), 2)
    yield Row(what="the second `make lab` to an open page", value=spent, unit="s", most=10)


def _quietly(command: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-2_000:], file=sys.stderr)


def _kernel(variables: dict[str, str]) -> None:
    manager, client = start_new_kernel(kernel_name="python3", env=variables)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def _until_a_page(variables: dict[str, str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "labkit", "lab", "--no-browser", f"--port={port}"]
    log = Path(variables["HOME"], "lab.log")
    with log.open("w") as written:
        lab = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=written, stderr=written)
    try:
        _wait(log, f"127.0.0.1:{port}", lab)
    finally:
        lab.terminate()
        lab.wait(20)


def _wait(log: Path, host: str, lab: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and lab.poll() is None:
        address = re.search(rf"http://{re.escape(host)}/\S+", log.read_text())
        if address and _answers(address[0]):
            return
        time.sleep(0.05)
    print(log.read_text()[-2_000:], file=sys.stderr)


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as page:
            return bool(page.status == 200)
    except (urllib.error.URLError, OSError):
        return False


MEASURES: Final[tuple[Measure, ...]] = (notebooks, page) if os.name != "nt" else (notebooks,)
