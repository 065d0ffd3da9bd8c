"""How values are put for a reader: times, quoted text, faults and points, in any view.

seconds(5.70001)    # '5.7 s'
"""

import unicodedata
from typing import Final

from labkit.simulation import Fault, Point, Run

MOST: Final = 2_000  # characters of one text in a view
_JOINERS: Final = "\u200c\u200d"  # they hold an emoji or a syllable together


def seconds(time: float) -> str:
    """A virtual time: `5.7 s`."""
    return f"{round(time, 2):.15g} s"


def span(start: float, end: float) -> str:
    """Two virtual times: `0.7 to 5.7 s`."""
    return f"{seconds(start)[:-2]} to {seconds(end)}"


def printable(text: str, *, keep: str = "") -> str:
    """`text` as it reads, with whatever would act on a screen escaped, but for those in `keep`.

    Control characters, marks that turn the direction and lone surrogates become escapes.
    """
    return "".join(c if _reads(c) or c in keep else _escaped(c) for c in text)


def quoted(text: str, most: int = MOST) -> str:
    """`text` on one line in quotes; a very long one is cut, and its length given."""
    told = printable(text[:most])
    return f"'{told}'" if len(text) <= most else f"'{told}…' ({len(text):,} characters)"


def fault_words(fault: Fault) -> str:
    """A fault: what, whom and where."""
    if fault.kind == "cancel":
        return f"cancel of task {fault.task} at point {fault.point}, {fault.phase}"
    return f"{fault.kind} at step {fault.point} of the script"


def point_words(point: Point, kind: str, run: Run) -> str:
    """Where a fault of `kind` strikes: task and function, time and last event of fault-free `run`.

    For a disconnect or a stall: the step of the script that it comes instead of.
    """
    after = ""
    if point.event >= 0:
        event = run.trace[point.event]
        after = f", after event {event.index}: {event.actor} {event.kind}"
        if event.get("text"):
            after += f" {quoted(event['text'], 20)}"
    if kind == "cancel":
        where = f"task {point.task} waits in {point.function}"
    else:
        where = f"in place of {point.task} {point.function}"
    return f"{where}, {seconds(point.time)}{after}"


def _reads(character: str) -> bool:
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
