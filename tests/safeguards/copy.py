"""A scratch copy of the tree, in which one safeguard at a time is broken."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import reports
from .kinds import Safeguard

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60  # seconds for one test
MOST = 600  # seconds for one call of pytest
NBVAL = ("-p", "nbval.plugin", "--nbval", "--nbval-current-env")
# No bytecode, whose date may be too coarse to tell a broken file from the whole one; no plugins
# but those named, since finding and loading them takes three seconds a start.
_SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Copy:
    """A copy of the tree's files, tracked and new, in a folder of its own.

    It comes before an editable install on the path, so that it is what is imported.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in _files():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)

    def imported(self) -> Path:
        """Where `import labkit` finds it, seen from the copy."""
        say = "import labkit; print(labkit.__file__)"
        return Path(self._run("-c", say).stdout.strip()).resolve()

    def holds(self, path: Path) -> bool:
        """Whether `path` lies in the copy."""
        return path.is_relative_to(self._folder.resolve())

    def count(self, safeguard: Safeguard) -> int:
        """How often the text to be replaced stands in its file."""
        file = self._folder / safeguard.file
        return file.read_text(encoding="utf-8").count(safeguard.old) if file.is_file() else 0

    @contextmanager
    def broken(self, safeguard: Safeguard) -> Iterator[None]:
        """Break it for the length of the block."""
        file = self._folder / safeguard.file
        whole = file.read_text(encoding="utf-8")
        file.write_text(whole.replace(safeguard.old, safeguard.new), encoding="utf-8")
        try:
            yield
        finally:
            file.write_text(whole, encoding="utf-8")

    def test(self, nodes: Sequence[str]) -> tuple[dict[str, str], str]:
        """Run tests and notebooks of the copy: how each ended, and what pytest said."""
        written = self._folder / "reports.jsonl"
        written.unlink(missing_ok=True)
        wanted = self._folder / "wanted.json"  # too long for a variable of a process
        wanted.write_text(json.dumps(nodes), encoding="utf-8")
        variables = {reports.WRITTEN: str(written), reports.WANTED: str(wanted)}
        files = sorted({node.partition("::")[0] for node in nodes})
        notebooks = [file for file in files if file.endswith(".ipynb")]
        tests = [file for file in files if file not in notebooks]
        said = self._pytest(tests, variables) if tests else ""
        if notebooks:
            said += self._pytest([*NBVAL, *notebooks], variables)
        return reports.read(written, nodes), said

    def _pytest(self, arguments: list[str], variables: dict[str, str]) -> str:
        plain = ["-q", "--tb=line", "-p", "no:cacheprovider", f"--timeout={LIMIT}"]
        plugin = ["-p", reports.__name__, "-p", "pytest_timeout", "--continue-on-collection-errors"]
        done = self._run("-m", "pytest", *plain, *plugin, *arguments, **variables)
        return done.stdout + done.stderr

    def _run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self._folder,
            env={**os.environ, **_SETTINGS, "PYTHONPATH": str(self._folder), **variables},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=MOST,
            check=False,
        )


@contextmanager
def copies(count: int) -> Iterator[list[Copy]]:
    """So many copies, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="safeguards-") as folder:
        yield [Copy(Path(folder, str(number))) for number in range(count)]


def _files() -> list[str]:
    """Tracked files and new ones that are not ignored, as paths from the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]
