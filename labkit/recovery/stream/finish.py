"""The words with which providers end an answer, as five of our own.

stop: the model has ended by itself. length: a limit cut it. tool_calls: it waits for its tools.
refused: a filter cut it. error: it failed. A word that no table knows is "unknown", never "stop".

    finish_reason("anthropic", "max_tokens")     # 'length'

Sources: the providers' public API references for streaming, as of November 2026.
"""

from collections.abc import Mapping
from typing import Final

STOP: Final = "stop"
LENGTH: Final = "length"
TOOL_CALLS: Final = "tool_calls"
REFUSED: Final = "refused"
ERROR: Final = "error"
UNKNOWN: Final = "unknown"

REASONS: Final = (STOP, LENGTH, TOOL_CALLS, REFUSED, ERROR, UNKNOWN)

_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "openai-chat": {
        "stop": STOP,
        "length": LENGTH,
        "tool_calls": TOOL_CALLS,
        "function_call": TOOL_CALLS,
        "content_filter": REFUSED,
    },
    "openai-responses": {  # the response's status, or why it is incomplete
        "completed": STOP,
        "max_output_tokens": LENGTH,
        "content_filter": REFUSED,
        "failed": ERROR,
        "cancelled": ERROR,
    },
    "anthropic": {
        "end_turn": STOP,
        "stop_sequence": STOP,
        "max_tokens": LENGTH,
        "model_context_window_exceeded": LENGTH,
        "tool_use": TOOL_CALLS,
        "refusal": REFUSED,
    },
    "gemini": {
        "STOP": STOP,
        "MAX_TOKENS": LENGTH,
        "SAFETY": REFUSED,
        "RECITATION": REFUSED,
        "BLOCKLIST": REFUSED,
        "PROHIBITED_CONTENT": REFUSED,
        "SPII": REFUSED,
        "LANGUAGE": REFUSED,
        "MALFORMED_FUNCTION_CALL": ERROR,
    },
}


def finish_reason(provider: str, word: str) -> str:
    """One of `REASONS`; "" stays "", since an answer without a finish reason has not ended.

    Raises `ValueError` for a provider that is not known.
    """
    if provider not in _WORDS:
        raise ValueError(f"no provider {provider!r}; there is: {', '.join(_WORDS)}")
    return _WORDS[provider].get(word, UNKNOWN) if word else ""
