"""Named lines of the source, read from its trailing comments.

    return retry()  # breakpoint: retry guard

The name serves in the stepper; file and line serve in any debugger.
"""

import ast
import io
import linecache
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

_COMMENT: Final = re.compile(r"#\s*breakpoint:\s*(?P<name>[^#]+?)\s*$")


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A named line: `file` as the debugger wants it, `line` from 1, and the function around it.

    The line is the first of its statement, wherever in the statement the comment stands.
    """

    name: str
    file: str
    line: int
    function: str


def breakpoints(files: Iterable[str]) -> tuple[Breakpoint, ...]:
    """The breakpoints in `files`, in the order of the files and their lines."""
    return tuple(found for file in files for found in _breakpoints(file, _version(file)))


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
    return _statements(file, _version(file))


Version = tuple[object, ...]


def _version(file: str) -> Version:
    """What tells one text of `file` from the next: its size and time, as linecache read it."""
    linecache.getlines(file)
    return tuple(linecache.cache.get(file, ())[:2])


@lru_cache(maxsize=100)
def _tree(file: str, version: Version) -> ast.Module:
    try:
        return ast.parse("\n".join(source(file)))
    except SyntaxError:  # a cell with magics, say: every line is a step then
        return ast.Module([], [])


@lru_cache(maxsize=100)
def _statements(file: str, version: Version) -> Mapping[int, int]:
    first: dict[int, int] = {}
    for node in ast.walk(_tree(file, version)):
        if isinstance(node, ast.stmt):
            start = _first_line(node)
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            end = _first_line(body[0]) - 1 if body else node.end_lineno
            for line in range(min(node.lineno, start), max(start, end or 0) + 1):
                first[line] = start
    return first


def _first_line(node: Any) -> int:
    while isinstance(node, ast.Try | ast.TryStar):
        node = node.body[0]  # "try:" does nothing, so it is no step of its own
    start = getattr(node, "pattern", node)  # a case has no line of its own
    return int(min(mark.lineno for mark in [start, *getattr(node, "decorator_list", [])]))


@lru_cache(maxsize=100)
def _breakpoints(file: str, version: Version) -> tuple[Breakpoint, ...]:
    first = _statements(file, version)
    found = {first.get(line, line): name for line, name in _comments(file)}
    return tuple(
        Breakpoint(name, file, line, _function(_tree(file, version), line))
        for line, name in found.items()
    )


def _comments(file: str) -> Iterator[tuple[int, str]]:
    text = io.StringIO("".join(linecache.getlines(file)))
    try:
        for token in tokenize.generate_tokens(text.readline):
            if token.type == tokenize.COMMENT and (said := _COMMENT.match(token.string)):
                yield token.start[0], said["name"]
    except (tokenize.TokenError, SyntaxError):  # as above
        return


def _function(tree: ast.Module, line: int) -> str:
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno).name if around else ""
