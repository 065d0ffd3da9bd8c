"""Plays the inputs of a run once, and may record places or points while it does.

The order of things: the client runs in virtual time; what it left behind is noted; the trace is
sealed; then tasks and generators that are still open are closed, and nothing that they do counts.
A crash ends it in the middle: what the stores hold at that moment is noted, and all the rest does
not count.
"""

import asyncio
import random as global_random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from inspect import Parameter, signature
from types import FrameType
from typing import Any, Final

from .breakpoints import breakpoints, statements
from .errors import Crashed, Halt, SimulationError, Unknown
from .faults import Fault, FaultyLoop
from .freeze import Freezer
from .loop import VirtualLoop
from .mask import scrub
from .outside import guarded, refuse_inside
from .places import Place, files_of
from .processes import killed
from .recorder import OnLine, recording
from .scenario import Scenario
from .striking import Striking
from .thread import in_thread
from .where import where
from .world import Observer, World

CLIENT: Final = "client"  # the task that runs the scenario's client
BOUNDS: Final = ("limit", "total")  # of a loop's turns

_sdk: Final = threading.Lock()
_TURN: Final = 5.0  # seconds to wait for it


def refuse_unknown(bounds: Mapping[str, Any], call: Callable[..., Any]) -> None:
    """Refuse a keyword of `call` that is none of its own and no bound."""
    asked = signature(call).parameters.values()
    own = [each.name for each in asked if each.kind is Parameter.KEYWORD_ONLY]
    for name in bounds:
        if name not in BOUNDS:
            raise Unknown("keyword", name, (*own, *BOUNDS))


class Inputs:
    """The four that a run is a function of, and the `bounds` of its loop that keep it finite."""

    def __init__(
        self,
        scenario: Scenario,
        policy: Any,
        faults: Fault | Iterable[Fault],
        seed: int,
        bounds: Mapping[str, int],
    ) -> None:
        if not isinstance(scenario, Scenario):
            raise SimulationError(f"a scenario is needed, not {scenario!r}")
        self.scenario = scenario
        self.policy = scenario.policy if policy is None else policy
        if not isinstance(faults, Iterable):
            faults = (faults,)
        self.faults = tuple(faults)
        self.seed = seed
        self.bounds = bounds
        usual = type(scenario.policy)
        if scenario.policy is not None and not isinstance(self.policy, usual):
            told = f"here a policy comes from {usual.__name__}(...)"
            raise SimulationError(f"{told}, not from {type(policy).__name__}")
        if type(seed) is not int:
            raise SimulationError(f"a seed is a whole number, not {seed!r}")
        for fault in self.faults:
            if not isinstance(fault, Fault):
                raise SimulationError(f"a fault is needed, like Fault('cancel', 3), not {fault!r}")


class Playing:
    """One playing: `play` it once, then read `result` or `error`, the `world`, and what it noted.

    It is refused inside another. `places` are noted where it is to `record`; where it is to `look`,
    `striking` tells the points where faults may strike.
    """

    def __init__(self, inputs: Inputs, *, record: bool = False, look: bool = False) -> None:
        refuse_inside()
        self.result: Any = None
        self.error: BaseException | None = None
        self.places: list[Place] = []
        self._inputs = inputs
        self._record, self._look = record, look
        self._loop = loop = self._make_loop()
        self.world = World(time=loop.time, spend=loop.spend, faults=inputs.faults, seed=inputs.seed)
        self.striking = Striking(self.world, self._crash, self._files if look else None)
        self._crashed: tuple[Crashed, int] | None = None  # and the number of places by then
        self._services: Any = None

    def play(self) -> "Playing":
        """Play to the end in a thread of its own."""
        in_thread(self.play_here, self.interrupt)
        return self

    def interrupt(self) -> None:
        """End it at the loop's next turn, by a `KeyboardInterrupt` out of it; from any thread."""
        self._loop.halt = Halt(None)

    def play_here(self) -> None:
        """Play to the end in this thread."""
        with guarded(lambda what: self._note("refused", what=what)), _seeded(self._inputs):
            try:
                with self._recorder():
                    end = self._drive()
                if self._crashed is None:
                    self.striking.over = len(self.world.trace.events)
                    self._note_end(end)
                else:
                    self.result, (self.error, noted) = None, self._crashed
                    del self.places[noted:]
            finally:
                self.world.trace.seal()
                self._loop.close()

    def _drive(self) -> dict[str, str]:
        """Run the client and say how it ended, as the event will."""
        loop, work = self._loop, self.striking.within_deadline(self._client())
        try:
            self.result = loop.run_until_complete(loop.create_task(work, name=CLIENT))
            return {"outcome": "result"}
        except Halt as halt:
            if halt.error is None:
                raise KeyboardInterrupt from None
            self.error = halt.error
            loop.pardon()
            return {"outcome": "error", "error": type(halt.error).__name__}
        except asyncio.CancelledError as error:
            self.error = error
            return {"outcome": "cancelled"}
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.error = error
            if self.striking.expired:
                return {"outcome": "timed out"}
            return {"outcome": "error", **_facts(error)}

    async def _client(self) -> Any:
        scenario = self._inputs.scenario
        provider = scenario.make(scenario.script, Observer(self.world, "provider"))
        self._services = provider
        work = scenario.client(provider, self._inputs.policy, Observer(self.world, CLIENT))
        if not hasattr(work, "__await__"):
            raise SimulationError(
                "a client is an async function that returns: `async def`, no yield"
            )
        try:
            return await work
        finally:
            if end := getattr(provider, "end", None):
                await end()

    def _note_end(self, end: dict[str, str]) -> None:
        loop = self._loop
        left = loop.left_over()
        if all(task.get_name() != CLIENT for task in left):  # else a halt left them all
            for task in left:
                self._note("left_over", task=task.get_name(), function=where(task)[2])
        for task in [task for task in loop.tasks.unseen() if not killed(task)]:
            self._note("unhandled", task=task.get_name(), **_facts(task.exception()))
        for error in loop.unhandled:
            self._note("unhandled", **_facts(error))
        self._note_left()
        self._note("end", task=CLIENT, **end)

    def _note_left(self) -> None:
        if tell := getattr(self._services, "left", None):
            self._note("left", **{name: _told(value) for name, value in tell().items()})

    # What happens in between

    def _make_loop(self) -> VirtualLoop:
        inputs = self._inputs
        options: dict[str, Any] = dict(inputs.bounds)
        if inputs.scenario.sdk:
            options["inline_executor"] = lambda name: self._note("executor", function=name)
        if not self._look and not inputs.faults:
            return VirtualLoop(**options)
        return FaultyLoop(lambda *at: self.striking.passes(*at), **options)

    def _note(self, kind: str, /, **data: Any) -> None:
        self.world.trace.add("lab", kind, **data)

    def _crash(self, index: int) -> None:
        """End it after event `index`; what comes later does not count."""
        self._note_left()
        self._note("end", task=CLIENT, outcome="crashed")
        error = Crashed(f"after event {index}, and nothing later counts")
        self._crashed = (error, len(self.places))
        self._loop.halt = Halt(error)
        raise self._loop.halt  # the code there may catch it; the loop's next turn is final

    @cached_property
    def _files(self) -> frozenset[str]:
        scenario = self._inputs.scenario
        return files_of(*scenario.source, scenario.client)

    def _recorder(self) -> AbstractContextManager[None]:
        if not self._record:
            return nullcontext()
        files = {file: statements(file) for file in sorted(self._files)}
        return recording(files, self._noting())

    def _noting(self) -> OnLine:
        """What makes a place of each line; the one function here that runs thousands of times."""
        loop, places, events = self._loop, self.places, self.world.trace.events
        named = {(mark.file, mark.line): mark.name for mark in breakpoints(self._files)}
        freeze, clock, add, new = Freezer().locals, loop.time, places.append, tuple.__new__

        def note(frame: FrameType, number: int, caller: int, line: int) -> None:
            task = asyncio.current_task(loop)
            name = task.get_name() if task else ""
            file, function = frame.f_code.co_filename, frame.f_code.co_name
            place = (
                len(places), file, line, function, name, number, clock(), len(events) - 1,
                *freeze(frame), caller, named.get((file, line), ""),
            )  # fmt: skip
            add(new(Place, place))

        return note


def _told(value: Any) -> Any:
    """Plain data as the trace holds it: a dict as pairs, a list as a tuple."""
    if isinstance(value, dict):
        return tuple((name, _told(inner)) for name, inner in value.items())
    return tuple(map(_told, value)) if isinstance(value, list | tuple) else value


def _facts(error: BaseException | str | None) -> dict[str, str]:
    kind = "" if isinstance(error, str) else type(error).__name__
    return {"error": kind, "message": scrub(str(error))}


@contextmanager
def _seeded(inputs: Inputs) -> Iterator[None]:
    """Seeds the global `random` where an unmodified SDK draws from it, and puts it back.

    One such run at a time: the threads of a process share that `random`.
    """
    if not inputs.scenario.sdk:
        yield
        return
    if not _sdk.acquire(timeout=_TURN):
        raise SimulationError("another SDK simulation is running in this process: let it end first")
    state = global_random.getstate()
    global_random.seed(inputs.seed)
    try:
        yield
    finally:
        global_random.setstate(state)
        _sdk.release()
