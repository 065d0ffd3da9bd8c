"""What to read in a lesson, and the source of one function.

    labkit.reading(decide, backoff)    # names and files; the widget adds the lines
    labkit.source(decide)

The text forms hold no line numbers, since every edit of the source moves those.
"""

import inspect
import textwrap
from collections.abc import Callable
from functools import partial
from typing import Any

from labkit.simulation.breakpoints import breakpoints, short

from .controls import TwoForms, html, pre


class Reading(TwoForms):
    """The functions of a lesson, each with its file and the breakpoints in it."""

    title = "what to read"

    def __init__(self, functions: tuple[Callable[..., Any], ...]) -> None:
        self._functions = functions

    def text(self) -> str:
        """Function, file and breakpoints, one function a line."""
        return "\n".join(self._line(function, lined=False) for function in self._functions)

    @property
    def widget(self) -> Any:
        """The same with the line on which each begins."""
        return html(pre("\n".join(self._line(f, lined=True) for f in self._functions)))

    def _line(self, function: Callable[..., Any], *, lined: bool) -> str:
        file = inspect.getfile(function)
        code, first = inspect.getsourcelines(function)
        lines = range(first, first + len(code))
        marks = [mark.name for mark in breakpoints([file]) if mark.line in lines]
        where = f"{short(file)}:{first}" if lined else short(file)
        named = f"  breakpoints: {', '.join(marks)}" if marks else ""
        return f"{function.__qualname__:<20} {where}{named}"


class Source(TwoForms):
    """The source of one function, as text."""

    title = "source"

    def __init__(self, function: Callable[..., Any]) -> None:
        inner = function.func if isinstance(function, partial) else function
        self._source = textwrap.dedent(inspect.getsource(inner)).rstrip()

    def text(self) -> str:
        """The lines of the function."""
        return self._source

    @property
    def widget(self) -> Any:
        """The same in fixed width."""
        return html(pre(self._source))


def reading(*functions: Callable[..., Any]) -> Reading:
    """The functions to read, with file and breakpoints."""
    return Reading(functions)


def source(function: Callable[..., Any]) -> Source:
    """The source of a function, such as a scenario's client."""
    return Source(function)
