"""The diagnosis table, as a tool: a symptom, where to look first, and what not to do first.

labkit.diagnose()                 # the whole table
labkit.diagnose("silent wait")    # one row
labkit.diagnose(run)              # the symptoms that a run shows, each with the event to look at
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from labkit.simulation import Event, Run
from labkit.simulation.judge import cancel_swallowed, left_over_task

from .said import Told, event_words, pick

LONG: Final = 1.0  # seconds of silence that a reader notices


@dataclass(frozen=True, slots=True)
class Symptom:
    """One row; `shows` gives the index of the event to look at first, None where it is absent."""

    words: str
    look: str
    not_first: str
    shows: Callable[[Sequence[Event]], int | None]


def diagnose(what: str | Run | None = None) -> Told:
    """All symptoms, the one named, or those of a run; raises `Unknown` with what there is."""
    if isinstance(what, Run):
        return Told(_of(what))
    if what is None:
        chosen = list(SYMPTOMS)
    else:
        chosen = [pick("symptom", what, {name: row.words for name, row in SYMPTOMS.items()})]
    return Told("\n".join(line for name in chosen for line in _row(SYMPTOMS[name])))


def _of(run: Run) -> str:
    lines = []
    for symptom in SYMPTOMS.values():
        index = symptom.shows(run.trace)
        if index is not None:
            lines += [*_row(symptom), f"   here:      {event_words(run.trace[index])}"]
    return "\n".join(lines or ["The trace shows none of the four symptoms."])


def _row(symptom: Symptom) -> list[str]:
    return [
        symptom.words,
        f"   look:      {symptom.look}",
        f"   not first: {symptom.not_first}",
    ]


def _silent(events: Sequence[Event]) -> int | None:
    """A long wait between attempts, or a stream that has stalled."""
    return _first(e for e in events if e.kind == "stall" or e.get("seconds", 0) >= LONG)


def _restarts(events: Sequence[Event]) -> int | None:
    """The first request that follows a failure which came after shown text."""
    shown = broken = False
    for event in events:
        if event.kind == "request" and broken:
            return event.index
        shown = (shown or event.kind == "shown") and event.kind != "finish"
        broken = shown and (broken or event.kind in ("error", "drop", "stall", "end", "closed"))
    return None


def _kept_tools(events: Sequence[Event]) -> int | None:
    """The tool's step in the checkpoint of a turn that was stopped later."""
    stopped = _first(event for event in events if event.kind == "cancel")
    return _first(e for e in events[: stopped or 0] if e.get("step") == "tool")


def _goes_on(events: Sequence[Event]) -> int | None:
    """A cancel that did not arrive, or a task that outlived the run."""
    found = [*cancel_swallowed(events), *left_over_task(events)]
    return min((finding.event for finding in found), default=None)


def _first(events: Iterable[Event]) -> int | None:
    return next((event.index for event in events), None)


SYMPTOMS: Final = {
    "silent_wait": Symptom(
        "a silent wait",
        "the retry's own words: the wait event, its seconds and its reason",
        "do not restart the gateway",
        _silent,
    ),
    "restart": Symptom(
        "the answer restarts after its first half",
        "the attempt and segment of each text, and the stall timeout",
        "do not suppose that the front end renders twice",
        _restarts,
    ),
    "tools_after_stop": Symptom(
        "tool results are visible after /stop",
        "the checkpoint: a finished step is kept on purpose",
        "do not call the session corrupt",
        _kept_tools,
    ),
    "backend_goes_on": Symptom(
        "the stream is gone and the backend still runs",
        "whether the cancel reached the task, and left again as CancelledError",
        "do not delete the session",
        _goes_on,
    ),
}
