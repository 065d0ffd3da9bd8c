"""What a conversation keeps: its messages, its drafts, and the checkpoint of the turn under way.

Every change is a function from one session to the next. A finished step joins the checkpoint; when
the turn ends, however it ends, the checkpoint becomes a part of the messages, in which every tool
call has exactly one result. A call that had begun and has no result is unknown: it may have had its
effect. A draft is text that was shown and never became an answer: it is no message.

    session = begin_turn(Session("ann"), "Where is my refund?")
    session = close_turn(session, "stopped")      # question and note; nothing is rolled back
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from .errors import RecoveryError
from .stream.record import ToolCall

USER: Final = "user"
ASSISTANT: Final = "assistant"
TOOL: Final = "tool"
NOTE: Final = "note"  # the lab's own word to the model: how a turn ended that has no answer

DONE: Final = "done"
REFUSED: Final = "refused"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
NOT_STARTED: Final = "not started"

_LEFT: Final = {
    UNKNOWN: "The turn ended while this call was running: it may have had its effect.",
    NOT_STARTED: "The turn ended before this call began: it had no effect.",
}


class SessionError(RecoveryError):
    """Base of what a session's store or its history refuses."""


class StaleSession(SessionError):
    """Another turn has written this session since: load it again; this write would undo that."""


@dataclass(frozen=True, slots=True)
class Message:
    """One row of the history; `calls` on an assistant's row, `call_id` and `status` on a tool's."""

    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    status: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """Text that was shown and then interrupted, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """The checkpoint: the finished `steps`, the calls that are `running`, the text shown so far."""

    steps: tuple[Message, ...]
    running: tuple[str, ...] = ()
    draft: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Session:
    """One conversation. `version` counts the writes; `turn` is the checkpoint, or None."""

    session_id: str
    version: int = 0
    messages: tuple[Message, ...] = ()
    drafts: tuple[Draft, ...] = ()
    turn: OpenTurn | None = None

    @property
    def history(self) -> tuple[Message, ...]:
        """What the model is given: the messages, and the finished steps of the turn under way."""
        return self.messages + (self.turn.steps if self.turn else ())

    def __repr__(self) -> str:
        told = [repr(self.session_id), f"version={self.version}"]
        told.append(f"messages={_kinds(self.messages)}")
        if self.turn:
            told.append(f"checkpoint={_kinds(self.turn.steps)}")
        told.append(f"drafts={[(draft.text, draft.reason) for draft in self.drafts]}")
        return f"Session({', '.join(told)})"


def begin_turn(session: Session, text: str) -> Session:
    """The user's message is the first step; a turn that a crash left open is closed before it."""
    if session.turn:
        session = close_turn(session, "crash")  # breakpoint: checkpoint restored
    return replace(session, turn=OpenTurn((Message(USER, text),)))


def show(session: Session, text: str) -> Session:
    """More text of the answer under way is about to be shown."""
    turn = _open(session)
    return replace(session, turn=replace(turn, draft=turn.draft + text))


def add_step(session: Session, step: Message) -> Session:
    """A step has finished; an assistant's row takes the place of the draft it was shown as."""
    turn = _open(session)
    draft = "" if step.role == ASSISTANT else turn.draft
    return replace(session, turn=replace(turn, steps=(*turn.steps, step), draft=draft))


def begin_call(session: Session, call_id: str) -> Session:
    """A tool call is about to run."""
    turn = _open(session)
    return replace(session, turn=replace(turn, running=(*turn.running, call_id)))


def end_call(session: Session, call_id: str, content: str, status: str) -> Session:
    """A tool call has its result; results stand in the order of the calls, not of their ends."""
    turn = _open(session)
    result = Message(TOOL, content, call_id=call_id, status=status)
    steps = tuple(_in_order([*turn.steps, result]))
    running = tuple(other for other in turn.running if other != call_id)
    return replace(session, turn=replace(turn, steps=steps, running=running))


def finish_turn(session: Session, answer: str) -> Session:
    """The turn has come to its answer."""
    steps = add_step(session, Message(ASSISTANT, answer)).history
    return replace(session, messages=steps, turn=None)


def close_turn(session: Session, reason: str) -> Session:
    """The turn ends without an answer: what happened is kept, what is open is marked.

    A session without an open turn stays as it is.
    """
    if session.turn is None:
        return session
    turn, drafts = session.turn, session.drafts
    if turn.draft:
        drafts = (*drafts, Draft(turn.draft, reason))  # breakpoint: draft kept
    rows = (*session.messages, *_answered(turn.steps, turn.running))
    note = Message(NOTE, f"This turn ended without an answer: {reason}.")
    return replace(session, messages=(*rows, note), drafts=drafts, turn=None)


def unanswered(session: Session, text: str, reason: str) -> Session:
    """A message whose turn never began."""
    return close_turn(begin_turn(session, text), reason)


def repaired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """A history in which each call has exactly one result, and each question an end.

    For messages from outside: a result that is missing is unknown, one that nobody asked for or
    that comes twice is left out, and a question at the very end gets a note.
    """
    kept: list[Message] = []
    for message in messages:
        waiting = _unanswered(kept)
        if message.role == TOOL and message.call_id not in waiting:
            continue
        if message.role != TOOL:
            kept = _answered(kept, waiting)
        kept.append(message)
    kept = _answered(kept, _unanswered(kept))
    if kept and kept[-1].role in (USER, TOOL):
        kept.append(Message(NOTE, "This turn ended without an answer: crash."))
    return tuple(kept)


def _answered(steps: Iterable[Message], running: Iterable[str]) -> list[Message]:
    """The steps, with a result for each call that has none."""
    answered, begun = list(steps), tuple(running)
    waiting = _unanswered(answered)
    for call_id in waiting:
        status = UNKNOWN if call_id in begun else NOT_STARTED  # breakpoint: call marked
        answered.append(Message(TOOL, _LEFT[status], call_id=call_id, status=status))
    return _in_order(answered) if waiting else answered


def _in_order(steps: Sequence[Message]) -> list[Message]:
    """The steps, the results at their end in the order of the calls that they belong to."""
    asked = next(n for n in reversed(range(len(steps))) if steps[n].calls)
    order = [call.call_id for call in steps[asked].calls]
    results = sorted(steps[asked + 1 :], key=lambda result: order.index(result.call_id))
    return [*steps[: asked + 1], *results]


def _unanswered(steps: Sequence[Message]) -> list[str]:
    """The ids of the calls of the last assistant's row that have no result yet."""
    answered = set()
    for step in reversed(steps):
        if step.role != TOOL:
            return [call.call_id for call in step.calls if call.call_id not in answered]
        answered.add(step.call_id)
    return []


def _open(session: Session) -> OpenTurn:
    if session.turn is None:
        raise SessionError(f"no turn is open in session {session.session_id!r}: begin one first")
    return session.turn


def _kinds(messages: Iterable[Message]) -> list[str]:
    return [f"{m.role} ({m.status})" if m.status else m.role for m in messages]
