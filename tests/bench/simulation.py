"""How fast virtual time is, how many runs a second there are, and how long a step back takes."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiotools
import looptime

from labkit.providers.fake import FakeProvider
from labkit.providers.script import script
from labkit.scenarios.catalogue import find
from labkit.simulation import Observer, Run, explore, simulate
from labkit.simulation.loop import VirtualLoop
from labkit.simulation.world import World

from .table import Measure, Row, best

SLEEPS: Final = 2_000
RUNS: Final = 4  # in one try: short, so that one of many tries is not disturbed
TRIES: Final = 40
WAITS: Final = [[{"wait": 0.1, "say": "word "}] * 20 + [{"finish": "stop"}]]


def sleeps() -> Iterator[Row]:
    """Virtual sleeps, beside two libraries that make a real loop's clock virtual."""
    ours = SLEEPS / best(lambda: _on_a_virtual_loop(_sleeps()))
    what = "virtual sleeps"
    for peer, run, ratio in (("looptime", _looptime, 5.0), ("aiotools", _aiotools, 1.0)):
        theirs = SLEEPS / best(run)
        yield Row(what=what, value=ours, unit="/s", peer=peer, beside=theirs, ratio=ratio)


def runs() -> Iterator[Row]:
    """Complete runs of a scenario of about 50 events, beside the same coroutine without waits."""
    waiting = find("retry.guarded").but(script=_script(WAITS))
    run = simulate(waiting)
    without = _without_waits()
    bare = RUNS / best(lambda: _times(RUNS, without), TRIES)
    peer = "bare asyncio, no waits"
    plain = RUNS / best(lambda: _times(RUNS, lambda: simulate(waiting)), TRIES)
    what = f"runs of {len(run.trace)} events"
    yield Row(what=what, value=plain, unit="/s", peer=peer, beside=bare, least=1_000)
    recorded = RUNS / best(lambda: _times(RUNS, lambda: simulate(waiting).recorded), TRIES)
    what = f"the same, {len(run.recorded)} places recorded"
    yield Row(what=what, value=recorded, unit="/s", peer=peer, beside=bare, least=200)


def sweeps() -> Iterator[Row]:
    """Runs a second of an exploration: a small scenario, and a stop at every point of a turn."""
    for name, faults in (("retry.guarded", "all"), ("turn.reference", "cancel")):
        scenario = find(name)
        struck = explore(scenario, faults=faults).struck
        value = struck / best(lambda s=scenario, f=faults: explore(s, faults=f), 5)
        what = f"explored: {faults} faults of {name}, {struck} runs"
        yield Row(what=what, value=value, unit="/s", least=500)


def steps() -> Iterator[Row]:
    """The slowest step backwards over a long run, with everything that a view shows."""
    run = simulate(find("retry.guarded").but(script=_script([WAITS[0][:20] * 10 + WAITS[0][-1:]])))
    view = run.at(-1)
    slowest = 0.0
    for _ in range(100):
        slowest = max(slowest, best(lambda view=view: _looked_at(view.previous()), 2))
        view = view.previous()
    what = f"a step backwards among {len(run.recorded):,} places"
    yield Row(what=what, value=slowest * 1_000, unit="ms", most=20)


MEASURES: Final[tuple[Measure, ...]] = (sleeps, runs, sweeps, steps)


def _times(count: int, work: Callable[[], object]) -> None:
    for _ in range(count):
        work()


async def _sleeps() -> None:
    for _ in range(SLEEPS):
        await asyncio.sleep(0.1)


def _on_a_virtual_loop(work: Any) -> None:
    loop = VirtualLoop(total=10 * SLEEPS)
    loop.run_until_complete(work)
    loop.close()


def _looptime() -> None:
    loop = looptime.new_event_loop()
    loop.run_until_complete(_sleeps())
    loop.close()


def _aiotools() -> None:
    async def patched() -> None:
        with aiotools.VirtualClock().patch_loop():
            await _sleeps()

    asyncio.run(patched())


def _script(attempts: list[Any]) -> Any:
    return script({"name": "bench", "about": "", "attempts": attempts})


def _without_waits() -> Callable[[], None]:
    """The client, its provider and its trace on a real loop, where no step waits."""
    scenario = find("retry.guarded")
    steps = [{name: step[name] for name in step if name != "wait"} for step in WAITS[0]]
    quick = _script([steps])

    async def client() -> None:
        world = World(time=asyncio.get_running_loop().time, spend=lambda: None)
        provider = FakeProvider(quick, Observer(world, "provider"))
        await scenario.client(provider, scenario.policy, Observer(world, "client"))

    return lambda: asyncio.run(client())


def _looked_at(view: Any) -> list[object]:
    run: Run = view.run
    shown = [dict(view.locals), dict(view.caller), dict(view.changed), view.source(), view.text]
    return [*shown, repr(view), len(view.events), run]
