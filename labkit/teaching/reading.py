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

from labkit.simulation import SimulationError
from labkit.simulation.breakpoints import breakpoints, short

from .controls import TwoForms, html, pre
from .said import Told


class Reading(TwoForms):
    """The functions to read, one a line, each with its file and the breakpoints in it."""

    title = "what to read"

    def __init__(self, *functions: Callable[..., Any]) -> None:
        self._functions = [_function(each) for each in functions]

    def text(self) -> str:
        """The lines, as they stay when the source is edited."""
        return "\n".join(_line(function, "") for function in self._functions)

    @property
    def widget(self) -> Any:
        """The same, with the number of the line on which each begins."""
        lines = (_line(function, ":{}") for function in self._functions)
        return html(pre("\n".join(lines), wrap=True))


reading = Reading


def source(function: Callable[..., Any]) -> Told:
    """The source of a function, such as a scenario's client."""
    return Told(textwrap.dedent(inspect.getsource(_function(function))).rstrip())


def _function(given: Any) -> Any:
    """The function that is given, or the one in a partial; raises `SimulationError` for others."""
    inner = given.func if isinstance(given, partial) else given
    try:
        inspect.getsourcelines(inner)
    except (TypeError, OSError):
        inner = None
    if not callable(inner):
        cure = 'such as labkit.find("retry.guarded").client'
        raise SimulationError(f"give it a function written in Python, {cure}, not {given!r}")
    return inner


def _line(function: Callable[..., Any], line: str) -> str:
    file = inspect.getfile(function)
    code, first = inspect.getsourcelines(function)
    marks = [m.name for m in breakpoints([file]) if first <= m.line < first + len(code)]
    named = f"  breakpoints: {', '.join(marks)}" if marks else ""
    return f"{function.__qualname__:<20} {short(file)}{line.format(first)}{named}"
