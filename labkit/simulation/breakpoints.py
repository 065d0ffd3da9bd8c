"""Named lines of the source, read from its trailing comments.

    return retry()  # breakpoint: retry guard

The name serves in the stepper; file and line serve in any debugger.
"""

import ast
import linecache
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_COMMENT: Final = re.compile(r"#\s*breakpoint:\s*(?P<name>[^#]+?)\s*$")


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A named line: `file` as the debugger wants it, `line` from 1, and the function around it."""

    name: str
    file: str
    line: int
    function: str


def breakpoints(files: Iterable[str]) -> tuple[Breakpoint, ...]:
    """The breakpoints in `files`, in the order of the files and their lines."""
    return tuple(found for file in files for found in _in(file, tuple(source(file))))


def by_line(files: Iterable[str]) -> Mapping[tuple[str, int], str]:
    """(file, line) -> name."""
    return {(found.file, found.line): found.name for found in breakpoints(files)}


def source(file: str) -> list[str]:
    """The lines of a file or of a notebook's cell; empty when there are none to be had."""
    return [line.rstrip("\n") for line in linecache.getlines(file)]


def short(file: str) -> str:
    """A name for `file` that is the same on every machine."""
    path = Path(file)
    package = Path(__file__).parents[1]
    if path.is_relative_to(package):
        return f"{package.name}/{path.relative_to(package).as_posix()}"
    return path.name if path.suffix == ".py" and "ipykernel" not in file else "this notebook"


def statements(file: str) -> Mapping[int, int]:
    """Line -> first line of its statement (of its head, where it has a body).

    A call that is written over six lines is one step, not six.
    """
    return _statements(tuple(source(file)))


@lru_cache(maxsize=100)
def _statements(lines: tuple[str, ...]) -> Mapping[int, int]:
    first: dict[int, int] = {}
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            end = _first_line(body[0]) - 1 if body else node.end_lineno
            for line in range(node.lineno, max(node.lineno, end or 0) + 1):
                first[line] = node.lineno
    return first


def _first_line(node: ast.AST) -> int:
    start: int = getattr(node, "pattern", node).lineno  # a case has no line of its own
    return min([start, *(mark.lineno for mark in getattr(node, "decorator_list", []))])


@lru_cache(maxsize=100)
def _in(file: str, lines: tuple[str, ...]) -> tuple[Breakpoint, ...]:
    found = []
    for number, line in enumerate(lines, start=1):
        if comment := _COMMENT.search(line):
            function = _function(lines, number)
            found.append(Breakpoint(comment["name"], file, number, function))
    return tuple(found)


def _function(lines: tuple[str, ...], number: int) -> str:
    around = [
        node
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= number <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else ""
