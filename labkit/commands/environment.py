"""The virtual environment: made from `requirements.lock`, found again quickly, entered.

Standard library only. What is missing is one line with its cure, raised as `Missing`.
A stamp in the environment says what it was made from; while that holds, nothing is installed.
An environment that somebody else keeps (conda, Binder) is used as it is when
`LABKIT_ENVIRONMENT=current` is set.

    run("doctor", [])   # in this process, or in the environment's Python
"""

import hashlib
import importlib
import os
import pathlib
import signal
import subprocess
import sys
from typing import BinaryIO

from labkit.commands import system

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"


class Missing(Exception):
    """Something that a command needs is not here: the message is one line with the cure."""


def run(command: str, arguments: list[str]) -> int:
    """Run a command inside the environment; its exit code, 2 when something is missing."""
    try:
        if os.environ.get("LABKIT_ENVIRONMENT") != "current":
            ensure()
            if not inside():
                python = str(system.python_of(VENV))
                return system.hand_over([python, "-m", "labkit", command, *arguments])
        return int(importlib.import_module(f"labkit.commands.{command}").main(arguments))
    except (Missing, OSError) as problem:
        print(f"labkit: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # also while the command is still being imported
        return 128 + signal.SIGINT


def ensure(venv: pathlib.Path = VENV) -> None:
    """Make the environment unless it is there. Raises `Missing`."""
    if _stamp(venv) == fingerprint():
        return
    print(f"labkit: making the environment in {venv.name} (once; a minute or two)", flush=True)
    try:
        _make(venv)
        (venv / "labkit.stamp").write_text(fingerprint())
    except PermissionError as error:
        where = error.filename or venv
        raise Missing(f"may not write {where}: copy the folder to a place of your own") from error


def inside(venv: pathlib.Path = VENV) -> bool:
    """Whether this process runs in the environment already."""
    return pathlib.Path(sys.prefix).resolve() == venv.resolve()


def fingerprint(root: pathlib.Path = ROOT) -> str:
    """What an environment is made from: Python in the first line, then the files and the place."""
    parts = [(root / name).read_bytes() for name in ("requirements.lock", "pyproject.toml")]
    digest = hashlib.sha256(b"\0".join([*parts, str(root).encode()]))
    return f"{sys.version}\n{digest.hexdigest()}\n"


def _stamp(venv: pathlib.Path) -> str:
    stamp = venv / "labkit.stamp"
    return stamp.read_text() if stamp.exists() and system.python_of(venv).exists() else ""


def _make(venv: pathlib.Path) -> None:
    if not (inside(venv) or _stamp(venv).startswith(f"{sys.version}\n")):
        _create(venv)
    python = str(system.python_of(venv))
    pip = [python, "-m", "pip", "install"]
    uv = [python, "-m", "uv", "pip", "install", "--python", python]
    with (venv / "install.log").open("wb") as log:
        pin = next(line for line in LOCK.read_text().splitlines() if line.startswith("uv=="))
        _works([*pip, pin], log)  # much quicker than pip; where it cannot be had, pip does it all
        for what in (["-r", str(LOCK)], ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]):
            if not (_works([*uv, *what], log) or _works([*pip, *what], log)):
                cure = f"connect to a network, or mend what {log.name} ends with; then run it again"
                raise Missing(f"packages could not be installed: {cure}")


def _create(venv: pathlib.Path) -> None:
    venv.mkdir(exist_ok=True)  # the error where nothing may be written here
    line = [sys.executable, "-m", "venv", "--clear", str(venv)]
    if subprocess.run(line, capture_output=True).returncode != 0:
        raise Missing(f"this Python cannot make an environment: {system.VENV_CURE}")


def _works(line: list[str], log: BinaryIO) -> bool:
    log.write(f"$ {' '.join(line)}\n".encode())
    log.flush()
    done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    return done.returncode == 0
