"""Plays the inputs of a run once, and may record places or points while it does.

The order of things: the client runs in virtual time; what it left behind is noted; the trace is
sealed; then tasks and generators that are still open are closed, and nothing that they do counts.
"""

import asyncio
import random as global_random
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from types import FrameType
from typing import Any, Final

from .breakpoints import by_line, statements
from .errors import Halt, SimulationError
from .faults import Fault, FaultyLoop, Point, located
from .freeze import Freezer
from .guard import guarded
from .loop import VirtualLoop
from .mask import scrub
from .places import Place, files_of
from .recorder import OnLine, recording
from .run import Inputs, Outcome
from .thread import in_thread
from .where import where
from .world import World

CLIENT: Final = "client"  # the task that runs the scenario's client

_sdk: Final = threading.Lock()
_TURN: Final = 5.0  # seconds to wait for it


class Playing:
    """One playing: `places` and `points` are filled where they are given."""

    def __init__(
        self,
        inputs: Inputs,
        *,
        places: list[Place] | None = None,
        points: list[Point] | None = None,
    ) -> None:
        self._inputs = inputs
        self._places = places
        self._points = points
        self._result: Any = None
        self._error: BaseException | None = None
        self._halt: Halt | None = None
        self._loop: VirtualLoop | None = None

    def outcome(self) -> Outcome:
        """Play to the end in a thread; an interrupt ends it at the loop's next turn."""
        world = in_thread(self._play, self._interrupt)
        return Outcome(
            self._result,
            self._error,
            tuple(world.trace.events),
            tuple(world.ledger.effects),
            tuple(world.struck),
            tuple(self._places or ()),
        )

    def _interrupt(self) -> None:
        self._halt = Halt(None)
        if self._loop is not None:
            self._loop.halt = self._halt

    def _play(self) -> World:
        self._loop = loop = self._make_loop()
        loop.halt = self._halt
        inputs = self._inputs
        world = World(time=loop.time, spend=loop.spend, faults=inputs.faults, seed=inputs.seed)
        self._world = world
        with guarded(lambda what: self._note("refused", what=what)), _seeded(inputs):
            try:
                with self._recorder(world, loop):
                    end = self._drive(world, loop)
                self._note_end(loop, end)
            finally:
                world.trace.seal()
                loop.close()
        return world

    def _drive(self, world: World, loop: VirtualLoop) -> dict[str, str]:
        """Run the client and say how it ended, as the event will."""
        try:
            self._result = loop.run_until_complete(
                loop.create_task(self._client(world), name=CLIENT)
            )
            return {"outcome": "result"}
        except Halt as halt:
            if halt.error is None:
                raise KeyboardInterrupt from None
            self._error = halt.error
            loop.pardon()
            return {"outcome": "error", "error": type(halt.error).__name__}
        except asyncio.CancelledError as error:
            self._error = error
            return {"outcome": "cancelled"}
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._error = error
            return {"outcome": "error", **_facts(error)}

    async def _client(self, world: World) -> Any:
        scenario = self._inputs.scenario
        provider = scenario.make(scenario.script, world.observer("provider"))
        work = scenario.client(provider, self._inputs.policy, world.observer(CLIENT))
        if not hasattr(work, "__await__"):
            raise SimulationError(
                "a client is an async function that returns: `async def`, no yield"
            )
        return await work

    def _note_end(self, loop: VirtualLoop, end: dict[str, str]) -> None:
        left = loop.tasks.pending()
        if all(task.get_name() != CLIENT for task in left):  # else a halt left them all
            for task in left:
                _, _, function = where(task) or ("", 0, "")
                self._note("left_over", task=task.get_name(), function=function)
        for task in loop.tasks.unseen():
            self._note("unhandled", task=task.get_name(), **_facts(task.exception()))
        for error in loop.unhandled:
            self._note("unhandled", **_facts(error))
        self._note("end", task=CLIENT, **end)

    # What happens in between

    def _make_loop(self) -> VirtualLoop:
        inputs = self._inputs
        options: dict[str, Any] = {"limit": inputs.limit, "total": inputs.total}
        if inputs.scenario.sdk:
            options["inline_executor"] = lambda name: self._note("executor", function=name)
        if self._points is None and not inputs.faults:
            return VirtualLoop(**options)
        return FaultyLoop(inputs.faults, self._strike, self._suspended, **options)

    def _note(self, kind: str, **data: Any) -> None:
        self._world.trace.add("lab", kind, **data)

    def _strike(self, fault: Fault, task: asyncio.Task[Any]) -> None:
        self._world.strike(fault, task=task.get_name(), phase=fault.phase)

    def _suspended(self, task: asyncio.Task[Any], number: int) -> None:
        if self._points is not None:
            world = self._world
            last = len(world.trace.events) - 1
            self._points.append(located(task, number, world.time(), last, self._files))

    @cached_property
    def _files(self) -> frozenset[str]:
        scenario = self._inputs.scenario
        return files_of(*scenario.source, scenario.client)

    def _recorder(self, world: World, loop: VirtualLoop) -> AbstractContextManager[None]:
        if self._places is None:
            return nullcontext()
        files = {file: statements(file) for file in sorted(self._files)}
        return recording(files, _noting(self._places, world, loop, by_line(files)))


def _noting(
    places: list[Place], world: World, loop: VirtualLoop, named: Mapping[tuple[str, int], str]
) -> OnLine:
    """What makes a place of each line; the one function here that runs thousands of times."""
    freeze = Freezer().locals
    events, clock, add, new = world.trace.events, loop.time, places.append, tuple.__new__

    def note(frame: FrameType, number: int, caller: int, line: int) -> None:
        task = asyncio.current_task(loop)
        code = frame.f_code
        file = code.co_filename
        place = (
            len(places),
            file,
            line,
            code.co_name,
            task.get_name() if task else "",
            number,
            clock(),
            len(events) - 1,
            *freeze(frame),
            caller,
            named.get((file, line), ""),
        )
        add(new(Place, place))

    return note


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
