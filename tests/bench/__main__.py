"""Measures, beside the peers in the same run, and prints one table: `python -m tests.bench`.

    python -m tests.bench simulation     # one room

Each module here that has a tuple `MEASURES` is a room: functions that yield rows.
"""

import importlib
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from .table import Measure, Row, show


def measures(rooms: list[str]) -> Iterator[Measure]:
    """The measures of these rooms, or of all."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    there = [file.stem for file in files if not file.stem.startswith("__")]
    if strange := set(rooms) - set(there):
        raise SystemExit(f"there is no {sorted(strange)[0]!r}; there is: {', '.join(there)}")
    for name in there:
        if not rooms or name in rooms:
            yield from getattr(importlib.import_module(f"{__package__}.{name}"), "MEASURES", ())


def rows(rooms: list[str]) -> Iterator[Row]:
    """All rows, one after the other."""
    for measure in measures(rooms):
        yield from measure()


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, {platform.system()}; the best of several tries")
    show(rows(sys.argv[1:]))
