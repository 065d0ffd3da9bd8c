"""How values are put for a reader: times and text from elsewhere, in any view.

Text from a script, a model or a learner goes through `printable`, and into markup through `cell`.

seconds(5.70001)    # '5.7 s'
"""

import unicodedata
from html import escape
from typing import Final

MOST: Final = 2_000  # characters of one text in a view
_ACTING: Final = ("Cc", "Cf", "Cs", "Zl", "Zp")  # controls, direction marks, halves, line ends
_JOINERS: Final = "\u200c\u200d"  # they hold an emoji or a syllable together


def seconds(time: float) -> str:
    """A virtual time: `5.7 s`."""
    return f"{round(time, 2):.15g} s"


def span(start: float, end: float) -> str:
    """Two virtual times, `0.7 to 5.7 s`, or one where they are equal."""
    return seconds(end) if start == end else f"{seconds(start)[:-2]} to {seconds(end)}"


def printable(text: str, *, keep: str = "") -> str:
    """`text` as it reads; what would act on a screen becomes an escape, but for those in `keep`."""
    return "".join(_escaped(c) if _acts(c) and c not in keep else c for c in text)


def cell(text: str, *, keep: str = "") -> str:
    """`text` as markup that shows exactly it, also inside an attribute's double quotes."""
    return escape(printable(text, keep=keep))


def cut(text: str, most: int) -> str:
    """`text`, or so many characters of it."""
    return text if len(text) <= most else text[: most - 1] + "…"


def quoted(text: str, most: int = MOST) -> str:
    """`text` on one line in quotes; a very long one is cut, and its length given."""
    told = printable(text[:most])
    return f"'{told}'" if len(text) <= most else f"'{told}…' ({len(text):,} characters)"


def _acts(character: str) -> bool:
    return unicodedata.category(character) in _ACTING and character not in _JOINERS


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
