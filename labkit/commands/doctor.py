"""`python -m labkit doctor`: what is here and what is missing, each with its cure.

Exit code 1 when something is missing without which the lab does not work.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from labkit.commands import copies, environment, sandbox, system
from labkit.teaching.home import answers_home

# Both run in the environment's Python, which need not be the one that asks.
KERNEL = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(startup_timeout=40)
seen = []
client.execute_interactive(
    "import ipywidgets; ipywidgets.IntSlider()", timeout=40,
    output_hook=lambda message: seen.extend(message["content"].get("data", ())),
)
client.stop_channels()
manager.shutdown_kernel(now=True)
print("widget-view" in " ".join(seen))
"""
VERSIONS = """
import importlib.metadata, json
all = {found.name: found.version for found in importlib.metadata.distributions()}
print(json.dumps(all))
"""
AGAIN = "run `make lab`, or `python -m labkit lab`, again"
READER = "the cells that use it say so; `pip install openai` brings it"
ADDRESS = "open the address that `lab` prints in a browser of yours"
BROWSER = "only browser tests need it: install Chromium, or name it in LABKIT_CHROMIUM"
ANSWERS = "make it writable, or name another folder in LABKIT_HOME; until then answers are not kept"
COPIES = "make it writable, or put this folder where you may write"


@dataclasses.dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; `cure` is empty where all is well."""

    name: str
    found: str
    cure: str = ""
    essential: bool = True

    def line(self) -> str:
        """The line as text; state is a word, not a colour."""
        state = "ok" if not self.cure else "PROBLEM" if self.essential else "note"
        cure = f": {self.cure}" if self.cure else ""
        return f"{state:<8}{self.name:<13}{self.found}{cure}"


def main(arguments: list[str]) -> int:
    """Print the checks as they are made; 1 when something essential is missing."""
    if arguments:
        print("labkit: doctor takes no arguments", file=sys.stderr)
        return 2
    failed = False
    for check in checks():
        print(check.line(), flush=True)
        failed = failed or bool(check.cure and check.essential)
    return int(failed)


def checks() -> Iterator[Check]:
    """All checks, from what the others stand on to what is only convenient."""
    yield Check("Python", f"{platform.python_version()} ({environment.python()})")
    yield made()
    found = versions()
    for name in ("jupyterlab", "ipywidgets", "matplotlib", "pandas"):
        yield present(name, found.get(name), AGAIN)
    yield from kernel()
    yield present("openai", found.get("openai"), READER, essential=False)
    yield present("browser", system.browser_name(), ADDRESS, essential=False)
    yield present("Chromium", system.find_chromium(), BROWSER, essential=False)
    yield writable("answers", answers_home(), ANSWERS, essential=False)
    yield writable("copies", copies.work_folder(), COPIES)


def present(name: str, found: str | None, cure: str, *, essential: bool = True) -> Check:
    """Something that is there, under the text `found`, or is not."""
    return Check(name, found) if found else Check(name, "none found", cure, essential)


def made() -> Check:
    """The environment, which must be as new as the lock."""
    if environment.uses_current():
        return Check("environment", "the current one, as LABKIT_ENVIRONMENT says")
    if environment.is_ready():
        return Check("environment", f"{environment.VENV.name}, made from the lock")
    state = "older than the lock" if environment.VENV.exists() else "not made yet"
    return Check("environment", state, AGAIN)


def kernel() -> Iterator[Check]:
    """A kernel that starts, and a widget shown by it."""
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        code, output = _python(KERNEL, sandbox.variables(folder))
    if code != 0:
        last = output.strip().splitlines()[-1:] or ["no word from it"]
        yield Check("kernel", f"did not start ({last[0]})", f"delete .venv and {AGAIN}")
        return
    yield Check("kernel", "starts and answers")
    yield present("widgets", "shown" if output.strip().endswith("True") else None, AGAIN)


def versions() -> dict[str, str]:
    """The installed packages and their versions; empty where they cannot be listed."""
    code, output = _python(VERSIONS, dict(os.environ))
    found: dict[str, str] = json.loads(output) if code == 0 else {}
    return found


def writable(name: str, folder: pathlib.Path, cure: str, *, essential: bool = True) -> Check:
    """Whether a file can be written into the folder, which is made for that."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return Check(name, str(folder))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Check(name, f"{folder} cannot be written ({reason})", cure, essential)


def _python(source: str, variables: dict[str, str]) -> tuple[int, str]:
    line = [str(environment.python()), "-c", source]
    try:
        done = subprocess.run(
            line,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout
