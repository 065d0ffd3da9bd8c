"""What every chart here has in common: a figure without pyplot, and the same told in words.

    Chart(draw, text, title)      # in a notebook the picture; elsewhere, and for a check, the text

Colours are told apart by colour-blind eyes (Okabe and Ito), and none is the only sign of anything.
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

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, YELLOW, PINK, GREY, INK = "#56B4E9", "#F0E442", "#CC79A7", "#DDDDDD", "#222222"

_STYLE: Final[Any] = {"font.family": ["DejaVu Sans"], "text.parse_math": False}  # comes with it


class Chart:
    """A picture and its text form; `figure` is matplotlib's own, to go on with."""

    def __init__(self, draw: Callable[[], Figure], text: str, title: str) -> None:
        self._draw = draw
        self.text = text
        self.title = title

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
            self.figure.savefig(full, format="png", dpi=100)
        Image.open(full).convert("RGB").quantize(128).save(small, "PNG", optimize=True)
        return small.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text, "image/png": b64encode(self.png).decode()}

    def __repr__(self) -> str:
        return f"<{self.title}>"
