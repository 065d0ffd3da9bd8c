"""The providers' words for an end, and the captures that hold them."""

import json
from pathlib import Path

import pytest

from labkit.recovery.stream import finish_reason

EXPECTED = json.loads(
    (Path(__file__).parents[3] / "data/golden/expected.json").read_text(encoding="utf-8")
)
PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "gemini")


@pytest.mark.parametrize(
    ("provider", "word", "reason"),
    [
        ("openai-chat", "stop", "stop"),
        ("openai-chat", "length", "length"),
        ("openai-chat", "tool_calls", "tool_calls"),
        ("openai-chat", "function_call", "tool_calls"),
        ("openai-chat", "content_filter", "refused"),
        ("openai-responses", "completed", "stop"),
        ("openai-responses", "max_output_tokens", "length"),
        ("openai-responses", "failed", "error"),
        ("anthropic", "end_turn", "stop"),
        ("anthropic", "max_tokens", "length"),
        ("anthropic", "tool_use", "tool_calls"),
        ("anthropic", "refusal", "refused"),
        ("gemini", "STOP", "stop"),
        ("gemini", "MAX_TOKENS", "length"),
        ("gemini", "SAFETY", "refused"),
        ("gemini", "MALFORMED_FUNCTION_CALL", "error"),
    ],
)
def test_a_providers_word_has_one_meaning(provider: str, word: str, reason: str) -> None:
    assert finish_reason(provider, word) == reason


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_word_that_is_not_known_is_no_stop_and_none_is_none(provider: str) -> None:
    assert finish_reason(provider, "brand_new") == "unknown"
    assert finish_reason(provider, "") == ""


def test_the_words_in_the_captures_are_all_known() -> None:
    words = {
        (next(p for p in PROVIDERS if name.startswith(p)), told["finish"])
        for name, told in EXPECTED.items()
        if "finish" in told
    }
    assert len(words) >= 6
    assert all(finish_reason(provider, word) != "unknown" for provider, word in words)


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no provider 'acme'.*openai-chat, openai-responses"):
        finish_reason("acme", "stop")
