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

# provider -> our word -> theirs
_THEIRS: Final[Mapping[str, Mapping[str, str]]] = {
    "openai-chat": {
        STOP: "stop",
        LENGTH: "length",
        TOOL_CALLS: "tool_calls function_call",
        REFUSED: "content_filter",
    },
    "openai-responses": {  # the response's status, or why it is incomplete
        STOP: "completed",
        LENGTH: "max_output_tokens",
        REFUSED: "content_filter",
        ERROR: "failed cancelled",
    },
    "anthropic": {
        STOP: "end_turn stop_sequence",
        LENGTH: "max_tokens model_context_window_exceeded",
        TOOL_CALLS: "tool_use",
        REFUSED: "refusal",
    },
    "gemini": {
        STOP: "STOP",
        LENGTH: "MAX_TOKENS",
        REFUSED: "SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII LANGUAGE",
        ERROR: "MALFORMED_FUNCTION_CALL",
    },
}
_WORDS: Final = {
    provider: {word: ours for ours, words in theirs.items() for word in words.split()}
    for provider, theirs in _THEIRS.items()
}


def finish_reason(provider: str, word: str) -> str:
    """One of `REASONS`; "" stays "", since an answer without a finish reason has not ended.

    Raises `ValueError` for a provider that is not known.
    """
    if provider not in _WORDS:
        raise ValueError(f"no provider {provider!r}; there is: {', '.join(_WORDS)}")
    return _WORDS[provider].get(word, UNKNOWN) if word else ""
