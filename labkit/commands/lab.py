"""`python -m labkit lab`: JupyterLab on the learner's own copies.

It listens on 127.0.0.1 only, prints its address, and ends with Ctrl-C. A browser that cannot be
opened and a port that is taken are no failures: the address is printed, the next port is taken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

from labkit.commands import copies, environment, sandbox, system

START = 60.0  # seconds that JupyterLab may take to answer


def options(arguments: list[str]) -> argparse.Namespace:
    """What the learner asked for; `fresh`, `port` and `no_browser`."""
    parser = argparse.ArgumentParser(prog="python -m labkit lab", description=__doc__)
    parser.add_argument("--fresh", metavar="NAME", help="a new copy; the old one is set aside")
    parser.add_argument("--port", type=int, default=8888, help="the first port to try")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Copy, start, print, open, wait; 0 when the learner ended it."""
    chosen = options(arguments)
    code = environment.enter("lab", arguments)
    if code is not None:
        return code
    try:
        first = prepare(chosen.fresh)
    except (copies.UnknownNotebook, OSError) as error:
        print(f"labkit: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell has turned it off
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        return serve(first, pathlib.Path(folder), chosen.port, opens=not chosen.no_browser)


def prepare(fresh: str | None) -> str:
    """Make the copies; the name of the notebook to open, "" where there is none."""
    work = copies.work_folder()
    renewed = copies.fresh(fresh, work) if fresh else None
    for path in copies.make(work):
        print(f"labkit: {path.name} is new in {path.parent.name}/")
    names = [path.name for path in copies.tracked()]
    return renewed.name if renewed else next(iter(names), "")


def command(port: int) -> list[str]:
    """The line that starts JupyterLab on the copies; `commands/jupyter` holds its settings."""
    line = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    return [*line, f"--ServerApp.port={port}", f"--ServerApp.root_dir={copies.work_folder()}"]


def serve(first: str, runtime: pathlib.Path, port: int, *, opens: bool) -> int:
    """Run JupyterLab until it ends or the learner ends it."""
    variables = {
        **os.environ,
        **sandbox.lab_variables(),
        "JUPYTER_RUNTIME_DIR": str(runtime),
        "JUPYTER_TOKEN": secrets.token_hex(24),  # a given token is not announced a second time
        # Tabs of other projects stay out of the way.
        "JUPYTERLAB_WORKSPACES_DIR": str(copies.work_folder() / ".workspaces"),
    }
    process = subprocess.Popen(command(port), env=variables, stdin=subprocess.DEVNULL)
    try:
        found = address(process, runtime, first)
        if found is None:
            print("labkit: JupyterLab did not start; `python -m labkit doctor` says more")
            return 1
        print(f"labkit: JupyterLab is open at {found}\nlabkit: Ctrl-C here ends it", flush=True)
        if opens and not system.open_browser(found):
            print("labkit: no browser was found here: open the address above in yours", flush=True)
        return process.wait()
    except KeyboardInterrupt:
        print("\nlabkit: JupyterLab is ended", flush=True)
        return 0
    finally:
        system.end(process)


def address(process: subprocess.Popen[bytes], runtime: pathlib.Path, first: str) -> str | None:
    """The address of the notebook once the server answers; None when it does not."""
    until = time.monotonic() + START
    while process.poll() is None and time.monotonic() < until:
        for path in runtime.glob("jpserver-*.json"):
            with contextlib.suppress(OSError, ValueError):  # half written, or not listening yet
                server = json.loads(path.read_text())
                query = f"?token={server['token']}"
                urllib.request.urlopen(f"{server['url']}api/status{query}", timeout=5).close()
                tree = f"lab/tree/{urllib.parse.quote(first)}" if first else "lab"
                return f"{server['url']}{tree}{query}"
        time.sleep(0.1)
    return None
