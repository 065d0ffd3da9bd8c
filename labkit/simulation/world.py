"""What one run consists of while it runs: clock, trace, chance and faults.

A scenario's factory and client get an `Observer`, which is all they may know of it.
"""

from collections.abc import Callable
from random import Random
from time import monotonic
from typing import Any, Final

from .faults import Fault
from .trace import Trace

EPOCH: Final = 1_772_452_800.0  # the wall clock at virtual time 0: 2026-03-02T12:00:00Z


class World:
    """The parts of one run; `time` gives virtual seconds, `struck` the faults that struck."""

    def __init__(
        self,
        *,
        time: Callable[[], float],
        spend: Callable[[], object],
        faults: tuple[Fault, ...] = (),
        seed: int = 0,
    ) -> None:
        self.time = time
        self.trace = Trace(time, spend)
        self.random = Random(seed)
        self.faults = faults
        self.struck: list[Fault] = []

    def strike(self, fault: Fault, /, **data: Any) -> None:
        """Note that `fault` struck now."""
        self.struck.append(fault)
        self.trace.add("lab", "fault", fault=fault.kind, point=fault.point, **data)


class Observer:
    """Tells the trace what one actor does: `observe("shown", text="Hel")`.

    `random` is the run's source of chance, seeded. `faults` are those of the run: a provider looks
    for the ones that strike at its steps, and says so with `strike(fault)`.
    """

    def __init__(self, world: World, actor: str) -> None:
        self._world = world
        self._actor = actor
        self.random = world.random
        self.faults = world.faults
        self.strike = world.strike

    def __call__(self, kind: str, /, **data: Any) -> int:
        """Add one event and return its index."""
        return self._world.trace.add(self._actor, kind, **data)

    def of(self, actor: str) -> "Observer":
        """The same for another actor."""
        return Observer(self._world, actor)

    def effect(self, name: str, /, **data: Any) -> None:
        """Enter a side effect into the ledger at the moment it becomes real."""
        self._world.trace.add("ledger", "effect", name=name, **data)

    def now(self) -> float:
        """The wall clock of the run, in seconds since the epoch; it moves with virtual time."""
        return EPOCH + self._world.time()


def unheard(actor: str) -> Observer:
    """An observer for an actor outside a simulation: in real time, and nothing is kept."""
    return Observer(World(time=monotonic, spend=lambda: False), actor)
