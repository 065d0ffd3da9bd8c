"""`Run`: the record of one simulation, and what follows from it.

run = simulate(scenario, seed=1)
run.result, run.trace, run.findings, run.to("retry guard")
"""

import threading
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cached_property
from io import StringIO
from itertools import zip_longest
from typing import Any, Final

from .breakpoints import short
from .errors import NotDeterministic, Unknown
from .faults import Fault
from .judge import Finding, judged
from .mask import scrub
from .page import Segment, segments
from .places import Place, Target, View, find
from .playing import Inputs, Playing
from .trace import Effect, Event, digest, ledger

_COLUMNS: Final = "index time task file function breakpoint event".split()
_one_recording: Final = threading.Lock()


class Run:
    """What one simulation did: `result` or `error`, `trace`, and what follows from them.

    Places are recorded when they are first asked for, by running the same simulation again.
    `tasks` names those that a cancel could strike, in a run with faults.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.scenario = inputs.scenario
        self.policy = inputs.policy
        self.faults = inputs.faults
        self.seed = inputs.seed
        played = Playing(inputs).play()
        self.result = played.result
        self.error = played.error
        self.trace = tuple(played.world.trace.events)
        self.struck = tuple(played.world.struck)
        self.tasks = tuple(played.striking.tasks)
        self._inputs = inputs
        self._places: tuple[Place, ...] | None = None

    @cached_property
    def hash(self) -> str:
        """The trace's digest: equal for equal inputs, in any process of one Python minor."""
        return digest(self.trace)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The trace as flat records, for a table."""
        return [
            {"index": e.index, "time": e.time, "actor": e.actor, "kind": e.kind, **dict(e.data)}
            for e in self.trace
        ]

    @property
    def ledger(self) -> tuple[Effect, ...]:
        """The side effects that really took place."""
        return ledger(self.trace)

    @property
    def effects(self) -> list[dict[str, Any]]:
        """The same as flat records."""
        return [
            {"time": e.time, "name": e.name, "event": e.event, **dict(e.data)} for e in self.ledger
        ]

    @property
    def places(self) -> list[dict[str, Any]]:
        """The recorded places as flat records, without their locals."""
        return [
            {name: getattr(place, name) for name in _COLUMNS} | {"file": short(place.file)}
            for place in self.recorded
        ]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What the user had seen at the end."""
        return segments(self.trace)

    @property
    def text(self) -> str:
        """The text of the last segment."""
        return self.segments[-1].text

    @property
    def time(self) -> float:
        """How long it took, in virtual seconds."""
        return self.trace[-1].time if self.trace else 0.0

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the scenario's judges say, in the order of the events."""
        return judged(self.scenario.judges, self.trace)

    @property
    def missed(self) -> tuple[Fault, ...]:
        """The faults that did not strike: their point was never reached."""
        return tuple(fault for fault in self.faults if fault not in self.struck)

    @property
    def recorded(self) -> tuple[Place, ...]:
        """The places, with their locals; records them when first asked for.

        Raises `NotDeterministic`, with the first event that differs, where the same inputs gave
        another trace. What the client prints is kept off the page: it was seen the first time. One
        recording at a time, since all threads share `sys.stdout`.
        """
        if self._places is None:  # no cached_property: on 3.11 it holds a lock meanwhile
            again = Playing(self._inputs, record=True)
            with _one_recording, redirect_stdout(StringIO()):
                again.play()
            trace = tuple(again.world.trace.events)
            if trace != self.trace and digest(trace) != self.hash:
                raise NotDeterministic(_difference(self.trace, trace))
            self._places = tuple(again.places)
        return self._places

    def at(self, index: int) -> View:
        """The view of place `index`; negative numbers count from the end."""
        count = len(self.recorded)
        if not isinstance(index, int) or not -count <= index < count:
            raise Unknown("place", index, [f"0 to {count - 1}"] if count else [])
        return View(self, self.recorded[index])

    def first(self) -> View:
        """The first place."""
        return self.at(0)

    def last(self) -> View:
        """The last place."""
        return self.at(-1)

    def to(self, target: Target) -> View:
        """The first place at a breakpoint's name, a line, or a condition on the locals."""
        return View(self, find(self.recorded, target))

    def __repr__(self) -> str:
        if self.error is None:
            outcome = f"result {scrub(repr(self.result))}" if self.result is not None else "done"
        else:
            outcome = scrub(f"{type(self.error).__name__}: {self.error}")
        told = [f"t={self.time:g} s", f"{len(self.trace)} events"]
        told += [f"finding {finding.name}" for finding in self.findings]
        told += [f"fault {fault.kind} at {fault.point} did not strike" for fault in self.missed]
        return f"<run {self.scenario.name}: {outcome}; {', '.join(told)}>"


def _difference(before: Sequence[Event], again: Sequence[Event]) -> str:
    """Names the first event that is not the same."""
    pairs = zip_longest(map(repr, before), map(repr, again), fillvalue="nothing")
    was, now = next(pair for pair in pairs if pair[0] != pair[1])
    cure = "look for a clock, a set's order or the global random"
    return f"recording ran it again and got {now}, where before it was {was}: {cure}"
