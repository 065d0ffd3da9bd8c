"""A streamed answer as a record, how it ended, and how it is brought back."""

from .continuation import continuation_context, continuation_request, merge_overlap
from .ending import RecoveryLimits, can_recover, choose_recovery, classify_end
from .finish import finish_reason
from .record import (
    Owner,
    StreamEvent,
    StreamRequest,
    StreamRun,
    apply_event,
    parse_complete_tool_call,
)

__all__ = [
    "Owner",
    "RecoveryLimits",
    "StreamEvent",
    "StreamRequest",
    "StreamRun",
    "apply_event",
    "can_recover",
    "choose_recovery",
    "classify_end",
    "continuation_context",
    "continuation_request",
    "finish_reason",
    "merge_overlap",
    "parse_complete_tool_call",
]
