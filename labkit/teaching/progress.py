"""What of the lessons is done, open or blocked, with the learner's own line for the reason.

labkit.progress()
labkit.progress("retry chain")                               # this step is done
labkit.progress("stream checks", blocked="no Chromium here")
labkit.progress(reason="the reader has acted on what was shown")
"""

from collections.abc import Iterator
from typing import Final

from labkit.simulation import Run, SimulationError

from .answers import Answer, answers
from .exercises import exercises
from .phrases import quoted
from .said import Told, pick, texts

REASON: Final = "one reason why visible output cannot be replayed safely"


def progress(step: str | None = None, *, blocked: str = "", reason: str = "") -> Told:
    """Note what is given, and list everything; raises `Unknown` with the steps there are.

    `step` is done, or cannot be done for the reason given in `blocked`.
    """
    for text in (blocked, reason):
        if not isinstance(text, str):
            raise SimulationError(f"say it in words: blocked and reason are texts, not {text!r}")
    store = answers()
    if step is not None or blocked:
        meant = pick("step", step, list(texts("progress")))
        store.put(f"step/{meant}", f"blocked: {blocked}" if blocked else "done")
    if reason:
        store.put("reason", reason)
    return Told("\n".join(f"{state:<9}{words}" for state, words in _items()))


def drawn(run: Run) -> None:
    """Note that the call chain of `run` was drawn: of a repeat, a budget, a stream, a stop ..."""
    kinds = {event.kind for event in run.trace}
    if "entered" in kinds or "spent" in kinds:
        answers().put(f"step/{'repeat' if 'entered' in kinds else 'budget'} chain drawn", "done")
        return
    if any(event.actor == "wire" for event in run.trace):
        answers().put("step/stream chain drawn", "done")
        return
    stopped = any(e.kind == "cancel" or e.get("fault") == "cancel" for e in run.trace)
    failed = any(e.kind == "failure" or e.get("action") == "retry" for e in run.trace)
    if stopped or "stop" in run.scenario.name:
        answers().put("step/stop chain drawn", "done")
    elif failed:
        answers().put("step/retry chain drawn", "done")


def _items() -> Iterator[tuple[str, str]]:
    from .predictions import predict  # brings ipywidgets

    known = answers().all()
    for name in texts("predictions")["tables"]:
        table = predict(name)
        graded = sum(answer.first is not None for answer in table.kept().values())
        state = "done" if graded == len(table.cells) else "open"
        counted = f"{len(table.given)} of {len(table.cells)} answered, {graded} graded"
        yield state, f"predictions {name}: {counted}"
    for name, exercise in exercises().items():
        state = "done" if f"exercise/{name}" in known else "open"
        yield state, f"exercise {name}: {exercise['task']}"
    for step, how in texts("progress").items():
        state, _, why = known.get(f"step/{step}", Answer("open")).latest.partition(": ")
        yield state, f"{step}: {quoted(why) if why else how}" if state != "done" else step
    told = quoted(known["reason"].latest) if "reason" in known else 'labkit.progress(reason="...")'
    yield "done" if "reason" in known else "open", f"{REASON}: {told}"
