"""What the widgets here share: escaped text, labelled buttons, and errors that are seen."""

from collections.abc import Callable, Sequence
from functools import wraps
from threading import RLock
from typing import Any, Final

import ipywidgets as ipw
import traitlets

from .phrases import cell

MONO: Final = "font-family:var(--jp-code-font-family,monospace);font-size:12.5px;line-height:1.45"
MARK: Final = "background:#ffe08a;color:#111"  # on any theme; a word or an arrow says the same
_ALERT: Final = "background:#fff3cd;color:#111;border-left:4px solid #d55e00;padding:4px 8px"
_ROOM: Final = ("8 1 440px", "5 1 300px")
ONE_AT_A_TIME: Final = RLock()  # JupyterLab may hand each control's messages to another thread
_CELL: Final = "border:1px solid #bbb;padding:1px 6px;text-align:left"


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


def pre(text: str, *, wrap: bool = False) -> str:
    """Lines of `text` in fixed width; long ones scroll, or wrap."""
    how = "pre-wrap;overflow-wrap:anywhere;word-break:normal" if wrap else "pre;overflow-x:auto"
    return f'<pre style="margin:0;white-space:{how};{MONO}">{cell(text, keep=chr(10))}</pre>'


def row(*parts: Any) -> Any:
    """Widgets side by side, which wrap where there is no room."""
    layout = ipw.Layout(flex_flow="row wrap", width="100%", align_items="flex-start")
    return ipw.HBox(parts, layout=layout)


def parts(*titled: tuple[str, str], height: str = "auto", flex: Sequence[str] = _ROOM) -> str:
    """Two pieces of markup side by side, each under its title; long ones scroll.

    `flex` is the room of each, in words of CSS.
    """
    told = ""
    for number, (title, markup) in enumerate(titled):
        style = f"flex:{flex[number]};min-width:0;height:{height};overflow:auto"
        named = f'<div style="font-weight:600;margin:6px 0 2px">{cell(title)}</div>'
        told += f'<div tabindex="0" style="{style}">{named}{markup}</div>'
    style = "display:flex;flex-wrap:wrap;gap:8px;width:0;min-width:100%"  # no wider than the page
    return f'<div style="{style}">{told}</div>'


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Two columns under the first row; a third text is put behind an arrow, and marks its row."""
    told = ""
    for number, (name, value, after) in enumerate(rows):
        tag, wrap = ("td", ";overflow-wrap:anywhere") if number else ("th", "")
        mark, text = (MARK, f"{value} → {after}") if after else ("", value)
        told += f'<tr style="{mark}"><{tag} style="{_CELL}">{cell(name)}</{tag}>'
        told += f'<{tag} style="{_CELL}{wrap}">{cell(text)}</{tag}></tr>'
    return f'<table style="border-collapse:collapse;width:100%;{MONO}">{told}</table>'


def choice(model: Any, name: str, label: str = "") -> Any:
    """A list of the values of a model's `Enum` of that name, which follow each other."""
    style, values = {"description_width": "initial"}, model.traits()[name].values
    made = ipw.Dropdown(description=label or name, options=values, style=style)
    traitlets.link((model, name), (made, "value"))
    return made


def button(label: str, tooltip: str, act: Callable[[], object], message: Any) -> Any:
    """A button that says what it does, and shows in `message` what goes wrong."""
    layout = ipw.Layout(width="auto", align_self="flex-start")
    made = ipw.Button(description=label, tooltip=tooltip, layout=layout)
    made.on_click(heard(lambda _: act(), message))
    return made


def heard(act: Callable[..., object], message: Any, meanwhile: str = "") -> Callable[..., None]:
    """`act` with its errors shown in `message`, an HTML widget, since a callback has no cell.

    One callback at a time: a button that is pressed while a picture is drawn waits for it.
    `meanwhile` stands there while it runs. A screen reader speaks both; a word says that it is an
    error, not only its colour.
    """

    @wraps(act)
    def safely(*arguments: Any) -> None:
        working = meanwhile and f'<div role="status">{meanwhile}</div>'
        with ONE_AT_A_TIME:
            message.value = working
            try:
                act(*arguments)
                if message.value == working:  # else what it called has said what went wrong
                    message.value = ""
            except Exception as error:
                named = cell(f"{type(error).__name__}: {error}")
                message.value = f'<div role="alert" style="{_ALERT}">{named}</div>'

    return safely
