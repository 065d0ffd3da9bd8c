"""The rows of the bench, and how they are printed.

Every figure stands beside a peer or a limit that was measured or set in the same run; nothing here
fails a test, since a busy machine is no defect.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

REPEATS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure: `value` in `unit`; a `peer` measured beside it; and a `limit`.

    `least` and `most` are limits of the value, `ratio` is a limit of value divided by peer:
    at least so much, or at most where `ratio` is negative.
    """

    what: str
    value: float
    unit: str
    peer: str = ""
    beside: float = 0.0
    least: float = 0.0
    most: float = 0.0
    ratio: float = 0.0

    @property
    def quotient(self) -> float:
        """Value divided by peer, 0 where there is no peer."""
        return self.value / self.beside if self.beside else 0.0

    @property
    def kept(self) -> bool:
        """Whether every limit is kept."""
        short = self.value < self.least or (self.most and self.value > self.most)
        if self.ratio > 0:
            return not short and self.quotient >= self.ratio
        return not short and (not self.ratio or self.quotient <= -self.ratio)

    @property
    def limits(self) -> str:
        """The limits in words."""
        told = []
        if self.least:
            told.append(f"at least {figure(self.least)}")
        if self.most:
            told.append(f"at most {figure(self.most)}")
        if self.ratio:
            told.append(f"{'at least' if self.ratio > 0 else 'at most'} {abs(self.ratio):g} times")
        return ", ".join(told)


Measure = Callable[[], Iterator[Row]]
HEAD: Final = ("what", "figure", "unit", "beside", "figure", "ratio", "limit", "")


def figure(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def cells(row: Row) -> Sequence[str]:
    """The row as text."""
    beside = (row.peer, figure(row.beside), f"{row.quotient:.2f}") if row.peer else ("", "", "")
    kept = ("ok" if row.kept else "MISSED") if row.limits else ""
    return (row.what, figure(row.value), row.unit, *beside, row.limits, kept)


def show(rows: Iterator[Row]) -> None:
    """Print the table, each row as soon as it is there."""
    widths = (50, 9, 7, 30, 9, 7, 30, 6)
    for line in (HEAD, *map(cells, rows)):
        text = [
            cell.rjust(width) if number in (1, 4, 5) else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(text).rstrip(), flush=True)


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of so many calls: what others do at the time only adds."""
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
