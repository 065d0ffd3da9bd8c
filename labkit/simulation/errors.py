"""What can go wrong with a simulation itself, as opposed to the code under study.

Each error says what to do next. `Halt` is the odd one out: a signal that ends a run at once, from
wherever it is, and which code under study cannot catch by accident.
"""


class SimulationError(Exception):
    """Base of this room's errors."""


class Deadlock(SimulationError):
    """Nothing is ready and no timer is set: look at the tasks and lines that the message names."""


class Livelock(SimulationError):
    """The run spins without end: give the loop that the message names a wait or a limit."""


class Refused(SimulationError):
    """The run asked for the outside world (socket, thread, process, real sleep): use a fake."""


class NotDeterministic(SimulationError):
    """The same inputs gave another trace: look for a clock, a set order or a global random."""


class Unknown(SimulationError, LookupError):
    """There is nothing of that name: choose one of those that the message lists."""

    def __init__(self, what: str, name: object, known: object) -> None:
        listed = ", ".join(map(str, known)) if known else "none"  # type: ignore[call-overload]
        super().__init__(f"there is no {what} {name!r}; there is: {listed}")

    def __str__(self) -> str:
        return str(self.args[0])


class Halt(BaseException):
    """Ends a run from inside; `error` becomes the run's error, None means an interrupt."""

    def __init__(self, error: Exception | None) -> None:
        super().__init__(error)
        self.error = error
