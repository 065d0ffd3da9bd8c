"""What of the lessons is done, open or blocked, with the learner's own line for the reason.

labkit.progress()
labkit.progress("retry chain")                               # this step is done
labkit.progress("stream checks", blocked="no Chromium here")
labkit.progress(reason="the reader has acted on what was shown")
"""

from collections.abc import Iterator, Mapping
from typing import Final

from .answers import Answer, answers
from .exercises import every
from .phrases import quoted
from .said import Told, pick
from .tables import TABLES, Table

STEPS: Final = {
    f"{group}_{step[0]}": f"{group} {' '.join(step)}"
    for step in (("checks", "run"), ("chain", "drawn"))
    for group in ("retry", "stop", "stream")
}
REASON: Final = "one reason why visible output cannot be replayed safely"


def progress(step: str | None = None, *, blocked: str = "", reason: str = "") -> Told:
    """Note what is given, and list everything; raises `Unknown` with the steps there are.

    `step` is done, or cannot be done for the reason given in `blocked`, which may also stand alone.
    """
    store = answers()
    if step is not None:
        store.put(f"step/{pick('step', step, STEPS)}", f"blocked: {blocked}" if blocked else "done")
    elif blocked:
        store.put("blocked", blocked)
    if reason:
        store.put("reason", reason)
    lines = [f"{state:<9}{words}" for state, words in _items(store.all())]
    return Told("\n".join(lines))


def _items(known: Mapping[str, Answer]) -> Iterator[tuple[str, str]]:
    for table in TABLES.values():
        yield _predictions(table, known)
    for exercise in every():
        state = "done" if f"exercise/{exercise.id}" in known else "open"
        yield state, f"exercise {exercise.id}: {exercise.task}"
    for name, words in STEPS.items():
        noted = known[f"step/{name}"].latest if f"step/{name}" in known else "open"
        state, _, why = noted.partition(": ")
        yield state, f"{words}: {quoted(why)}" if why else words
    if "reason" in known:
        yield "done", f"{REASON}: {quoted(known['reason'].latest)}"
    else:
        yield "open", f'{REASON}: labkit.progress(reason="...")'
    if "blocked" in known:
        yield "blocked", quoted(known["blocked"].latest)


def _predictions(table: Table, known: Mapping[str, Answer]) -> tuple[str, str]:
    questions = [table.question(row, column.name) for row in table.rows for column in table.columns]
    given = [known[question] for question in questions if question in known]
    graded = sum(answer.graded for answer in given)
    counted = f"{len(given)} of {len(questions)} answered, {graded} graded"
    state = "done" if graded == len(questions) else "open"
    return state, f"predictions {table.name}: {counted}"
