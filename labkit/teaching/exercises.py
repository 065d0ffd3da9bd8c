"""Exercises: a task, two hints, a check that runs the learner's code, and a solution.

    labkit.exercise("02.guard")              # the task, and where to start
    labkit.check("02.guard", may_retry)      # solved, or the case that fails, with its run
    labkit.hint("02.guard")                  # the first hint, at the next call the second
    labkit.solution("02.guard")

The texts are in `data/exercises`. A check runs the learner's code in simulations and judges the
runs; code that raises, never ends or returns something strange gets an answer in words.
"""

import inspect
import tomllib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from labkit.recovery.errors import ProviderError
from labkit.simulation import Deadlock, Livelock, Run, Unknown

from .answers import answers
from .patience import NeverEnds, within
from .said import Told

TEXTS: Final = Path(__file__).parents[2] / "data" / "exercises"
SECONDS: Final = 3.0  # of real time for a whole check; the runs themselves take milliseconds


@dataclass(frozen=True, slots=True)
class Trial:
    """One case of a check: its words, its run, and what was `wrong` with it, "" for nothing."""

    case: str
    run: Run | None
    wrong: str = ""


Trials = Callable[[Any], Iterator[Trial]]


@dataclass(frozen=True, slots=True)
class Exercise:
    """`start` is the code handed out, which defines `name`; `trials` tries it, case by case."""

    id: str
    name: str
    task: str
    start: str
    hints: tuple[str, str]
    solution: str
    trials: Trials


class Checked(Told):
    """The verdict of a check: `solved` or not, and the `run` of the case that fails."""

    def __init__(self, text: str, *, solved: bool = False, run: Run | None = None) -> None:
        super().__init__(text)
        self.solved = solved
        self.run = run


def exercise(name: str) -> Told:
    """The task, and the code to start from; raises `Unknown` with the exercises there are."""
    found = find(name)
    return Told(f"Exercise {name}: {found.task}\n\n{found.start}")


def check(name: str, learners: Any) -> Checked:
    """Try what the learner made in every case; the first one that fails is named."""
    found = find(name)
    verdict = f"{name}: not solved yet\n"
    if callable(learners) == (found.name == "my_script") or _is_async(learners, found):
        return Checked(f"{verdict}What is needed: {found.name}, as in labkit.exercise({name!r}).")
    try:
        trials = within(SECONDS, lambda: list(_until_wrong(found.trials(learners))))
    except NeverEnds as error:
        return Checked(f"{verdict}{error}")
    except Exception as error:  # the learner's own
        return Checked(f"{verdict}{raised(error, learners)}")
    last = trials[-1]
    if last.wrong:
        step = "\nIts run is `.run` of this result: labkit.stepper(result.run)" if last.run else ""
        return Checked(f"{verdict}Case: {last.case}\n{last.wrong}{step}", run=last.run)
    answers().put(f"exercise/{name}", "solved")
    return Checked(f"{name}: solved, in all {len(trials)} cases", solved=True)


def hint(name: str, number: int | None = None) -> Told:
    """The next hint that was not shown yet, or the one of that number."""
    hints = find(name).hints
    if number is None:
        number = min(1 + (f"hint/{name}" in answers().all()), len(hints))
    if number not in (1, 2):
        raise Unknown("hint", number, (1, 2))
    answers().put(f"hint/{name}", "seen")
    return Told(f"{name}, hint {number} of {len(hints)}: {hints[number - 1]}")


def solution(name: str) -> Told:
    """One solution; there are others."""
    return Told(find(name).solution)


def find(name: str) -> Exercise:
    """The exercise of that id; raises `Unknown` with those there are."""
    known = {found.id: found for found in every()}
    if name not in known:
        raise Unknown("exercise", name, known)
    return known[name]


@lru_cache(maxsize=1)
def every() -> tuple[Exercise, ...]:
    """All exercises, in the order of the lessons."""
    from .retry_exercises import TRIALS

    texts = tomllib.loads((TEXTS / "retry.toml").read_text(encoding="utf-8"))
    return tuple(Exercise(id=name, trials=TRIALS[name], **text) for name, text in texts.items())


def trouble(run: Run, learners: Any) -> str:
    """What is wrong with a run whatever the exercise, "" for nothing.

    A `ProviderError` is no trouble: it may be right to let it leave.
    """
    if run.error is None or isinstance(run.error, ProviderError):
        return ""
    if isinstance(run.error, Livelock | Deadlock):
        return f"It never ends: {run.error}."
    return raised(run.error, learners)


def raised(error: BaseException, learners: Any) -> str:
    """What the learner's code raised, and in which of its lines."""
    file = getattr(getattr(learners, "__code__", None), "co_filename", "")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    where = f" in line {frames[-1].lineno} of {frames[-1].name}" if frames else ""
    return f"It raised {type(error).__name__}{where}: {error}"


def _is_async(learners: Any, found: Exercise) -> bool:
    """Whether a function is async where a plain one is needed, or the other way round."""
    return inspect.iscoroutinefunction(learners) != ("async def" in found.start)


def _until_wrong(trials: Iterator[Trial]) -> Iterator[Trial]:
    for trial in trials:
        yield trial
        if trial.wrong:
            return
