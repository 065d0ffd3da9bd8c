"""What every chart here has in common: a figure without pyplot, and the same told in words.

    Chart(draw, text, title)      # in a notebook the picture; elsewhere, and for a check, the text

A screen reader speaks the text in place of the picture. JupyterLab gives a bare picture no such
text, so it goes out as Markdown, which needs no kernel to be seen again; and as a bare picture for
whatever shows no Markdown.
"""

import io
import warnings
from base64 import b64encode
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

from .phrases import cell

_STYLE: Final[Any] = {"font.family": ["DejaVu Sans"], "text.parse_math": False}  # comes with it


class Chart:
    """A picture and its text form; `figure` is matplotlib's own, to go on with."""

    def __init__(self, draw: Callable[[], Figure], text: str, title: str) -> None:
        self._draw = draw
        self._text = text
        self.title = title

    def text(self) -> str:
        """What the picture shows, in words."""
        return self._text

    @cached_property
    def figure(self) -> Figure:
        """The matplotlib figure, drawn when first asked for."""
        with mpl.rc_context(_STYLE):
            return self._draw()

    @cached_property
    def png(self) -> bytes:
        """The picture, 100 dots per inch; equal bytes for one release of matplotlib."""
        full, small = io.BytesIO(), io.BytesIO()
        with mpl.rc_context(_STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph")  # a sign that the font lacks is a box
            self.figure.savefig(full, format="png", dpi=100, pil_kwargs={"compress_level": 0})
        true, rare = Image.open(full).convert("RGB"), Image.Quantize.MAXCOVERAGE  # a mark is rare
        true.quantize(128, rare).save(small, "PNG", optimize=True)
        return small.getvalue()

    @cached_property
    def html(self) -> str:
        """The picture as markup, with its text form in place of it for who cannot see it."""
        words = cell(self._text, keep="\n").replace("\n", "&#10;")  # markup may end at a line's end
        data = f"data:image/png;base64,{b64encode(self.png).decode()}"
        return f'<img style="max-width:100%" alt="{words}" src="{data}">'

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        picture = b64encode(self.png).decode()
        return {"text/plain": self._text, "text/markdown": self.html, "image/png": picture}

    def __repr__(self) -> str:
        return f"<{self.title}>"
