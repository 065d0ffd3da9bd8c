"""What can go wrong with a simulation itself, as opposed to the code under study.

Each error says what to do next. `Halt` is the odd one out: a signal that ends a run at once, from
wherever it is, and which code under study cannot catch by accident.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MANY: Final = 15  # names, too many for one message
SHOWN: Final = 8  # of so many
ALL: Final = {"scenario": "labkit.names()"}  # the call that lists them


class SimulationError(Exception):
    """Base of this room's errors; in a notebook each is one line, since its message is enough."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class Deadlock(SimulationError):
    """Nothing is ready and no timer is set: look at the tasks and lines that the message names."""


class Livelock(SimulationError):
    """The run spins without end: give the loop that the message names a wait or a limit."""


class Refused(SimulationError):
    """The run asked for the outside world (socket, thread, process, real sleep): use a fake."""


class NotDeterministic(SimulationError):
    """The same inputs gave another trace: look for a clock, a set order or a global random."""


class Crashed(SimulationError):
    """A crash fault ended the run: what it left is told by the last events of the trace."""


class Unknown(SimulationError, LookupError):
    """There is nothing of that name, or `several` things: choose one that the message lists.

    Of many, the nearest come first, and the last are only counted.
    """

    def __init__(
        self, what: str, name: object, known: Iterable[object], *, several: bool = False
    ) -> None:
        names = [str(each) for each in known]
        if len(names) >= MANY:
            near = get_close_matches(str(name), names, n=SHOWN, cutoff=0.5)
            names = [*near, *(each for each in names if each not in near)]
            where = f": {ALL[what]}" if what in ALL else ""
            names[SHOWN:] = [f"and {len(names) - SHOWN} more{where}"]
        listed = ", ".join(names) or "none"
        found = (
            f"{what} {name!r} fits several" if several else f"there is no {what} {name!r}; there is"
        )
        super().__init__(f"{found}: {listed}")

    def __str__(self) -> str:
        return str(self.args[0])


class Halt(BaseException):
    """Ends a run from inside; `error` becomes the run's error, None means an interrupt."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(error)
        self.error = error
