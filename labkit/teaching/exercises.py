"""Exercises: a task, two hints, a check that runs the learner's code, and a solution.

    labkit.exercise("02.guard")              # the task, and where to start
    labkit.check("02.guard", may_retry)      # solved, or the case that fails
    labkit.hint("02.guard")                  # the first hint; the second by hint("02.guard", 2)
    labkit.solution("02.guard")

The texts and the cases are in `data/exercises`, and no right answer is: labkit's own code is tried
in the same case, and what it does is right.
"""

import traceback
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

from labkit.providers.script import Script, script
from labkit.recovery.errors import ProviderError
from labkit.recovery.retry import decide
from labkit.recovery.retry_after import parse_retry_after
from labkit.scenarios import clients
from labkit.scenarios.catalogue import find, load
from labkit.simulation import Run, Unknown, simulate

from .answers import answers
from .said import Told, pick, texts

LABKIT: Final = Path(__file__).parents[1]
Tried = tuple[str, Run | None]  # what is wrong, "" for nothing, and the run where there is one


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


def check(name: str, learners: Any) -> Checked:
    """Try what the learner made in every case; the first one that fails is named."""
    name, found = _find(name)
    trial = TRIALS[name]
    if trial is not _script and not callable(learners):
        return Checked(f"{name}: give it a function: {found['name']}")
    for case in found["cases"]:
        try:
            wrong, run = trial(learners, case)
        except Exception as raised:
            wrong, run = _told(raised), None
        if run and run.error and not isinstance(run.error, ProviderError):
            wrong = _told(run.error)  # it may be right to let a provider's error leave
        if wrong:
            told = f"{name}: not solved yet\nCase: {run.scenario.claim if run else case}\n{wrong}"
            return Checked(told, run=run)
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


def _find(name: str) -> tuple[str, dict[str, Any]]:
    known = texts("retry")
    name = pick("exercise", name, list(known))
    return name, known[name]


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(LABKIT)][-1:]
    where = "".join(f" in line {frame.lineno} of {frame.name}" for frame in own)
    return f"It raised {type(error).__name__}{where}: {error}"


def _guard(may_retry: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what the error is made of, and whether text was visible."""
    parts = dict(case)
    visible, error = parts.pop("visible"), ProviderError(parts.pop("message", ""), **parts)
    first = partial(decide, attempt=1, segments=False, remaining=60.0, now=0.0, random=Random(0))
    own = first(error, visible=visible, policy=find("retry.guarded").policy)
    return _same(may_retry(error, visible), own.action == "retry")


def _wait_for(wait_for: Any, case: Mapping[str, str]) -> Tried:
    """`case`: the headers."""
    return _same(wait_for(dict(case)), parse_retry_after(case, now=0.0))


def _same(got: object, meant: object) -> Tried:
    return "" if got == meant else f"It gives {got!r}; {meant!r} is expected.", None


def _client(my_client: Any, case: str) -> Tried:
    """`case`: a script. A finding is wrong, and so is what labkit's own client does otherwise."""
    run, own = _run(load(case), my_client), _run(load(case), clients.careful)
    for finding in run.findings:
        return f"{finding!r}.", run
    if run.text != own.text:
        return f"The reader sees {run.text!r}; with labkit's own client {own.text!r}.", run
    return "", run


def _script(value: Any, case: str) -> Tried:
    """labkit's client gives up on the script after text; a loop around the stream does not."""
    own, loop = _run(script(value), clients.careful), _run(script(value), clients.starts_over)
    if own.error is None:
        return "labkit came to an answer: let something fail after the first text.", own
    if not own.text:
        return "labkit gave up before any text.", own
    if loop.error is not None:
        return "Another try does not work either: let the next attempt succeed.", loop
    return "", loop


def _run(played: Script, client: Any) -> Run:
    claim = played.about or f"the script {played.name}"
    return simulate(find("retry.guarded").but(script=played, claim=claim, client=client))


TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "02.guard": _guard,
    "02.client": _client,
    "02.retry_after": _wait_for,
    "02.script": _script,
}
