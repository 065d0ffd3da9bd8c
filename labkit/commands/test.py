"""`python -m labkit test`: unit tests, every tracked notebook, and a real browser.

Each part is a pytest of its own in a sandbox, so that answers and copies of a learner change
nothing. The exit code is that of the worst part; one line a part closes the output. Further
arguments go to every part, and paths among them replace the parts: `test tests/recovery -x`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from labkit.commands import environment, sandbox

SPREAD = ["-n", "2", "--dist", "loadfile"]
NBVAL = ["--nbval", "--nbval-current-env", "--nbval-cell-timeout", "60"]
PLAIN = ["-p", "no:nbval"]  # its import costs seconds where no notebook is run
NO_TESTS = 5


def parts(arguments: list[str]) -> dict[str, list[str]]:
    """The parts to run, by name, each with its arguments for pytest."""
    tests = str(environment.ROOT / "tests")
    if "--slow" in arguments:
        rest = [word for word in arguments if word != "--slow"]
        return {"slow": [*PLAIN, "-m", "slow", "--timeout", "900", tests, *rest]}
    if any(os.path.exists(word.split("::")[0]) for word in arguments):  # noqa: PTH110
        return {"chosen": arguments}
    notebooks = [str(path) for path in sorted(environment.ROOT.glob("notebooks/*.ipynb"))]
    quick = "not slow and not bench and not browser"
    found = {"units": [*PLAIN, "-m", quick, *SPREAD, tests, *arguments]}
    if notebooks:
        found["notebooks"] = [*NBVAL, *SPREAD, *notebooks, *arguments]
    return {**found, "browser": [*PLAIN, "-m", "browser", f"{tests}/browser", *arguments]}


def main(arguments: list[str]) -> int:
    """Run the parts one after the other; the exit code of the worst."""
    code = environment.enter("test", arguments)
    if code is not None:
        return code
    codes, lines = [], []
    for name, words in parts(arguments).items():
        print(f"labkit test: {name}", flush=True)
        started = time.monotonic()
        code, last = run(words)
        codes.append(code)
        verdict = "passed" if code == 0 else f"FAILED with exit code {code}"
        lines.append(f"{name:<10} {verdict} in {time.monotonic() - started:.0f} s: {last}")
    print("", *lines, sep="\n", flush=True)
    return max(codes)


def run(words: list[str]) -> tuple[int, str]:
    """One pytest in a sandbox, shown as it runs: its exit code and its closing line.

    A part without any test counts as passed, and its closing line says so.
    """
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *words]
    last = ""
    with (
        tempfile.TemporaryDirectory(prefix="labkit-test-", ignore_cleanup_errors=True) as folder,
        subprocess.Popen(
            line,
            cwd=environment.ROOT,
            env=sandbox.variables(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
        ) as process,
    ):
        for text in process.stdout or ():
            print(text, end="", flush=True)
            last = text.strip() or last
    code = 0 if process.returncode == NO_TESTS else process.returncode
    return code, last.strip("= ")
