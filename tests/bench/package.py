"""What importing labkit costs and brings along."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

from .table import REPEATS, Measure, Row

HEAVY: Final = (
    *("pandas", "numpy", "matplotlib", "ipywidgets", "IPython", "langgraph"),
    *("fastapi", "starlette", "sqlalchemy", "openai", "httpx"),
)
PROGRAM: Final = """
import json, sys, time
before = time.perf_counter()
import labkit
spent = time.perf_counter() - before
print(json.dumps([spent, [name for name in {names!r} if name in sys.modules]]))
"""


def importing() -> Iterator[Row]:
    """`import labkit` in a process of its own, and which heavy libraries came with it."""
    program = PROGRAM.format(names=HEAVY)
    said = [_said(program) for _ in range(REPEATS)]
    yield Row(what="import labkit", value=min(s for s, _ in said) * 1_000, unit="ms", most=150)
    loaded = said[0][1]
    what = f"heavy libraries it loads{': ' if loaded else ''}{', '.join(loaded)}"
    yield Row(what=what, value=len(loaded), unit=f"of {len(HEAVY)}", most=0.5)


def _said(program: str) -> tuple[float, list[str]]:
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(done.stdout)
    return float(seconds), list(loaded)


MEASURES: Final[tuple[Measure, ...]] = (importing,)
