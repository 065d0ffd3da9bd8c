"""Exercises: a task, two hints, a check that runs the learner's code, and a solution.

    labkit.exercise("02.guard")              # the task, and where to start
    labkit.check("02.guard", may_retry)      # solved, or the case that fails
    labkit.hint("02.guard")                  # the first hint; the second by hint("02.guard", 2)
    labkit.solution("02.guard")

The texts and the cases are in `data/exercises`, and no right answer is: labkit's own code is tried
in the same case, and what it does is right.
"""

import asyncio
import sysconfig
import traceback
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from labkit.recovery.errors import ProviderError
from labkit.simulation import Run, Unknown

from .answers import answers
from .said import Told, pick, texts
from .trials import TRIALS

LABKIT: Final = Path(__file__).parents[1]
LESSONS: Final = "retry sse stream turn sessions budgets effects leases durable service".split()


class Checked(Told):
    """The verdict of a check: `solved` or not, and the `run` of the case that fails."""

    def __init__(self, text: str, *, solved: bool = False, run: Run | None = None) -> None:
        super().__init__(text)
        self.solved = solved
        self.run = run


def exercise(name: str) -> Told:
    """The task, and the code to start from; raises `Unknown` with the exercises there are."""
    name, found = _find(name)
    return Told(f"Exercise {name}: {found['task']}\n\n{found['start']}")


def check(name: str, learners: Any = None) -> Checked:
    """Try what the learner made in every case; the first one that fails is named."""
    name, found = _find(name)
    trial = TRIALS[name]
    if "script" not in found["name"] and not callable(learners):
        return Checked(f"{name}: give it a function: {found['name']}")
    for case in found["cases"]:
        if "none" in found:
            case = dict.fromkeys(found["none"]) | case
        try:
            wrong, run = trial(learners, deepcopy(case))  # it may be changed there
        except Exception as raised:
            wrong, run = _told(raised), None
        if run and run.error and not _may_leave(run):
            wrong = _told(run.error)
        if wrong:
            shown = run.scenario.claim if run else repr(case)
            return Checked(f"{name}: not solved yet\nCase: {shown}\n{wrong}", run=run)
    answers().put(f"exercise/{name}", "solved")
    return Checked(f"{name}: solved, in all {len(found['cases'])} cases", solved=True)


def hint(name: str, number: int = 1) -> Told:
    """The first hint, or the second."""
    if number not in (1, 2):
        raise Unknown("hint", number, (1, 2))
    name, found = _find(name)
    return Told(f"{name}, hint {number} of 2: {found['hints'][number - 1]}")


def solution(name: str) -> Told:
    """One solution; there are others."""
    return Told(_find(name)[1]["solution"])


def exercises() -> dict[str, dict[str, Any]]:
    """Every exercise by name, in the order of the lessons."""
    return {name: told for lesson in LESSONS for name, told in texts(lesson).items()}


def _find(name: str) -> tuple[str, dict[str, Any]]:
    known = exercises()
    name = pick("exercise", name, list(known))
    return name, known[name]


def _may_leave(run: Run) -> bool:
    """It may be right that a provider's error leaves, and a cancel that was struck."""
    cancelled = isinstance(run.error, asyncio.CancelledError) and run.struck
    return isinstance(run.error, ProviderError) or bool(cancelled)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    others = (LABKIT, Path(sysconfig.get_path("stdlib")))
    own = [f for f in frames if not any(map(Path(f.filename).is_relative_to, others))][-1:]
    where = "".join(f" in line {frame.lineno} of {frame.name}" for frame in own)
    return f"It raised {type(error).__name__}{where}: {error}"
