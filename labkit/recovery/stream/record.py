"""A streamed answer as a record: what has come, what was run, and whose it is.

The record is changed by events and by nothing else, one after the other by number. An event that
is there already is dropped; a gap is an error, since text with a hole in it reads like an answer.

    run = StreamRun("run-1", Owner("ann", "acme"), StreamRequest("Where is my refund?"))
    run = apply_event(run, StreamEvent(0, text_delta="It was "), now=1.0)
    run.text, run.next_sequence        # ('It was ', 1)
"""

import json
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..errors import RecoveryError
from .finish import REASONS, TOOL_CALLS

RUNNING: Final = "running"
RETRYING: Final = "retrying"
INTERRUPTED: Final = "interrupted"
STOPPED: Final = "stopped"
FAILED: Final = "failed"
COMPLETED: Final = "completed"

CUT_OFF: Final = "the call was cut off before it was complete"
FINAL: Final = frozenset({STOPPED, COMPLETED})  # a failed one can be continued by hand


class StreamError(RecoveryError):
    """Base of what a record refuses; it is as it was before."""


class SequenceGap(StreamError):
    """An event is missing: ask for the events after the last one, or ask again; never splice."""


class StreamEnded(StreamError):
    """The answer is finished or was stopped: nothing more belongs to it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who may open a record: both must match."""

    user: str
    tenant: str


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """What was asked, so that it can be asked again as it was.

    `tools`: the names of those offered. `structured`: the answer must be one JSON value.
    """

    question: str
    system_version: str = ""
    model: str = ""
    tools: tuple[str, ...] = ()
    structured: bool = False


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event: `sequence` counts from 0 within the record; the rest is empty where not meant.

    `finish_reason` is one of `REASONS`. `call_id` says whose `arguments_delta` it is; `tool_name`
    comes with the call's first piece. `event_id` is the provider's own number, where it has one.
    """

    sequence: int
    text_delta: str = ""
    finish_reason: str = ""
    call_id: str = ""
    tool_name: str = ""
    arguments_delta: str = ""
    event_id: str = ""

    def __post_init__(self) -> None:
        if self.sequence < 0:
            raise ValueError(f"sequence is {self.sequence}, and counts from 0")
        if self.finish_reason and self.finish_reason not in REASONS:
            known = f"normalise it first; there is: {', '.join(REASONS)}"
            raise ValueError(f"finish_reason is {self.finish_reason!r}: {known}")
        if (self.tool_name or self.arguments_delta) and not self.call_id:
            raise ValueError("a piece of a tool call needs the call_id that it belongs to")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as it came in: `arguments` is the raw text, whole or not."""

    call_id: str
    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Executed:
    """A call that was run: it is looked up by `key`, never run again."""

    key: str
    call_id: str
    name: str
    result: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that was not run, with its raw arguments and the reason, which the model is told."""

    call_id: str
    name: str
    arguments: str
    reason: str


_TOLD: Final = (
    "text next_sequence finish_reason cause calls executed refused attempt recoveries continued"
).split()


@dataclass(frozen=True, slots=True, repr=False)
class StreamRun:
    """The record of one answer. Times are seconds on the clock of whoever passes `now`.

    `chunks`: all text that came; the answer begins at number `answer_from`, and what stands before
    it are drafts that were asked for again. `first_cause`, `cause`: the kinds of the first error
    and of the last, "" where there was none. `attempt` counts the requests sent, `recoveries`
    those of them that the program made by itself since `recovering_since`, and `continued` the
    characters that those brought. `calls`: those of this attempt; `executed`, `refused`: of all.
    `version` rises with each stored change, so that of two writers one is refused;
    `stored_chunks` have been written.
    """

    run_id: str
    owner: Owner = field(repr=False)
    request: StreamRequest = field(default=StreamRequest(""), repr=False)
    status: str = RUNNING
    next_sequence: int = 0
    chunks: tuple[str, ...] = ()
    answer_from: int = 0
    finish_reason: str = ""
    first_cause: str = ""
    cause: str = ""
    last_event_at: float | None = None
    last_event_id: str = ""
    calls: tuple[ToolCall, ...] = ()
    executed: tuple[Executed, ...] = ()
    refused: tuple[Refused, ...] = ()
    attempt: int = 1
    recoveries: int = 0
    continued: int = 0
    recovering_since: float | None = None
    version: int = 0
    stored_chunks: int = 0

    @property
    def text(self) -> str:
        """The text of the answer so far: a draft until the status is completed."""
        return "".join(self.chunks[self.answer_from :])

    def __repr__(self) -> str:
        told = {name: getattr(self, name) for name in _TOLD if getattr(self, name)}
        parts = [repr(self.run_id), self.status, *(f"{k}={v!r}" for k, v in told.items())]
        return f"StreamRun({', '.join(parts)})"


def apply_event(run: StreamRun, event: StreamEvent, *, now: float) -> StreamRun:
    """The record after `event`, received at `now`; the same record for one that was there already.

    Raises `SequenceGap` for one that comes too early, `StreamEnded` where nothing more belongs.
    """
    if event.sequence < run.next_sequence:  # breakpoint: duplicate check
        return run
    if event.sequence > run.next_sequence:  # breakpoint: gap check
        told = f"event {event.sequence} came where {run.next_sequence} must come"
        raise SequenceGap(f"{told}: nothing is skipped")
    if run.status in FINAL:
        raise StreamEnded(f"the answer is {run.status}: event {event.sequence} is not added")
    return replace(
        run,
        chunks=(*run.chunks, event.text_delta) if event.text_delta else run.chunks,
        calls=_with_piece(run.calls, event),
        finish_reason=run.finish_reason or event.finish_reason,  # the first one counts
        last_event_at=now,
        last_event_id=event.event_id or run.last_event_id,
        next_sequence=run.next_sequence + 1,
    )


def _with_piece(calls: tuple[ToolCall, ...], event: StreamEvent) -> tuple[ToolCall, ...]:
    if not event.call_id:
        return calls
    if all(call.call_id != event.call_id for call in calls):
        return (*calls, ToolCall(event.call_id, event.tool_name, event.arguments_delta))
    return tuple(
        replace(
            call,
            name=call.name or event.tool_name,
            arguments=call.arguments + event.arguments_delta,
        )
        if call.call_id == event.call_id
        else call
        for call in calls
    )


def interrupt(run: StreamRun, cause: str) -> StreamRun:
    """The record after its stream broke with an error of the kind `cause`; a stop stays a stop."""
    if run.status in FINAL:
        return run
    return replace(run, status=INTERRUPTED, first_cause=run.first_cause or cause, cause=cause)


def stop(run: StreamRun) -> StreamRun:
    """The record after its user's stop, which is final; what is completed stays so."""
    return run if run.status in FINAL else replace(run, status=STOPPED, cause="")


def new_attempt(run: StreamRun, *, afresh: bool = False) -> StreamRun:
    """The record before another request: the half calls of the one before are refused.

    The text is kept in any case; `afresh`: what comes is another answer, not more of this one.
    """
    if run.status in FINAL:
        raise StreamEnded(f"the answer is {run.status}: it is not asked again")
    refused = tuple(
        Refused(call.call_id, call.name, call.arguments, CUT_OFF)
        for call in run.calls
        if not _answered(run, call)
    )
    return replace(
        run,
        status=RUNNING,
        attempt=run.attempt + 1,
        calls=(),
        refused=run.refused + refused,
        finish_reason="",
        answer_from=len(run.chunks) if afresh else run.answer_from,
    )


def _answered(run: StreamRun, call: ToolCall) -> bool:
    """Whether it was run or refused; another attempt may have used its id for another call."""
    if any((no.call_id, no.arguments) == (call.call_id, call.arguments) for no in run.refused):
        return True
    ran = any((done.call_id, done.name) == (call.call_id, call.name) for done in run.executed)
    return ran and parse_complete_tool_call(run, call.call_id, takes_nothing=True) is not None


def parse_complete_tool_call(
    run: StreamRun, call_id: str, *, takes_nothing: bool = False
) -> dict[str, Any] | None:
    """The arguments of a call, or None unless they are one complete JSON object.

    Nothing is repaired: the end of a cut text is not known. No text at all stands for `{}` only
    after a finish reason of tool calls, and where the tool `takes_nothing`. Raises `KeyError` for
    a call that is not there.
    """
    raw = _call(run, call_id).arguments
    if not raw.strip():
        return {} if takes_nothing and run.finish_reason == TOOL_CALLS else None
    return arguments_of(raw)


def arguments_of(raw: str) -> dict[str, Any] | None:
    """The arguments in `raw`, or None unless that is one complete JSON object."""
    try:
        value = strict_json(raw)  # breakpoint: complete JSON check
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _call(run: StreamRun, call_id: str) -> ToolCall:
    for call in run.calls:
        if call.call_id == call_id:
            return call
    there = ", ".join(call.call_id for call in run.calls) or "none"
    raise KeyError(f"no call {call_id!r} in this attempt; there is: {there}")


def strict_json(text: str) -> Any:
    """The value of `text`; raises `ValueError` for anything that is not JSON to the letter."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
