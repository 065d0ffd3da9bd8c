"""What exists on one system only: folders, browsers, handing over.

The rule: no other module of this room asks `sys.platform` or `os.name`.

    >>> python_of(pathlib.Path(".venv")).stem
    'python'
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

WINDOWS = os.name == "nt"
VENV_CURE = (
    f"`sudo apt-get install python3.{sys.version_info.minor}-venv` or Python from python.org"
)
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


def find_chromium() -> str | None:
    """The path of a Chromium that a test may drive: LABKIT_CHROMIUM, which may be "" for none."""
    named = os.environ.get("LABKIT_CHROMIUM")
    if named is not None:
        return named or None
    return next(filter(None, map(shutil.which, (*CHROMIUM_NAMES, *CHROMIUM_PLACES))), None)


def hand_over(line: list[str]) -> int:
    """Become another process, or, on Windows, wait for it and return its exit code."""
    sys.stdout.flush()
    if not WINDOWS:
        os.execv(line[0], line)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the child
    return subprocess.run(line).returncode
