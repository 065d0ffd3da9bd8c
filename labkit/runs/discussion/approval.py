"""A person's yes to one call of a tool: bound to its exact arguments, for a while, for one effect.

Rules: what was shown is what is approved, by a digest of tool and arguments; after its time a yes
counts no more; whatever is no clear yes is a no. That it is used once, the effect's key sees to.

    ask = approval_of(call)                # {"id": "ask-1", "kind": "approval", "digest": ...}
    refusal(call, {"answer": "approve", "digest": ask["digest"]}, now=now)      # "", so it may run
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from .talk import Call

QUESTION: Final = "question"
APPROVAL: Final = "approval"
APPROVE: Final = "approve"
REJECT: Final = "reject"
OVER: Final = "the approval came too late, or is over"
VALID: Final = 3600.0  # seconds that an approval is waited for, and counts


def digest_of(call: Call) -> str:
    """Of tool and arguments: other arguments have another one."""
    told = json.dumps([call["tool"], call["arguments"]], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


def approval_of(call: Call) -> dict[str, Any]:
    """What a person is shown."""
    return {
        "id": call["id"],
        "kind": APPROVAL,
        "question": f"May {call['tool']} run?",
        "tool": call["tool"],
        "arguments": call["arguments"],
        "digest": digest_of(call),
        "until": call["until"],
    }


def refusal(call: Call, word: object, *, now: float) -> str:
    """Why the call may not run after a person's `word`, or ""."""
    word = word if isinstance(word, Mapping) else {}
    if word.get("answer") != APPROVE:
        return "a person said no"
    if word.get("digest") != digest_of(call):  # breakpoint: bound to the arguments
        return "a person approved something else"
    if now >= call["until"]:  # breakpoint: approval over
        return OVER
    return ""
