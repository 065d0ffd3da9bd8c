"""What happened in a run, read from its trace: the answers behind the prediction tables.

A fact is an answer out of the table's list and the index of the event that decided it. "The
interruption" is the first failure of a provider, or the first cancel. Nothing is read but the
trace, so another policy, memory or script gives another answer.

    run = simulate("interruption.error")
    retried(run.trace).answer      # 'no, the turn ends'
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from labkit.simulation import Event, SimulationError
from labkit.simulation.judge import duplicate_text

from .session_judges import calls_of, left, levels, rows_of

_FATES: Final = {
    "injected": "it joins the running turn",
    "turn_start": "a turn of its own, after the first one",
    "dropped": "it is dropped, and the user is told",
}
STATUSES: Final = ("done", "unknown", "not started")
_STEPS: Final = ("user", "tool", "answer")
_BREAKS: Final = ("http_error", "error", "drop", "stall", "broke", "fault")


@dataclass(frozen=True, slots=True)
class Fact:
    """An `answer`, and the index of the `event` that decided it.

    The answer is one of the choices in `data/exercises/predictions.toml`.
    """

    answer: str
    event: int


def requests(events: Sequence[Event]) -> Fact:
    """How many requests reached the provider; giving up decides, else the last request."""
    told = [e for e in events if e.kind == "request" or e.get("action") == "give_up"]
    made = sum(event.kind == "request" for event in told)
    return Fact(str(made) if made < 4 else "4 or more", told[-1].index)


def outcome(events: Sequence[Event]) -> Fact:
    """How the run ended for the caller."""
    return Fact(events[-1]["outcome"], events[-1].index)


def seen(events: Sequence[Event]) -> Fact:
    """What stands on the page at the end; the last text shown decides."""
    shown = [event.index for event in events if event.kind == "shown"]
    kinds = {event.kind for event in events}
    if not shown:
        return Fact("nothing", events[-1].index)
    if twice := next(duplicate_text(events), None):
        return Fact("the beginning twice", twice.event)
    if "finish" not in kinds:
        return Fact("a part of the answer", shown[-1])
    closed = "a part, marked as interrupted, then the whole answer"
    return Fact(closed if "segment_end" in kinds else "the whole answer, once", shown[-1])


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
    said = [event for event in events[shown[-1].index : at.index] if event.get("step") == "said"]
    kept = [row[1] for _, stored in left(after) for own in stored.values() for row in rows_of(own)]
    if said and any(shown[-1]["text"] in text for text in kept):
        return Fact("on the page, and in the session as a message", said[-1].index)
    end = _first(after, lambda event: event.kind == "end") or after[-1]
    return Fact("on the page only", end.index)


def outcome_of_turn(events: Sequence[Event]) -> Fact:
    """How the task of the turn ended."""
    ends = [event for event in events if event.kind == "end" and event["task"] == "turn"]
    return Fact(ends[-1]["outcome"], ends[-1].index)


def checkpoint_saved(events: Sequence[Event]) -> Fact:
    """What the checkpoint held at the moment of the interruption; its last step decides."""
    at = interruption(events)
    saved = [event for event in events[: at.index] if event.get("step") in _STEPS]
    if not saved:
        return Fact("nothing", at.index)
    steps = {event["step"] for event in saved}
    answer = "the user's turn"
    if "tool" in steps:
        answer = "the user's turn and the tool's result"
    if "answer" in steps:
        answer = "the whole turn with its answer"
    return Fact(answer, saved[-1].index)


def recovered(events: Sequence[Event]) -> Fact:
    """How the answer was brought back after it first broke; what began the way back decides."""
    at = _first(events, _breaks)
    if at is None:
        return Fact("nothing broke", events[-1].index)
    after = events[at.index + 1 :]
    back = _first(after, lambda event: event.kind == "request" or bool(event.get("cursor")))
    if back is None:
        return Fact("not at all", (_first(after, _ends) or after[-1]).index)
    if back.kind == "open":
        return Fact("its events are resumed", back.index)
    new = [event for event in after if event.index < back.index and event.kind == "segment_end"]
    return Fact("it is asked again" if new else "it is continued", (new or [back])[-1].index)


def state(events: Sequence[Event]) -> Fact:
    """What the page's status line says at the end."""
    told = [event for event in events if event.kind == "status" and "state" in dict(event.data)]
    return Fact(told[-1]["state"], told[-1].index) if told else Fact("nothing", events[-1].index)


def tool_ran(events: Sequence[Event]) -> Fact:
    """How often the tool had its effect; the last effect decides, or the end."""
    real = [event for event in events if event.actor == "ledger"]
    words = ("never", "once", "twice or more")[min(len(real), 2)]
    return Fact(words, (real or events)[-1].index)


def connections(events: Sequence[Event]) -> Fact:
    """How many connections the reader made; the last one decides."""
    made = [event for event in events if event.actor == "wire" and event.kind == "open"]
    return Fact(str(len(made)), (made or events)[-1].index)


def noticed(events: Sequence[Event]) -> Fact:
    """When the reader noticed that something was wrong: what its record says decides."""
    at = _first(events, lambda event: event.kind == "fault") or events[-1]
    after = events[at.index :]
    broke = _first(after, lambda event: event.get("status") == "interrupted")
    if broke is None:
        return Fact("never, and it does no harm", events[-1].index)
    return Fact("at once" if broke.time == at.time else "with the next event", broke.index)


def calls_left(events: Sequence[Event]) -> Fact:
    """What the session says, at the end or at the crash, of the calls; its last write decides."""
    at, sessions = next(left(events), (events[-1], {}))
    found = Counter(status for _, status in calls_of(sessions))
    told = [f"{found[status]} {status}" for status in STATUSES if found[status]]
    saved = [event.index for event in events[: at.index] if event.kind == "checkpoint"]
    return Fact(", ".join(told) or "nothing of them", (saved or [at.index])[-1])


def second_message(events: Sequence[Event]) -> Fact:
    """What becomes of the second message of the user who writes first."""
    sent = [event for event in events if event.kind == "sends"]
    first = sent[0]["session"]
    second = next((event for event in sent[1:] if event["session"] == first), None)
    if second is None:
        raise SimulationError(f"{first} has sent one message only: there is no second one")
    own = [
        event
        for event in events
        if (event.get("session"), event.get("message")) == (first, second["text"])
        and event.kind in _FATES
    ]
    if not own:
        return Fact("it is lost", events[-1].index)
    before = [event for event in events[: own[0].index] if event.get("session") == first]
    turns = [event.kind for event in before if event.kind in ("turn_start", "turn_end")]
    beside = own[0].kind == "turn_start" and turns[-1:] == ["turn_start"]
    return Fact("a turn beside the first one" if beside else _FATES[own[0].kind], own[0].index)


def at_a_time(events: Sequence[Event]) -> Fact:
    """How many turns run at once at most; the start that makes it so many decides."""
    most = Fact("0", events[-1].index)
    for event, running in levels(events):
        if running > int(most.answer):
            most = Fact(str(running), event.index)
    return most


def interruption(events: Sequence[Event]) -> Event:
    """The first failure or cancel; raises `SimulationError` where nothing was interrupted."""
    found = _first(events, _interrupts)
    if found is None:
        raise SimulationError("nothing was interrupted in this run: no failure, and no cancel")
    return found


def _interrupts(event: Event) -> bool:
    failed = event.actor == "provider" and event.kind in ("http_error", "error", "drop", "stall")
    return failed or event.kind == "failure" or _cancels(event)


def _cancels(event: Event) -> bool:
    return event.kind == "cancel" or event.get("fault") == "cancel"


def _breaks(event: Event) -> bool:
    return event.kind in _BREAKS or event.get("reason") == "length" or _cancels(event)


def _ends(event: Event) -> bool:
    return event.get("action") == "give_up" or event.kind == "end" or _cancels(event)


def _tries_again(event: Event) -> bool:
    return event.get("action") in ("retry", "new_segment")


def _first(events: Sequence[Event], wanted: Callable[[Event], bool]) -> Event | None:
    return next((event for event in events if wanted(event)), None)


FACTS: Final[Mapping[str, Callable[[Sequence[Event]], Fact]]] = {
    fact.__name__: fact
    for fact in (
        *(requests, outcome, seen, retried, text_kept, checkpoint_saved),
        *(recovered, state, tool_ran, connections, noticed),
        *(calls_left, outcome_of_turn, second_message, at_a_time),
    )
}
