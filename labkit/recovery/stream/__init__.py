"""A streamed answer as a record, how it ended, and how it is brought back."""

from .continuation import (
    ContinuationContext,
    Joint,
    Message,
    Request,
    continuation_context,
    continuation_request,
    first_request,
    merge_overlap,
)
from .ending import RecoveryLimits, can_recover, choose_recovery, classify_end, limit_reached
from .finish import finish_reason
from .numbering import Numbering
from .record import (
    Executed,
    Owner,
    SequenceGap,
    StreamEnded,
    StreamError,
    StreamEvent,
    StreamRequest,
    StreamRun,
    ToolCall,
    apply_event,
    interrupt,
    new_attempt,
    parse_complete_tool_call,
    stop,
)
from .store import StaleRecord, StreamExists, StreamStore, UnknownStream

__all__ = [
    "ContinuationContext",
    "Executed",
    "Joint",
    "Message",
    "Numbering",
    "Owner",
    "RecoveryLimits",
    "Request",
    "SequenceGap",
    "StaleRecord",
    "StreamEnded",
    "StreamError",
    "StreamEvent",
    "StreamExists",
    "StreamRequest",
    "StreamRun",
    "StreamStore",
    "ToolCall",
    "UnknownStream",
    "apply_event",
    "can_recover",
    "choose_recovery",
    "classify_end",
    "continuation_context",
    "continuation_request",
    "finish_reason",
    "first_request",
    "interrupt",
    "limit_reached",
    "merge_overlap",
    "new_attempt",
    "parse_complete_tool_call",
    "stop",
]
