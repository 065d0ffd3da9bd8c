"""`simulate` makes a run: a pure function of scenario, policy, faults and seed.

    run = simulate(scenario, seed=1)
"""

import asyncio
import random as global_random
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any, Final

from .breakpoints import by_line, statements
from .errors import Halt
from .faults import STEP_FAULTS, Fault, FaultyLoop, Point, located
from .guard import guarded
from .loop import LIMIT, TOTAL, VirtualLoop
from .freeze import Freezer
from .places import Place, files_of
from .recorder import recording
from .run import Inputs, Outcome, Run
from .scenario import Scenario
from .thread import in_thread
from .where import where
from .world import World

CLIENT: Final = "client"  # the name of the task that runs the scenario's client


def simulate(
    scenario: Scenario,
    *,
    policy: Any = None,
    faults: Iterable[Fault] = (),
    seed: int = 0,
    limit: int = LIMIT,
    total: int = TOTAL,
) -> Run:
    """Run `scenario` in virtual time, in a thread of its own, and return what happened.

    What the client raises becomes `run.error`, as do `Deadlock` and `Livelock` (more than `limit`
    turns and events at one instant, or `total` in all). A `KeyboardInterrupt` ends the run and
    leaves.
    """
    chosen = scenario.policy if policy is None and isinstance(scenario, Scenario) else policy
    inputs = Inputs(scenario, chosen, tuple(faults), seed, limit, total)
    return Run(inputs, _Playing(inputs).outcome(), lambda: _Playing(inputs, places=[]).outcome())


def points(
    scenario: Scenario, kind: str = "cancel", *, policy: Any = None, seed: int = 0
) -> list[Point]:
    """Where a fault of `kind` may strike, from the fault-free run of the same inputs.

    For a cancel: the suspensions of every task. For a disconnect or a stall: the script's steps.
    """
    Fault(kind, 0)
    found: list[Point] = []
    chosen = scenario.policy if policy is None else policy
    outcome = _Playing(Inputs(scenario, chosen, (), seed, LIMIT, TOTAL), points=found).outcome()
    if kind not in STEP_FAULTS:
        return found
    return [
        Point(event["step"], event.actor, "", 0, event.kind, event.time, event.index - 1)
        for event in outcome.trace
        if event.get("step") is not None
    ]


class _Playing:
    """One playing of the inputs, which may record places, and points."""

    def __init__(
        self,
        inputs: Inputs,
        *,
        places: list[Place] | None = None,
        points: list[Point] | None = None,
    ) -> None:
        self.inputs = inputs
        self.places = places
        self.points = points
        self.result: Any = None
        self.error: BaseException | None = None
        self.halt: Halt | None = None
        self.loop: VirtualLoop | None = None

    def outcome(self) -> Outcome:
        """Play to the end in a thread; an interrupt ends it at the loop's next turn."""
        world = in_thread(self._play, self._interrupt)
        return Outcome(
            self.result,
            self.error,
            tuple(world.trace.events),
            tuple(world.ledger.effects),
            tuple(world.struck),
            tuple(self.places or ()),
        )

    def _interrupt(self) -> None:
        self.halt = Halt(None)
        if self.loop is not None:
            self.loop.halt = self.halt

    def _play(self) -> World:
        self.loop = loop = self._make_loop()
        loop.halt = self.halt
        world = self._world = World(
            time=loop.time, spend=loop.spend, faults=self.inputs.faults, seed=self.inputs.seed
        )
        with guarded(), _seeded(self.inputs), self._recorder(world, loop):
            try:
                self._drive(world, loop)
            except Halt as halt:
                if halt.error is None:
                    raise KeyboardInterrupt from None
                self.error, loop.halt = halt.error, None
            world.trace.seal()
            loop.close()
        return world

    def _make_loop(self) -> VirtualLoop:
        options: dict[str, Any] = {"limit": self.inputs.limit, "total": self.inputs.total}
        if self.inputs.scenario.sdk:
            options["inline_executor"] = self._executor
        if self.points is None and not self.inputs.faults:
            return VirtualLoop(**options)
        return FaultyLoop(self.inputs.faults, self._strike, self._suspended, **options)

    def _executor(self, name: str) -> None:
        self._world.trace.add("lab", "executor", function=name)

    def _strike(self, fault: Fault, task: asyncio.Task[Any]) -> None:
        self._world.strike(fault, task=task.get_name(), phase=fault.phase)

    def _suspended(self, task: asyncio.Task[Any], number: int) -> None:
        if self.points is not None:
            world = self._world
            last = len(world.trace.events) - 1
            self.points.append(located(task, number, world.time(), last))

    def _drive(self, world: World, loop: VirtualLoop) -> None:
        main = loop.create_task(self._client(world), name=CLIENT)
        end: dict[str, Any]
        try:
            self.result = loop.run_until_complete(main)
            end = {"outcome": "result"}
        except asyncio.CancelledError as error:
            self.error, end = error, {"outcome": "cancelled"}
        except Exception as error:
            self.error = error
            end = {"outcome": "error", "error": type(error).__name__, "message": str(error)}
        for task in loop.pending():
            _, _, function = where(task) or ("", 0, "")
            world.trace.add("lab", "left_over", task=task.get_name(), function=function)
        world.trace.add("lab", "end", task=CLIENT, **end)

    async def _client(self, world: World) -> Any:
        scenario = self.inputs.scenario
        provider = scenario.make(scenario.script, world.observer("provider"))
        return await scenario.client(provider, self.inputs.policy, world.observer(CLIENT))

    def _recorder(self, world: World, loop: VirtualLoop) -> AbstractContextManager[None]:
        places = self.places
        if places is None:
            return nullcontext()
        scenario = self.inputs.scenario
        files = files_of(*scenario.source, scenario.client)
        names = by_line(sorted(files))
        events = world.trace.events
        freezer = Freezer()

        def on_line(frame: FrameType, serial: int, caller: int, line: int) -> None:
            task = asyncio.current_task(loop)
            code = frame.f_code
            places.append(
                Place(
                    len(places),
                    code.co_filename,
                    line,
                    code.co_name,
                    task.get_name() if task else "",
                    serial,
                    world.time(),
                    len(events) - 1,
                    freezer.locals(frame),
                    caller,
                    names.get((code.co_filename, line), ""),
                )
            )

        return recording({file: statements(file) for file in files}, on_line)


@contextmanager
def _seeded(inputs: Inputs) -> Iterator[None]:
    """Seeds the global `random` where an unmodified SDK draws from it, and puts it back."""
    if not inputs.scenario.sdk:
        yield
        return
    state = global_random.getstate()
    global_random.seed(inputs.seed)
    try:
        yield
    finally:
        global_random.setstate(state)
