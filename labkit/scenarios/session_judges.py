"""Judges of sessions: what is left in the store, against what users sent and what really happened.

They read what the store holds at the end, or at the crash, before anything heals it (`lab left`);
the ledger; what users sent and pages showed; and when turns began and ended.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from labkit.recovery.mailbox import command_of
from labkit.simulation import Event, Finding, Judge

NOTHING: Final[Mapping[str, Any]] = {"messages": (), "checkpoint": None, "drafts": ()}
MAY_HAVE_RUN: Final = ("done", "unknown")


def call_unanswered(events: Sequence[Event]) -> Iterator[Finding]:
    """In what is finished a call has no result or two, or results stand in another order."""
    for event, sessions in left(events):
        for session in sessions.values():
            rows = session["messages"]
            asked = [call_id for row in rows for call_id, _ in row[2]]
            answered = [row[3] for row in rows if row[0] == "tool"]
            if asked != answered:
                cure = "give each call one result, in their order: done, unknown or not started"
                yield Finding("call_unanswered", event.index, cure)
                return


def effect_forgotten(events: Sequence[Event]) -> Iterator[Finding]:
    """A tool had its effect, and the session says that the call never began, or knows no call."""
    for event, sessions in left(events):
        known = Counter(name for name, status in calls_of(sessions) if status in MAY_HAVE_RUN)
        if _effects(events) - known:
            cure = "mark a call before it runs, and keep the mark: a cancel is no rollback"
            yield Finding("effect_forgotten", event.index, cure)


def result_lost(events: Sequence[Event]) -> Iterator[Finding]:
    """A tool finished, nothing crashed, and the session does not have its result."""
    if _crashed(events):
        return
    for event, sessions in left(events):
        known = Counter(name for name, status in calls_of(sessions) if status == "done")
        if _effects(events) - known:
            cure = "save each result as it comes, between the tools of one batch too"
            yield Finding("result_lost", event.index, cure)


def draft_lost(events: Sequence[Event]) -> Iterator[Finding]:
    """Text that the user saw is in no message and no draft of the session."""
    seen = dict.fromkeys(event["session"] for event in events if _on_a_page(event))
    for _, sessions in left(events):
        for name in seen:
            session = sessions.get(name, NOTHING)
            kept = [*(row[1] for row in rows_of(session)), *session["drafts"]]
            for shown, at in _answers(events, name):
                if not any(shown in text for text in kept):
                    cure = "save text before it is shown, and keep it as a draft at a turn's end"
                    yield Finding("draft_lost", at, cure)


def _answers(events: Sequence[Event], session: str) -> Iterator[tuple[str, int]]:
    """What a session's page has shown, answer by answer, each with its last event."""
    shown, at = "", 0
    for event in events:
        if _on_a_page(event) and event["session"] == session:
            if event.kind == "shown":
                shown, at = shown + event["text"], event.index
            elif shown:
                yield shown, at
                shown = ""
    if shown:
        yield shown, at


def lost_update(events: Sequence[Event]) -> Iterator[Finding]:
    """Two tools changed the same thing at once, and one of the changes is gone."""
    seen: set[int] = set()
    for event in events:
        if event.actor == "ledger" and event.get("notes") is not None:
            if event["notes"] in seen:
                cure = "declare a tool concurrent only where it shares nothing that it changes"
                yield Finding("lost_update", event.index, cure)
            seen.add(event["notes"])


def session_overlap(events: Sequence[Event]) -> Iterator[Finding]:
    """Two turns of one session ran at once."""
    running: Counter[str] = Counter()
    for event in events:
        if event.kind == "turn_start":
            running[event["session"]] += 1
            if running[event["session"]] == 2:
                cure = "take the session's lock before anything of the turn, to its very end"
                yield Finding("session_overlap", event.index, cure)
        elif event.kind == "turn_end":
            running[event["session"]] -= 1


def gate_exceeded(events: Sequence[Event]) -> Iterator[Finding]:
    """More turns ran at once than the gate allows."""
    limit = next((event["limit"] for event in events if event.kind == "gate"), 0)
    for event, running in levels(events):
        if limit > 0 and running > limit:
            cure = "pass the gate after the session's lock, and hold it for the whole turn"
            yield Finding("gate_exceeded", event.index, cure)
            return


def message_lost(events: Sequence[Event]) -> Iterator[Finding]:
    """A message that was sent is in no session, and nobody was told that it was dropped."""
    for event, missing, _ in _mail(events):
        if missing:
            cure = (
                "a message that was taken belongs in its session: republish what no turn has read"
            )
            yield Finding("message_lost", event.index, cure)


def message_doubled(events: Sequence[Event]) -> Iterator[Finding]:
    """A message is in its session twice."""
    for event, _, kept in _mail(events):
        if Counter(kept) - Counter(_sent(events)):
            cure = "take a message out of one place before it goes to another"
            yield Finding("message_doubled", event.index, cure)


def message_reordered(events: Sequence[Event]) -> Iterator[Finding]:
    """Two messages of one user stand in the session in another order than they were sent."""
    for event, _, kept in _mail(events):
        ordered = sorted(kept, key=lambda message: message[0])  # session after session
        sent = iter(sorted(_sent(events), key=lambda message: message[0]))
        doubled = Counter(kept) - Counter(_sent(events))
        if not doubled and not all(message in sent for message in ordered):
            cure = "put leftovers at the head of the session's line, before what came later"
            yield Finding("message_reordered", event.index, cure)


def _mail(
    events: Sequence[Event],
) -> Iterator[tuple[Event, Counter[tuple[str, str]], list[tuple[str, str]]]]:
    """(event, messages that are missing, those that are kept) as (session, text); not at a crash.

    What has not been stored yet when a process dies is lost with it, and was not promised.
    """
    if _crashed(events):
        return
    dropped = [(e["session"], e["message"]) for e in events if e.kind == "dropped"]
    for event, sessions in left(events):
        kept = [
            (name, row[1])
            for name, session in sessions.items()
            for row in rows_of(session)
            if row[0] == "user" and (name, row[1]) in _sent(events)
        ]
        yield event, Counter(_sent(events)) - Counter(kept) - Counter(dropped), kept


def _sent(events: Sequence[Event]) -> list[tuple[str, str]]:
    """What users sent, as (session, text), but for the commands."""
    sent = [(e["session"], e["text"]) for e in events if e.actor == "user" and e.kind == "sends"]
    return [message for message in sent if not command_of(message[1])]


def left(events: Sequence[Event]) -> Iterator[tuple[Event, Mapping[str, Any]]]:
    """What the store holds at the end or at the crash, by session, with the event that tells it."""
    for event in events:
        if event.actor == "lab" and event.kind == "left":
            yield event, {name: dict(session) for name, session in event.data}


def calls_of(sessions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(tool, status) of each call; one that is running is unknown, one without a result is not."""
    for session in sessions.values():
        status = {row[3]: row[4] for row in rows_of(session) if row[0] == "tool"}
        status |= dict.fromkeys(session["running"], "unknown")
        for row in rows_of(session):
            for call_id, name in row[2]:
                yield name, status.get(call_id, "not started")


def rows_of(session: Mapping[str, Any]) -> tuple[Any, ...]:
    """Its messages, and after them the finished steps of the turn that is open."""
    return (*session["messages"], *(session["checkpoint"] or ()))


def levels(events: Sequence[Event]) -> Iterator[tuple[Event, int]]:
    """Each start and end of a turn, with the number of turns that run from then on."""
    running = 0
    for event in events:
        if event.kind in ("turn_start", "turn_end"):
            running += 1 if event.kind == "turn_start" else -1
            yield event, running


def _crashed(events: Sequence[Event]) -> bool:
    return any(event.get("fault") == "crash" for event in events)


def _on_a_page(event: Event) -> bool:
    return event.actor == "page" and event.get("session") is not None


def _effects(events: Sequence[Event]) -> Counter[str]:
    return Counter(event["name"] for event in events if event.actor == "ledger")


SESSION_JUDGES: Final[tuple[Judge, ...]] = (
    call_unanswered,
    effect_forgotten,
    result_lost,
    draft_lost,
    lost_update,
    session_overlap,
    gate_exceeded,
    message_lost,
    message_doubled,
    message_reordered,
)
