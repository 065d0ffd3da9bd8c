"""A scenario: everything that a run needs, as one frozen record."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import Any

from .errors import SimulationError, Unknown
from .judge import Judge
from .world import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is run, against what, and how it is judged.

    `make(script, observer)` builds the provider or services, whose `await end()`, where they have
    one, ends what they have started, and whose `left()`, where they have one, tells as plain data
    what is kept; `client(provider, policy, observer)` is the code under study; `policy` its
    default. `judges` turn the trace into findings. `refusals` are the names of error classes, or of
    their bases, by which the client says an honest no. `source` names the modules, or
    their files, whose lines can be stepped through; the client's own file always can.
    `breakpoints` are those of interest here, in the order of reading. `sdk` is set where an
    unmodified provider SDK runs, which needs executor calls on the spot and a seeded `random`.
    """

    name: str
    claim: str
    script: Any
    make: Callable[[Any, Observer], Any]
    client: Callable[[Any, Any, Observer], Awaitable[Any]]
    policy: Any = None
    judges: tuple[Judge, ...] = ()
    refusals: tuple[str, ...] = ()
    source: tuple[ModuleType | str, ...] = ()
    breakpoints: tuple[str, ...] = ()
    sdk: bool = False

    def __post_init__(self) -> None:
        if not callable(self.client):
            raise SimulationError(f"a client is an async function, not {self.client!r}")
        if not callable(self.make):
            raise SimulationError(f"make is a function or a class, not {self.make!r}")

    def but(self, **changes: Any) -> "Scenario":
        """A copy with some fields changed: `scenario.but(client=mine)`.

        Raises `SimulationError` for a field that is not there, or a value that cannot be one.
        """
        known = [field.name for field in fields(self)]
        if unknown := [name for name in changes if name not in known]:
            raise Unknown("field", unknown[0], known)
        usual, script = type(self.script), changes.get("script", self.script)
        if self.script is not None and "make" not in changes and not isinstance(script, usual):
            raise SimulationError(f"{self.name} reads a {usual.__name__}, and no {script!r}")
        return replace(self, **changes)

    def __repr__(self) -> str:
        return f"<scenario {self.name}: {self.claim}>"
