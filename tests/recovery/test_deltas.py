"""What a reader has seen, and what shows that the model moves on."""

import pytest

from labkit.recovery.deltas import KINDS, Delta

# delta -> visible, progress
PIECES = [
    (Delta("role", "assistant"), False, False),
    (Delta("text", "Hel"), True, True),
    (Delta("text", " "), True, True),
    (Delta("text", ""), False, False),
    (Delta("thinking", "hm"), False, True),
    (Delta("thinking", ""), False, False),
    (Delta("tool_call", "", 0, "c1", "look_up"), False, True),
    (Delta("tool_call", "{", 0), False, True),
    (Delta("tool_call", "", 0), False, False),
    (Delta("usage", tokens_in=5, tokens_out=1), False, False),
    (Delta("finish", reason="stop"), False, True),
]


@pytest.mark.parametrize(("delta", "visible", "progress"), PIECES, ids=repr)
def test_only_text_is_visible_and_only_news_is_progress(
    delta: Delta, visible: bool, progress: bool
) -> None:
    assert (delta.visible, delta.progress) == (visible, progress)


def test_each_kind_of_delta_is_in_the_table_above() -> None:
    assert {delta.kind for delta, _, _ in PIECES} == set(KINDS)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind 'tex'; there is: role, text"):
        Delta("tex", "Hel")


def test_the_text_form_leaves_out_what_is_empty() -> None:
    assert repr(Delta("text", "Hel")) == "Delta('text', text='Hel')"
    assert repr(Delta("tool_call", "{", 0)) == "Delta('tool_call', text='{', index=0)"
    assert repr(Delta("usage", tokens_in=5)) == "Delta('usage', tokens_in=5)"
    assert repr(Delta("role")) == "Delta('role')"
