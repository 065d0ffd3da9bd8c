"""`python -m labkit test`: unit tests, every tracked notebook, and a real browser.

Each part is a pytest of its own in a sandbox, so that answers and copies of a learner change
nothing. The exit code is that of the worst part; one line a part closes the output. Further
arguments go to every part, and paths among them replace the parts: `test tests/recovery -x`.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

from labkit.commands import copies, sandbox
from labkit.commands.environment import ROOT

SPREAD = ["-n", "2", "--dist", "loadfile"]
EVEN = ["-n", "2", "--dist", "worksteal"]  # for tests that need no other one of their file
QUICK = ["-p", "tests.quick_start"]
SANITIZE = ["--nbval-sanitize-with", str(ROOT / "tests" / "nbval.cfg")]
NBVAL = [*QUICK, "--nbval", "--nbval-current-env", "--nbval-cell-timeout", "60", *SANITIZE]
PLAIN = [*QUICK, "-p", "no:nbval"]  # whose import costs seconds where no notebook is run
NO_TESTS = 5


def parts(arguments: list[str]) -> dict[str, list[str]]:
    """The parts to run, by name, each with its arguments for pytest."""
    tests = str(ROOT / "tests")
    if "--slow" in arguments:
        rest = [word for word in arguments if word != "--slow"]
        return {"slow": [*PLAIN, "-m", "slow", "--timeout", "900", tests, *rest]}
    if any(pathlib.Path(word.split("::")[0]).exists() for word in arguments):
        return {"chosen": arguments}
    quick, browser = [*PLAIN, "-m", "not slow and not bench"], f"{tests}/browser"
    return {
        "units": [*quick, *EVEN, f"--ignore={browser}", tests, *arguments],
        "notebooks": [*NBVAL, *SPREAD, *map(str, copies.tracked()), *arguments],
        "browser": [*quick, *SPREAD, browser, *arguments],
    }


def main(arguments: list[str]) -> int:
    """Run the parts one after the other; the exit code of the worst."""
    if {"-h", "--help"}.intersection(arguments):
        print(__doc__)
        return 0
    chosen = set(arguments) - {"--slow"}  # a choice may leave a part without a test
    codes, lines = [], []
    for name, words in parts(arguments).items():
        print(f"labkit test: {name}", flush=True)
        started = time.monotonic()
        code = run(words)
        codes.append(0 if code == NO_TESTS and chosen else code)
        verdict = f"FAILED with exit code {codes[-1]}" if codes[-1] else "passed"
        lines.append(f"{name:<10} {verdict} in {time.monotonic() - started:.0f} s")
    print("", *lines, sep="\n", flush=True)
    return max(codes)


def run(words: list[str]) -> int:
    """The exit code of one pytest in a sandbox."""
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rs", *words]
    with tempfile.TemporaryDirectory(prefix="labkit-", ignore_cleanup_errors=True) as folder:
        variables = sandbox.for_tests(folder)
        # Some hundred Pythons start in a run: to compile the libraries takes most of them a second.
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        done = subprocess.run(line, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL)
    return done.returncode
