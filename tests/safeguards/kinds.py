"""What a list of safeguards is made of.

SAFEGUARDS = (
    Safeguard(
        name="equal deadlines keep their order",
        file="labkit/simulation/loop.py",
        old="heapq.heappush(self._timers, (when, self._serial, handle))",
        new="heapq.heappush(self._timers, (when, -self._serial, handle))",
        red=("tests/simulation/test_loop.py::test_equal_deadlines_fire_in_the_order_they_were_set",),
    ),
)
"""

from collections.abc import Iterable
from dataclasses import dataclass

Row = tuple[str, str, str, str, str | tuple[str, ...]]  # name, file, old, new, one test or several


@dataclass(frozen=True, slots=True, kw_only=True)
class Safeguard:
    """One thing that keeps learners safe, the change that breaks it, and what must notice.

    `old` must stand exactly once in `file` (a path from the root of the tree), and is replaced by
    `new`; both may span lines. `red` holds pytest node ids, or paths of notebooks: each must be
    green before the change and red after it.
    """

    name: str
    file: str
    old: str
    new: str
    red: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.red or self.old == self.new:
            raise ValueError(f"safeguard {self.name!r} changes nothing, or names no test")


def of_rows(rows: Iterable[Row], *, under: str = "") -> tuple[Safeguard, ...]:
    """The rows of a table as safeguards; their files and tests are told from the root of the tree.

    With `under` the files are told from there.
    """
    return tuple(
        Safeguard(
            name=name,
            file=under + file,
            old=old,
            new=new,
            red=(red,) if isinstance(red, str) else red,
        )
        for name, file, old, new, red in rows
    )
