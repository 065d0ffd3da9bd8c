"""A pytest plugin that runs the wanted tests of the files given and writes down how each ended.

Node ids on the command line would not do: one that is not there keeps pytest from running any.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

WANTED = "SAFEGUARDS_WANTED"  # the variable that names the file: the node ids, as JSON
WRITTEN = "SAFEGUARDS_WRITTEN"  # the variable that names the file: one JSON line a report
_WORST = ("failed", "skipped", "passed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep those that are wanted."""
    wanted = json.loads(Path(os.environ[WANTED]).read_text(encoding="utf-8"))
    items[:] = [item for item in items if any(_is_of(item.nodeid, node) for node in wanted)]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called by pytest for set-up, call and tear-down of each test."""
    with Path(os.environ[WRITTEN]).open("a", encoding="utf-8") as written:
        written.write(json.dumps([report.nodeid, report.outcome]) + "\n")


def read(file: Path, nodes: Iterable[str]) -> dict[str, str]:
    """How each node ended: "failed", "passed", "skipped", or "missing" where nothing of it ran."""
    ended: dict[str, set[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        test, outcome = json.loads(line)
        ended.setdefault(test, set()).add(outcome)
    tests = {test: min(found, key=_WORST.index) for test, found in ended.items()}
    return {node: _of(node, tests) for node in nodes}


def _of(node: str, tests: dict[str, str]) -> str:
    mine = [outcome for test, outcome in tests.items() if _is_of(test, node)]
    return next((end for end in ("failed", "passed", "skipped") if end in mine), "missing")


def _is_of(test: str, node: str) -> bool:
    """Whether `test` is the node, one of its parameters, or in it."""
    return test == node or test.startswith((f"{node}[", f"{node}::"))
