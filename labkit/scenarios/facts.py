"""What an interruption did, read from the trace: the answers behind the prediction table.

A fact is an answer out of a fixed list and the index of the event that decided it. "The
interruption" is the first failure of a provider, or the first cancel. Nothing is read but the
trace, so another policy, memory or script gives another answer.

    run = simulate("interruption.error")
    retried(run.trace).answer      # 'no, the turn ends'
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from labkit.simulation import Event, SimulationError

RETRIED: Final = ("yes, after a wait", "yes, in a new segment", "no, the turn ends")
TEXT_KEPT: Final = (
    "there was none yet",
    "on the page only",
    "on the page, and in the session as a draft",
    "on the page, and in the checkpoint as an answer",
)
CHECKPOINT_SAVED: Final = (
    "nothing",
    "the user's turn",
    "the user's turn and the tool's result",
    "the whole turn with its answer",
)


@dataclass(frozen=True, slots=True)
class Fact:
    """An `answer`, one of the column's choices, and the index of the `event` that decided it."""

    answer: str
    event: int


@dataclass(frozen=True, slots=True)
class Column:
    """One question of the table: its `name`, its `words`, the `choices`, and who answers it."""

    name: str
    words: str
    choices: tuple[str, ...]
    read: Callable[[Sequence[Event]], Fact]


def retried(events: Sequence[Event]) -> Fact:
    """Whether the provider got another request for the same step, and how it was made."""
    after = events[interruption(events).index :]
    again = _first(after, lambda event: event.kind == "request")
    if again is None:
        decided = _first(after, _ends) or after[-1]
        return Fact("no, the turn ends", decided.index)
    between = [event for event in after if event.index < again.index]
    decided = _first(between, _tries_again) or again
    new = any(event.kind == "segment_end" for event in between)
    return Fact("yes, in a new segment" if new else "yes, after a wait", decided.index)


def text_kept(events: Sequence[Event]) -> Fact:
    """Where the text is, at the end, that the reader had seen when the interruption came."""
    at = interruption(events)
    shown = [event for event in events[: at.index] if event.kind == "shown"]
    if not shown:
        return Fact("there was none yet", at.index)
    after = events[at.index :]
    if draft := _first(after, lambda event: event.kind == "draft"):
        return Fact("on the page, and in the session as a draft", draft.index)
    answer = _first(after, lambda event: event.get("step") == "answer")
    if answer and _first(after, lambda event: event.kind == "request") is None:
        return Fact("on the page, and in the checkpoint as an answer", answer.index)
    end = _first(after, lambda event: event.kind == "end") or after[-1]
    return Fact("on the page only", end.index)


def checkpoint_saved(events: Sequence[Event]) -> Fact:
    """What the checkpoint held at the moment of the interruption; its last step decides."""
    at = interruption(events)
    saved = [event for event in events[: at.index] if event.kind == "checkpoint"]
    if not saved:
        return Fact("nothing", at.index)
    steps = {event["step"] for event in saved}
    answer = "the user's turn"
    if "tool" in steps:
        answer = "the user's turn and the tool's result"
    if "answer" in steps:
        answer = "the whole turn with its answer"
    return Fact(answer, saved[-1].index)


def interruption(events: Sequence[Event]) -> Event:
    """The first failure or cancel; raises `SimulationError` where nothing was interrupted."""
    found = _first(events, _interrupts)
    if found is None:
        raise SimulationError("nothing was interrupted in this run: no failure, and no cancel")
    return found


ROWS: Final = {
    "interruption.rate_limit": "the provider answers 429 before the first delta",
    "interruption.error": "an ordinary error comes after text was shown",
    "interruption.stop": "the user sends /stop",
}
COLUMNS: Final = (
    Column("retried", "Is it tried again?", RETRIED, retried),
    Column("text_kept", "Where is the partial text kept?", TEXT_KEPT, text_kept),
    Column(
        "checkpoint_saved",
        "What is in the checkpoint when it happens?",
        CHECKPOINT_SAVED,
        checkpoint_saved,
    ),
)


def _interrupts(event: Event) -> bool:
    failed = event.actor == "provider" and event.kind in ("http_error", "error", "drop", "stall")
    return failed or event.kind == "failure" or _cancels(event)


def _cancels(event: Event) -> bool:
    return event.kind == "cancel" or event.get("fault") == "cancel"


def _ends(event: Event) -> bool:
    return event.get("action") == "give_up" or event.kind == "end" or _cancels(event)


def _tries_again(event: Event) -> bool:
    return event.get("action") in ("retry", "new_segment")


def _first(events: Sequence[Event], wanted: Callable[[Event], bool]) -> Event | None:
    return next((event for event in events if wanted(event)), None)
