"""The trace: an append-only list of what happened, the only thing that views and judges read.

trace.add("page", "shown", text="Hel")
trace.events[0]        # #0 t=0 page shown text='Hel'
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .freeze import plain


@dataclass(frozen=True, slots=True, repr=False)
class Event:
    """One thing that happened: `index` from 0, `time` in virtual seconds, who, what, and details.

    `data` holds (name, value) pairs in the order given; `event["name"]` reads one and raises
    `KeyError` when it is not there, `event.get` takes a default.
    """

    index: int
    time: float
    actor: str
    kind: str
    data: tuple[tuple[str, Any], ...] = ()

    def __getitem__(self, name: str) -> Any:
        return dict(self.data)[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The detail of that name, or `default`."""
        return dict(self.data).get(name, default)

    def __repr__(self) -> str:
        data = ((k, round(v, 3) if isinstance(v, float) else v) for k, v in self.data)
        told = (f"{k}={v!r}" for k, v in data if v not in (None, "", ()))
        return " ".join([f"#{self.index} t={self.time:g} {self.actor} {self.kind}", *told])


@dataclass(frozen=True, slots=True)
class Effect:
    """One side effect that really took place: its number from 0, its time, its name, its event."""

    number: int
    time: float
    name: str
    event: int
    data: tuple[tuple[str, Any], ...] = ()


class Trace:
    """Collects events; `seal` ends it, and whatever comes later does not count.

    `spend` is asked before each event; an answer of False says that it does not count any more.
    `after`, where it is set, is told the index of each event that counted, and may raise.
    """

    def __init__(self, time: Callable[[], float], spend: Callable[[], object]) -> None:
        self.events: list[Event] = []
        self._time = time
        self._spend = spend
        self.after: Callable[[int], object] | None = None

    def add(self, actor: str, kind: str, /, **data: Any) -> int:
        """Append one event and return its index; after `seal` nothing is added."""
        index = len(self.events)
        if self._spend() is False:
            return index - 1
        details = tuple([(name, plain(name, value)) for name, value in data.items()])
        self.events.append(Event(index, self._time(), actor, kind, details))
        if self.after is not None:
            self.after(index)
        return index

    def seal(self) -> None:
        """End the trace."""
        self._spend = lambda: False


def ledger(events: Iterable[Event]) -> tuple[Effect, ...]:
    """The side effects among `events`: fake services note them at the moment they become real."""
    real = [event for event in events if event.actor == "ledger"]
    return tuple(Effect(n, e.time, e["name"], e.index, e.data[1:]) for n, e in enumerate(real))


def digest(events: Iterable[Event]) -> str:
    """A hash of the events, the same in any process of one Python minor and lock (64 digits)."""
    told = hashlib.sha256()
    for event in events:
        told.update(repr((event.time, event.actor, event.kind, event.data)).encode())
    return told.hexdigest()
