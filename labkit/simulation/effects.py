"""The ledger of side effects that really took place: the referee, outside the code under study."""

from dataclasses import dataclass
from typing import Any

from .trace import Event, Trace


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect: its number from 0, its time in virtual seconds, its name, and its event."""

    number: int
    time: float
    name: str
    event: int
    data: tuple[tuple[str, Any], ...] = ()


class Ledger:
    """Fake services write here at the moment an effect becomes real."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.effects: list[Effect] = []

    def record(self, name: str, **data: Any) -> None:
        """Enter one effect, and its event with it."""
        before = len(self._trace.events)
        index = self._trace.add("ledger", "effect", name=name, **data)
        if len(self._trace.events) == before:
            return  # the run is over: what comes later does not count
        event: Event = self._trace.events[index]
        self.effects.append(Effect(len(self.effects), event.time, name, index, event.data[1:]))
