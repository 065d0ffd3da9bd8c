"""What exists on one system only: folder names, browsers, handing over a process.

The rule: no other module asks `sys.platform` or `os.name`.

    >>> python_of(pathlib.Path(".venv")).stem
    'python'
"""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import webbrowser

WINDOWS = os.name == "nt"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
CHROMIUM_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)


def python_of(venv: pathlib.Path) -> pathlib.Path:
    """The Python of a virtual environment, whether it exists or not."""
    return venv / "Scripts" / "python.exe" if WINDOWS else venv / "bin" / "python"


def venv_cure() -> str:
    """How to get the standard library's venv where a system splits it off."""
    if shutil.which("apt-get"):
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return f"run `sudo apt-get install python{version}-venv`"
    return "install Python from python.org, or a package that brings `venv` and `ensurepip`"


def find_chromium() -> str | None:
    """The path of a Chromium that a test may drive: LABKIT_CHROMIUM, which may be "" for none."""
    named = os.environ.get("LABKIT_CHROMIUM")
    if named is not None:
        return named or None
    found = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    return found or next((place for place in CHROMIUM_PLACES if os.path.isfile(place)), None)  # noqa: PTH113


def browser_name() -> str | None:
    """What `open_browser` would use, or None where there is no browser (or no screen)."""
    try:
        return type(webbrowser.get()).__name__
    except webbrowser.Error:
        return None


def open_browser(address: str) -> bool:
    """Open the address in the learner's browser; False where none is to be had."""
    try:
        return webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False


def hand_over(arguments: list[str], environment: dict[str, str]) -> int:
    """Become another process, or, on Windows, wait for it and return its exit code."""
    sys.stdout.flush()
    if not WINDOWS:
        os.execve(arguments[0], arguments, environment)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the child
    try:
        return subprocess.run(arguments, env=environment).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def end(process: subprocess.Popen[bytes], *, patience: float = 10.0) -> None:
    """Ask a process to end, and after `patience` seconds end it."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
