"""What the widgets here share: escaped text, tables, labelled buttons, and errors that are seen.

Text from a script, a model or a learner goes through `pre` or `cell`, and is never markup.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from html import escape
from typing import Any, Final

import ipywidgets as ipw

from .phrases import printable

MONO: Final = "font-family:var(--jp-code-font-family,monospace);font-size:12.5px;line-height:1.45"
MARK: Final = "background:#ffe08a;color:#111"  # on any theme; a word or an arrow says the same
_CELL: Final = "border:1px solid #bbb;padding:1px 6px;text-align:left;vertical-align:top"


class TwoForms:
    """An object with a text form and a widget, which is built when it is first shown."""

    title = ""

    def text(self) -> str:
        """The text form, as of now."""
        raise NotImplementedError

    @property
    def widget(self) -> Any:
        """The widget, to put into a layout of one's own."""
        raise NotImplementedError

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {**self.widget._repr_mimebundle_(), "text/plain": self.text()}

    def __repr__(self) -> str:
        return f"<{self.title}>"


def html(markup: str = "", **layout: Any) -> Any:
    """A widget of markup whose parts have been escaped."""
    return ipw.HTML(markup, layout=ipw.Layout(**layout))


def cell(text: str, *, keep: str = "") -> str:
    """`text` as markup that shows exactly it."""
    return escape(printable(text, keep=keep))


def pre(text: str, *, wrap: bool = False) -> str:
    """Lines of `text` in fixed width; long ones scroll, or wrap."""
    how = "pre-wrap;overflow-wrap:anywhere" if wrap else "pre;overflow-x:auto"
    return f'<pre style="margin:0;white-space:{how};{MONO}">{cell(text, keep=chr(10))}</pre>'


def row(*parts: Any) -> Any:
    """Widgets side by side, which wrap where there is no room."""
    layout = ipw.Layout(flex_flow="row wrap", width="100%", align_items="flex-start")
    return ipw.HBox(parts, layout=layout)


def heading(text: str) -> str:
    """A small heading over a part of a widget."""
    return f'<div style="font-weight:600;margin:6px 0 2px">{cell(text)}</div>'


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], marked: frozenset[int]) -> str:
    """A table of plain texts; the rows in `marked` have a ground of their own."""
    titles = "".join(f'<th scope="col" style="{_CELL}">{cell(title)}</th>' for title in head)
    body = "".join(_row(row, number in marked) for number, row in enumerate(rows))
    style = f"border-collapse:collapse;width:100%;{MONO}"
    return f'<table style="{style}"><tr>{titles}</tr>{body}</table>'


def _row(row: tuple[str, ...], marked: bool) -> str:
    name = f'<th scope="row" style="{_CELL};font-weight:normal">{cell(row[0])}</th>'
    style = f"{_CELL};overflow-wrap:anywhere"
    cells = name + "".join(f'<td style="{style}">{cell(text)}</td>' for text in row[1:])
    return f'<tr style="{MARK if marked else ""}">{cells}</tr>'


def button(label: str, tooltip: str, act: Callable[[], object], message: Any) -> Any:
    """A button that says what it does, and shows in `message` what goes wrong."""
    made = ipw.Button(description=label, tooltip=tooltip, layout=ipw.Layout(width="auto"))
    made.on_click(heard(lambda _: act(), message))
    return made


def heard(act: Callable[..., object], message: Any) -> Callable[..., None]:
    """`act` with its errors shown in `message`, an HTML widget, since a callback has no cell."""

    @wraps(act)
    def safely(*arguments: Any) -> None:
        try:
            act(*arguments)
        except Exception as error:
            message.value = alert(f"{type(error).__name__}: {error}")
        else:
            message.value = ""

    return safely


def alert(text: str) -> str:
    """A message that a screen reader speaks; a word says that it is one, not only its colour."""
    style = "background:#fff3cd;color:#111;border-left:4px solid #d55e00;padding:4px 8px"
    return f'<div role="alert" style="{style}">Note: {cell(text)}</div>'
