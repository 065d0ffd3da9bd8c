"""Finds the Pythons that are installed here, to compare what they do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MINORS = ("3.11", "3.12", "3.13")


@cache
def python(minor: str) -> str | None:
    """An interpreter of that minor version that starts, or None."""
    return next((found for found in _candidates(minor) if _is(found, minor)), None)


def run(executable: str, *arguments: str, **environment: str) -> str:
    """What a program prints, run at the root of the tree by `executable`."""
    variables = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [executable, *arguments],
        env=variables,
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _candidates(minor: str) -> Iterator[str]:
    if "{}.{}".format(*sys.version_info) == minor:
        yield sys.executable
    if on_path := shutil.which(f"python{minor}"):
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{minor}.*/bin/python"), reverse=True))
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        command = [uv, "python", "find", minor, "--no-python-downloads", "--no-project"]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
        yield found.stdout.strip()


def _is(executable: str, minor: str) -> bool:
    say = "import sys; print('{}.{}'.format(*sys.version_info))"
    try:
        said = subprocess.run([executable, "-c", say], capture_output=True, text=True, timeout=20)
    except OSError:
        return False
    return said.stdout.strip() == minor
