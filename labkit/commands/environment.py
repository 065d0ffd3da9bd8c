"""The virtual environment: made from `requirements.lock`, found again quickly, entered.

Standard library only. What is missing is one line with its cure, raised as `Missing`.
A stamp in the environment says what it was made from; while that holds, nothing is installed.
An environment that somebody else keeps (conda, Binder) is used as it is when
`LABKIT_ENVIRONMENT=current` is set.

    >>> enter("doctor", [])  # doctest: +SKIP
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import BinaryIO

from labkit.commands import system

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
NO_NETWORK = re.compile(
    r"dns error|failed to fetch|name resolution|no matching distribution|connection|timed out", re.I
)


class Missing(Exception):
    """Something that the environment needs is not here: the message is one line with the cure."""


def fingerprint(root: pathlib.Path = ROOT) -> str:
    """What an environment made now would be made from: the lock, pyproject, Python and place."""
    parts = [(root / name).read_bytes() for name in ("requirements.lock", "pyproject.toml")]
    parts += [sys.version.encode(), str(root).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def is_ready(venv: pathlib.Path = VENV) -> bool:
    """Whether the environment was made from the lock as it is now."""
    stamp = venv / "labkit.stamp"
    return (
        stamp.is_file() and stamp.read_text() == fingerprint() and system.python_of(venv).exists()
    )


def uses_current() -> bool:
    """Whether this Python is the environment, kept by conda, Binder or the reader."""
    return os.environ.get("LABKIT_ENVIRONMENT") == "current"


def inside(venv: pathlib.Path = VENV) -> bool:
    """Whether this process runs in the environment already."""
    return uses_current() or pathlib.Path(sys.prefix).resolve() == venv.resolve()


def python(venv: pathlib.Path = VENV) -> pathlib.Path:
    """The Python that has the lab's libraries, or this one where there is none yet."""
    found = system.python_of(venv)
    return pathlib.Path(sys.executable) if inside(venv) or not found.exists() else found


def enter(command: str, arguments: list[str]) -> int | None:
    """Make sure of the environment and go on inside it.

    None: this process is inside already, go on. A number: the command is done, with that exit code
    (1 when something is missing, which has then been said). On most systems it does not return.
    """
    try:
        ensure()
    except Missing as missing:
        print(f"labkit: {missing}", file=sys.stderr)
        return 1
    if inside():
        return None
    line = [str(system.python_of(VENV)), "-m", "labkit", command, *arguments]
    return system.hand_over(line, dict(os.environ))


def ensure(venv: pathlib.Path = VENV) -> None:
    """Make the environment unless it is there. Raises `Missing`."""
    if uses_current() or is_ready(venv):
        return
    print(f"labkit: making the environment in {venv.name} (once; a minute or two)", flush=True)
    try:
        _make(venv)
        (venv / "labkit.stamp").write_text(fingerprint())
    except PermissionError as error:
        raise Missing(
            f"may not write {error.filename or venv}: copy the folder to a place of your own"
        ) from error
    except OSError as error:
        raise Missing(f"cannot make {venv}: {error}; mend that, run it again") from error


def _make(venv: pathlib.Path) -> None:
    if not inside(venv) and not _same_python(venv):
        _create(venv)
    with (venv / "install.log").open("wb") as log:
        python = str(system.python_of(venv))
        uv = _uv(python, log)
        steps = [["-r", str(LOCK)], ["--no-deps", "--no-build-isolation", "-e", str(ROOT)]]
        for step in steps:
            by_uv = [[*uv, "pip", "install", "--python", python, *step]] if uv else []
            _first_that_works([*by_uv, [python, "-m", "pip", "install", *step]], log)


def _same_python(venv: pathlib.Path) -> bool:
    line = [str(system.python_of(venv)), "-c", "import sys; print(sys.version)"]
    try:
        done = subprocess.run(line, capture_output=True, text=True)
    except OSError:
        return False
    return done.stdout.strip() == sys.version


def _create(venv: pathlib.Path) -> None:
    needed = ["venv"] if shutil.which("uv") else ["venv", "ensurepip"]
    absent = [module for module in needed if importlib.util.find_spec(module) is None]
    if absent:
        raise Missing(f"this Python lacks the module {absent[0]}: {system.venv_cure()}")
    import venv as standard

    with_pip = importlib.util.find_spec("ensurepip") is not None
    try:
        standard.EnvBuilder(clear=True, with_pip=with_pip, symlinks=not system.WINDOWS).create(venv)
    except subprocess.CalledProcessError as error:
        raise Missing(f"this Python cannot make an environment: {system.venv_cure()}") from error


def _uv(python: str, log: BinaryIO) -> list[str]:
    """The command that runs uv, the locked one installed if there is no other; [] without one."""
    on_path = shutil.which("uv")
    if on_path:
        return [on_path]
    pin = next(line for line in LOCK.read_text().splitlines() if line.startswith("uv=="))
    return [python, "-m", "uv"] if _run([python, "-m", "pip", "install", pin], log) == 0 else []


def _first_that_works(ways: list[list[str]], log: BinaryIO) -> None:
    if any(_run(way, log) == 0 for way in ways):
        return
    if NO_NETWORK.search(pathlib.Path(log.name).read_text(errors="replace")):
        raise Missing(f"no package index can be reached: connect, run it again (see {log.name})")
    raise Missing(f"packages were not installed: mend what {log.name} ends with, run it again")


def _run(line: list[str], log: BinaryIO) -> int:
    log.write(f"$ {' '.join(line)}\n".encode())
    log.flush()
    return subprocess.run(
        line, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
    ).returncode
