"""`python -m labkit doctor`: what is here and what is missing, each with its cure.

Exit code 1 when something is missing without which the lab does not work. It runs inside the
environment: what that itself lacks has been said before.
"""

import contextlib
import importlib.metadata
import pathlib
import platform
import subprocess
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from labkit.commands import copies, system
from labkit.teaching.home import answers_home

AGAIN = "delete .venv and run `make lab`, or `python -m labkit lab`, again"
READER = "the cells that use it say so; `pip install openai` brings it"
ADDRESS = "open the address that `lab` prints in a browser of yours"
BROWSER = "only browser tests need it: install Chromium, or name it in LABKIT_CHROMIUM"
ANSWERS = "make {} writable, or name another folder in LABKIT_HOME; until then answers are not kept"
COPIES = "make {} writable, or put this folder where you may write"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report: what was found, or None and the cure."""

    name: str
    found: str | None
    cure: str
    essential: bool = True

    def line(self) -> str:
        """The line as text; state is a word, not a colour."""
        state = "ok" if self.found else "PROBLEM" if self.essential else "note"
        return f"{state:<8}{self.name:<19}{self.found or 'missing: ' + self.cure}"


def main(arguments: list[str]) -> int:
    """Print the checks as they are made; 1 when something essential is missing."""
    failed = False
    for check in checks():
        print(check.line(), flush=True)
        failed |= check.essential and not check.found
    return int(failed)


def checks() -> Iterator[Check]:
    """All checks, from what the others stand on to what is only convenient."""
    yield Check("Python", f"{platform.python_version()} in {sys.prefix}", AGAIN)
    versions = {found.name: found.version for found in importlib.metadata.distributions()}
    for name in ("jupyterlab", "ipywidgets", "matplotlib", "pandas"):
        yield Check(name, versions.get(name), AGAIN)
    seen = from_a_kernel("import ipywidgets; ipywidgets.IntSlider()")
    yield Check("kernel", "starts and answers" if seen else None, AGAIN)
    yield Check("widgets", "shown" if "widget-view" in seen else None, AGAIN)
    yield Check("openai", versions.get("openai"), READER, essential=False)
    yield Check("browser for lab", browser(), ADDRESS, essential=False)
    yield Check("Chromium for tests", system.find_chromium(), BROWSER, essential=False)
    answers, work = answers_home(), copies.work_folder()
    yield Check("answers", writable(answers), ANSWERS.format(answers), essential=False)
    yield Check("copies", writable(work), COPIES.format(work))


def from_a_kernel(source: str) -> str:
    """What a new kernel answers to a cell; "" where it does not start."""
    seen: list[dict[str, Any]] = []
    with contextlib.suppress(Exception):  # whatever it is, the cure is the same
        from jupyter_client.manager import run_kernel

        with run_kernel(startup_timeout=40, stderr=subprocess.DEVNULL) as client:
            # The hint names the parent of the blocking client that comes.
            client.execute_interactive(  # type: ignore[attr-defined]
                source, timeout=40, output_hook=seen.append
            )
    return "".join(str(message["content"]) for message in seen)


def browser() -> str | None:
    """The kind of browser that can be opened here; None where there is none, or no screen."""
    try:
        return type(webbrowser.get()).__name__
    except webbrowser.Error:
        return None


def writable(folder: pathlib.Path) -> str | None:
    """The folder, which is made if need be; None where no file can be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except OSError:
        return None
