"""`python -m labkit doctor`: what is here and what is missing, each with its cure.

Exit code 1 when something is missing without which the lab does not work.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from labkit.commands import copies, environment, sandbox, system
from labkit.teaching.home import answers_home

KERNEL = """
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(startup_timeout=40)
seen = []
client.execute_interactive(
    "import ipywidgets, json; ipywidgets.IntSlider()", timeout=40,
    output_hook=lambda message: seen.extend(message["content"].get("data", ())),
)
client.stop_channels()
manager.shutdown_kernel(now=True)
print("widget-view" in " ".join(seen))
"""
VERSIONS = """
import importlib.metadata, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        found[name] = ""
print(json.dumps(found))
"""
AGAIN = "run `make lab`, or `python -m labkit lab`, again"


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
    for check in (version, packages, kernel, sdk, browser, chromium, answers, work):
        for made in check():
            print(made.line(), flush=True)
            failed = failed or bool(made.cure and made.essential)
    return int(failed)


def version() -> list[Check]:
    """The Python, and the environment that belongs to it."""
    running = ".".join(str(part) for part in sys.version_info[:3])
    found = [Check("Python", f"{running} ({environment.python()})")]
    if environment.uses_current():
        return [*found, Check("environment", "the current one, as LABKIT_ENVIRONMENT says")]
    if environment.is_ready():
        return [*found, Check("environment", f"{environment.VENV.name}, made from the lock")]
    state = "older than the lock" if environment.VENV.exists() else "not made yet"
    return [*found, Check("environment", state, AGAIN)]


def packages() -> list[Check]:
    """JupyterLab, ipywidgets and matplotlib, as the environment has them."""
    return [
        Check(name, found or "missing", "" if found else AGAIN)
        for name, found in versions("jupyterlab", "ipywidgets", "matplotlib", "pandas").items()
    ]


def kernel() -> list[Check]:
    """A kernel that starts, and a widget shown by it."""
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        code, output = _python(KERNEL, environ=sandbox.variables(folder))
    if code != 0:
        last = output.strip().splitlines()[-1:] or ["no word from it"]
        return [Check("kernel", f"did not start ({last[0]})", f"delete .venv and {AGAIN}")]
    shown = output.strip().endswith("True")
    widget = Check("widgets", "shown" if shown else "not shown", "" if shown else AGAIN)
    return [Check("kernel", "starts and answers"), widget]


def sdk() -> list[Check]:
    """The provider SDK, which a few cells use."""
    found = versions("openai")["openai"]
    cure = "" if found else "the cells that use it say so; `pip install openai` brings it"
    return [Check("openai SDK", found or "missing", cure, essential=False)]


def browser() -> list[Check]:
    """What opens the page."""
    name = system.browser_name()
    cure = "" if name else "open the address that `lab` prints in a browser of yours"
    return [Check("browser", name or "none found", cure, essential=False)]


def chromium() -> list[Check]:
    """What the browser tests drive."""
    path = system.find_chromium()
    cure = "" if path else "only the browser tests need it; install Chromium, or name it in LABKIT_CHROMIUM"
    return [Check("Chromium", path or "none found", cure, essential=False)]


def answers() -> list[Check]:
    """Whether answers can be saved; without it the lesson goes on."""
    cure = "make it writable, or name another folder in LABKIT_HOME; answers last until then"
    return [_writable("answers", answers_home(), cure, essential=False)]


def work() -> list[Check]:
    """Whether copies of the notebooks can be made."""
    cure = "make it writable, or put this folder where you may write"
    return [_writable("copies", copies.work_folder(), cure, essential=True)]


def versions(*names: str) -> dict[str, str]:
    """The installed version of each package, "" for one that is missing."""
    code, output = _python(VERSIONS, *names)
    found: dict[str, str] = json.loads(output) if code == 0 else dict.fromkeys(names, "")
    return found


def _writable(name: str, folder: pathlib.Path, cure: str, *, essential: bool) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Check(name, f"{folder} cannot be written ({reason})", cure, essential)
    return Check(name, str(folder))


def _python(
    source: str, *arguments: str, environ: dict[str, str] | None = None
) -> tuple[int, str]:
    line = [str(environment.python()), "-c", source, *arguments]
    try:
        done = subprocess.run(
            line,
            env=environ or dict(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout
