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
    return tuple(found for file in files for found in _read(file, _version(file))[1])


def statements(file: str) -> Mapping[int, int]:
    """Line -> first line of its statement (of its head, where it has a body).

    A call that is written over six lines is one step, not six.
    """
    return _read(file, _version(file))[0]


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


def _version(file: str) -> tuple[object, ...]:
    """What tells one text of `file` from the next: its size and time, as linecache read it."""
    linecache.getlines(file)
    return tuple(linecache.cache.get(file, ())[:2])


@lru_cache(maxsize=100)
def _read(
    file: str, version: tuple[object, ...]
) -> tuple[Mapping[int, int], tuple[Breakpoint, ...]]:
    """The statements and the breakpoints of `file`."""
    text = "".join(linecache.getlines(file))
    try:
        nodes = list(ast.walk(ast.parse(text)))
        comments = list(_comments(text))
    except (SyntaxError, tokenize.TokenError):  # no plain Python: every line is a step then
        return {}, ()
    first = dict(line for node in nodes if isinstance(node, ast.stmt) for line in _lines(node))
    named = {first.get(line, line): name for line, name in comments}
    return first, tuple(
        Breakpoint(name, file, line, _function(nodes, line)) for line, name in named.items()
    )


def _lines(node: ast.stmt) -> Iterator[tuple[int, int]]:
    """Each line of a statement's head, with the first."""
    start = _first_line(node)
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    end = _first_line(body[0]) - 1 if body else node.end_lineno
    for line in range(min(node.lineno, start), max(start, end or 0) + 1):
        yield line, start


def _first_line(node: Any) -> int:
    while isinstance(node, ast.Try | ast.TryStar):
        node = node.body[0]  # "try:" does nothing, so it is no step of its own
    start = getattr(node, "pattern", node)  # a case has no line of its own
    return int(min(mark.lineno for mark in [start, *getattr(node, "decorator_list", [])]))


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (said := _COMMENT.match(token.string)):
            yield token.start[0], said["name"]


def _function(nodes: Iterable[ast.AST], line: int) -> str:
    """The name of the innermost function around `line`: the last one, as a walk goes inwards."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    around = [n for n in nodes if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or 0)]
    return around[-1].name if around else ""
