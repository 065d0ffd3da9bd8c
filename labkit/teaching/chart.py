"""What every chart here has in common: a figure without pyplot, and the same told in words.

    Chart(draw, text)        # in a notebook the picture; elsewhere, and for a check, the text

Colours are told apart by colour-blind eyes (Okabe and Ito), and none is the only sign of anything.
"""

import base64
import io
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image

from .phrases import printable

FONT: Final = "DejaVu Sans"  # comes with matplotlib, so a picture is the same everywhere
BLUE, ORANGE, GREEN, RED, SKY, YELLOW, PINK, GREY = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00"),
    *("#56B4E9", "#F0E442", "#CC79A7", "#DDDDDD"),
)
INK: Final = "#222222"

_STYLE: Any = {"font.family": [FONT], "font.size": 10, "text.color": INK, "hatch.linewidth": 0.8}


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
        with mpl.rc_context(_STYLE):
            canvas: Any = FigureCanvasAgg(self.figure)
            self.figure.set_dpi(100)
            canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        out = io.BytesIO()
        picture.quantize(128, method=Image.Quantize.MEDIANCUT).save(out, "PNG", optimize=True)
        return out.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        picture = base64.b64encode(self.png).decode("ascii")
        return {"text/plain": self.text, "image/png": picture}

    def __repr__(self) -> str:
        return f"<{self.title}>"


def drawable(text: str, most: int = 46) -> str:
    """`text` for a label: cut, without effect, and with a box for what the font cannot draw."""
    told = printable(text if len(text) <= most else text[: most - 1] + "…")
    told = told.translate(dict.fromkeys(map(ord, "\u200c\u200d\ufe0f")))  # parts of one sign
    return "".join(c if ord(c) in _glyphs() else "□" for c in told)


@lru_cache(maxsize=1)
def _glyphs() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FONT))).get_charmap())
