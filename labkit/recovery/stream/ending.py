"""How a stream ended, and what to do about it: two plain functions of the record.

"It broke" is not one thing. A lost connection may be taken up again, a cut answer may be continued,
half a tool call or half a JSON value can only be asked for again, and a user's stop is final.

    kind = classify_end(run)                                       # 'transport_interrupted'
    choose_recovery(run, can_resume=False, can_continue=True)      # 'request_continuation'
"""

from dataclasses import dataclass
from typing import Final

from .finish import ERROR, LENGTH, REFUSED, STOP, TOOL_CALLS, UNKNOWN
from .record import INTERRUPTED, STOPPED, StreamRun, ToolCall, parse_complete_tool_call, strict_json

# how it ended
WHOLE: Final = "completed"
CALLS_READY: Final = "tool_calls_ready"
HALF_CALL: Final = "interrupted_tool_call"
AT_LIMIT: Final = "truncated_by_limit"
CUT_STRUCTURED: Final = "cut_structured"
TRANSPORT: Final = "transport_interrupted"
GATEWAY: Final = "gateway_timeout"
BY_USER: Final = "stopped_by_user"
BLOCKED: Final = "refused"
STILL_RUNNING: Final = "still_running"

# what to do
RESUME: Final = "resume_events"
CONTINUE: Final = "request_continuation"
RESTART_CALL: Final = "restart_tool_call"
ASK_AGAIN: Final = "ask_again"
RUN_TOOLS: Final = "run_tools"
SHOW: Final = "show_result"
KEEP: Final = "keep_partial"
INSPECT: Final = "inspect_task"

# What no other try mends: the text stays, and a person decides.
FINAL_CAUSES: Final = frozenset({"auth", "permission", "bad_request", "quota", "deadline", "limit"})


def classify_end(run: StreamRun) -> str:
    """How the answer stands: the one place that reads the finish reason.

    A finish reason alone proves nothing: what it belongs to must be whole as well.
    """
    if run.status == STOPPED:  # breakpoint: stop is final
        return BY_USER
    broken = run.status == INTERRUPTED and not run.finish_reason
    if not broken and not run.finish_reason:
        return STILL_RUNNING
    if run.finish_reason == REFUSED:
        return BLOCKED
    if run.calls or run.finish_reason == TOOL_CALLS:
        whole = run.finish_reason in (STOP, TOOL_CALLS) and _all_complete(run)
        return CALLS_READY if whole else HALF_CALL
    if run.request.structured and not (run.finish_reason == STOP and _is_json(run.text)):
        return CUT_STRUCTURED
    if broken or run.finish_reason in (ERROR, UNKNOWN):
        return GATEWAY if run.cause == "timeout" else TRANSPORT
    return AT_LIMIT if run.finish_reason == LENGTH else WHOLE


def choose_recovery(run: StreamRun, *, can_resume: bool, can_continue: bool) -> str:
    """What brings the answer back. Both capabilities are configuration, proved by a real cut.

    `can_resume`: the service keeps the task and its events, and takes a cursor. `can_continue`: the
    target accepts a request to go on from a draft.
    """
    end = classify_end(run)
    if end in _PLAIN:
        return _PLAIN[end]
    if run.cause in FINAL_CAUSES:
        return KEEP
    if can_resume and not run.finish_reason:  # the task may still be writing
        return RESUME
    if end == HALF_CALL:
        return RESTART_CALL
    if end == CUT_STRUCTURED:
        return ASK_AGAIN
    if _may_continue(run, can_continue=can_continue):
        return CONTINUE
    return KEEP if end == AT_LIMIT else ASK_AGAIN  # the same question meets the same limit


def _may_continue(run: StreamRun, *, can_continue: bool) -> bool:
    """Whether a request to go on may be sent: not while tools are offered and none has run."""
    confirmed = not run.request.tools or bool(run.executed)
    return can_continue and confirmed and run.text != ""


_PLAIN: Final = {
    WHOLE: SHOW,
    CALLS_READY: RUN_TOOLS,
    BY_USER: KEEP,
    BLOCKED: KEEP,
    STILL_RUNNING: INSPECT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryLimits:
    """How far the program goes by itself: recoveries, seconds in all, characters continued."""

    recoveries: int = 2
    seconds: float = 45.0
    characters: int = 4_000

    def __post_init__(self) -> None:
        for name in ("recoveries", "seconds", "characters"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} is {getattr(self, name)!r}, and must be at least 0")


DEFAULT_LIMITS: Final = RecoveryLimits()


def can_recover(
    recoveries: int,
    elapsed: float,
    characters: int = 0,
    *,
    limits: RecoveryLimits = DEFAULT_LIMITS,
) -> bool:
    """Whether one more recovery is allowed after so many, so many seconds and characters."""
    used = (recoveries, elapsed, characters)
    most = (limits.recoveries, limits.seconds, limits.characters)
    return all(so_far < limit for so_far, limit in zip(used, most, strict=True))


def _all_complete(run: StreamRun) -> bool:
    return bool(run.calls) and all(_complete(run, call) for call in run.calls)


def _complete(run: StreamRun, call: ToolCall) -> bool:
    """Whether the call can be checked; whether its tool may have no arguments is asked later."""
    return parse_complete_tool_call(run, call.call_id, takes_nothing=True) is not None


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except ValueError:
        return False
    return True
