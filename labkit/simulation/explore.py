"""`explore` interrupts a scenario everywhere: one run for each point at which a fault may strike.

    found = explore(scenario, faults=("cancel", "crash"))
    found.counts                     # {'held': 40, 'broken': 2, 'refused': 0, 'unresolved': 0}
    found.run(found.of("broken")[0])         # that run once more, to look at

A run counts only if its faults really struck. What the judges find without any fault is not the
fault's doing: such names are `usual` and do not count. Of two faults the second strikes after the
first, at a point of the run that has the first. Traces are not kept, since a run can be made again.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from .errors import SimulationError, Unknown
from .faults import KINDS, PHASES, TASK_FAULTS, Fault, Point
from .judge import judged
from .playing import CLIENT, Inputs, Playing, refuse_unknown
from .run import Run
from .scenario import Scenario
from .thread import in_thread
from .trace import Event

VERDICTS: Final = ("held", "broken", "refused", "unresolved")
MOST_PAIRS: Final = 500
_YOUNG: Final = 50  # runs; then what they left behind is collected, since the collector is off

Progress = Callable[[int, int], object]
Strike = tuple[Fault, Point]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run: its `faults`, the `point` at which the last one struck, the verdict.

    `time` (virtual seconds) and `event`, the last one before it, are those of that strike. At its
    `point` the task suspends: what strikes as it wakes comes later.

    held: no judge found anything. broken: they did, `findings` has the names. refused: the client
    ended with an error that the scenario names as a refusal. unresolved: nobody can tell, since it
    ended in a deadlock, in a livelock, or with any other error. `error` names the error's class.
    """

    faults: tuple[Fault, ...]
    point: Point
    time: float
    event: int
    verdict: str
    findings: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Exploration:
    """Everything that one `explore` found: an `Outcome` for each run whose faults struck.

    `usual`: findings of the run without faults. `nowhere`: kinds that have no point in it.
    `missed`: runs whose faults did not all strike. `left_out`: pairs beyond the number that was
    asked for. `complete` is False after an interrupt.
    """

    scenario: Scenario
    policy: Any
    seed: int
    bounds: Mapping[str, int]
    outcomes: tuple[Outcome, ...]
    usual: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ()
    missed: int = 0
    left_out: int = 0
    complete: bool = True

    @property
    def struck(self) -> int:
        """The number of runs that count."""
        return len(self.outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """Verdict -> number of runs."""
        return _counted(self.outcomes)

    @property
    def by_kind(self) -> list[dict[str, Any]]:
        """A flat record for each kind of fault, and for each pair of kinds: for a table."""
        kinds = [" then ".join(fault.kind for fault in each.faults) for each in self.outcomes]
        found: dict[str, list[Outcome]] = {kind: [] for kind in kinds}
        for kind, outcome in zip(kinds, self.outcomes, strict=True):
            found[kind].append(outcome)
        return [{"fault": kind, "struck": len(own), **_counted(own)} for kind, own in found.items()]

    def of(self, verdict: str) -> tuple[Outcome, ...]:
        """The outcomes with that verdict."""
        if verdict not in VERDICTS:
            raise Unknown("verdict", verdict, VERDICTS)
        return tuple(outcome for outcome in self.outcomes if outcome.verdict == verdict)

    def run(self, outcome: Outcome) -> Run:
        """That run once more, with its trace and its places."""
        bounds = dict(self.bounds)
        return Run(Inputs(self.scenario, self.policy, outcome.faults, self.seed, bounds))

    def __repr__(self) -> str:
        told = [f"{self.struck} struck", *(f"{n} {name}" for name, n in self.counts.items() if n)]
        told += [f"{self.missed} missed"] if self.missed else []
        told += [f"{self.left_out} pairs left out"] if self.left_out else []
        told += [] if self.complete else ["interrupted"]
        return f"<exploration of {self.scenario.name}: {', '.join(told)}>"


def explore(
    scenario: Scenario,
    *,
    faults: str | Iterable[str],
    policy: Any = None,
    seed: int = 0,
    pairs: bool | int = False,
    client: Callable[..., Any] | None = None,
    progress: Progress | None = None,
    **bounds: int,
) -> Exploration:
    """Strike at every point of `scenario` with `faults`: a kind, several, or "all".

    `pairs`: also two faults in one run, at most so many pairs (True: 500), drawn by `seed` where
    there are more. `client` takes the place of the scenario's own. `progress(done, of)` is called
    after each run; `of` grows when the pairs are known. `bounds` are those of `simulate`.

    Raises `SimulationError` where there is nothing to explore, or the run without faults ends in
    an error that is no refusal. A `KeyboardInterrupt` leaves within a second and carries what was
    found so far: `error.exploration`.
    """
    kinds, most = _kinds(faults), _most(pairs)
    refuse_unknown(bounds, explore)
    if client is not None and isinstance(scenario, Scenario):
        scenario = scenario.but(client=client)
    sweep = _Sweep(Inputs(scenario, policy, (), seed, bounds), progress)
    try:
        in_thread(lambda: sweep.through(kinds, most), sweep.interrupt)
    except KeyboardInterrupt as interrupt:
        interrupt.exploration = sweep.found(complete=False)  # type: ignore[attr-defined]  # ours
        raise
    return sweep.found(complete=True)


class _Sweep:
    """Plays one run after the other, in one thread, and keeps what came of each."""

    def __init__(self, inputs: Inputs, progress: Progress | None) -> None:
        self._inputs = inputs
        self._progress = progress or (lambda done, of: None)
        self._playing: Playing | None = None
        self._interrupted = False
        self._outcomes: list[Outcome] = []
        self._usual: tuple[str, ...] = ()
        self._nowhere: tuple[str, ...] = ()
        self._done = self._of = self._missed = self._left_out = 0

    def found(self, *, complete: bool) -> Exploration:
        """What there is by now."""
        asked, found = self._inputs, (tuple(self._outcomes), self._usual, self._nowhere)
        counted = (self._missed, self._left_out, complete)
        return Exploration(asked.scenario, asked.policy, asked.seed, asked.bounds, *found, *counted)

    def interrupt(self) -> None:
        """End the run that plays, and let no other begin."""
        self._interrupted = True
        if self._playing is not None:
            self._playing.interrupt()

    def through(self, kinds: tuple[str, ...], most: int) -> None:
        """Every point, then pairs of points."""
        usual = self._play((), look=True)
        self._refuse_a_broken_one(usual)
        self._usual = self._findings(usual)
        self._nowhere = tuple(kind for kind in kinds if not usual.striking.points(kind))
        singles = list(_strikes(usual, kinds))
        if not singles:
            name, asked = self._inputs.scenario.name, ", ".join(kinds)
            raise SimulationError(f"there is nothing to explore: {name} has no point for {asked}")
        self._of = len(singles)
        couples: list[tuple[Fault, Strike]] = []
        for first, point in singles:
            played = self._judge((first,), point, look=most > 0)
            if played is not None and most:
                after = _last_strike(played).index
                couples += [(first, second) for second in _strikes(played, kinds, after=after)]
        few = min(most, len(couples))
        self._left_out = len(couples) - few
        self._of += few
        for number in sorted(Random(self._inputs.seed).sample(range(len(couples)), few)):
            first, (second, point) = couples[number]
            self._judge((first, second), point)

    def _judge(
        self, faults: tuple[Fault, ...], point: Point, *, look: bool = False
    ) -> Playing | None:
        """One run and its verdict; None where its faults did not all strike."""
        played = self._play(faults, look=look)
        self._done += 1
        struck = len(played.world.struck) == len(faults)
        if struck:
            strike = _last_strike(played)
            at = (point, strike.time, strike.index - 1)
            new = tuple(name for name in self._findings(played) if name not in self._usual)
            error = type(played.error).__name__ if played.error is not None else ""
            self._outcomes.append(Outcome(faults, *at, self._verdict(played, new), new, error))
        else:
            self._missed += 1
        if self._done % _YOUNG == 0:
            gc.collect(0)
        self._progress(self._done, self._of)
        return played if struck else None

    def _play(self, faults: tuple[Fault, ...], *, look: bool) -> Playing:
        asked = self._inputs
        inputs = Inputs(asked.scenario, asked.policy, faults, asked.seed, asked.bounds)
        self._playing = Playing(inputs, look=look)
        if self._interrupted:
            raise KeyboardInterrupt
        self._playing.play_here()
        return self._playing

    def _findings(self, played: Playing) -> tuple[str, ...]:
        found = judged(self._inputs.scenario.judges, played.world.trace.events)
        return tuple(dict.fromkeys(finding.name for finding in found))

    def _verdict(self, played: Playing, findings: tuple[str, ...]) -> str:
        end = played.world.trace.events[-1]["outcome"]
        if end == "error" and isinstance(played.error, SimulationError):
            return "unresolved"
        if findings:
            return "broken"
        if end != "error":
            return "held"
        named = {each.__name__ for each in type(played.error).__mro__}
        return "refused" if named & set(self._inputs.scenario.refusals) else "unresolved"

    def _refuse_a_broken_one(self, played: Playing) -> None:
        if self._verdict(played, ()) == "unresolved":
            told = f"{type(played.error).__name__}: {played.error}"
            name = self._inputs.scenario.name
            raise SimulationError(f"{name} fails without any fault, mend that first: {told}")


def _strikes(played: Playing, kinds: Iterable[str], *, after: int = -1) -> Iterator[Strike]:
    """The faults that can strike what was played, after an event.

    A step's own event comes after the fault that struck it: that one is not struck again.
    """
    for kind in kinds:
        on_tasks = kind in TASK_FAULTS
        for phase in PHASES if on_tasks else PHASES[:1]:
            for point in played.striking.points(kind):
                if point.event > after or (on_tasks and point.event == after) or after < 0:
                    task = point.task if on_tasks else CLIENT
                    yield Fault(kind, point.number, task, phase), point


def _last_strike(played: Playing) -> Event:
    return next(event for event in reversed(played.world.trace.events) if event.kind == "fault")


def _counted(outcomes: Iterable[Outcome]) -> dict[str, int]:
    found = Counter(outcome.verdict for outcome in outcomes)
    return {verdict: found[verdict] for verdict in VERDICTS}


def _kinds(faults: str | Iterable[str]) -> tuple[str, ...]:
    one = isinstance(faults, str) or not isinstance(faults, Iterable)
    given: list[Any] = [faults] if one else list(faults)
    for kind in given:
        if kind not in (*KINDS, "all"):
            raise Unknown("fault", kind, (*KINDS, "all"))
    if not given:
        raise SimulationError(f"name a kind of fault: {', '.join(KINDS)}, or all")
    return KINDS if "all" in given else tuple(dict.fromkeys(given))


def _most(pairs: bool | int) -> int:
    if type(pairs) is bool:
        return MOST_PAIRS if pairs else 0
    if type(pairs) is not int or pairs < 0:
        raise SimulationError(f"pairs is a number of runs, or True, not {pairs!r}")
    return pairs
