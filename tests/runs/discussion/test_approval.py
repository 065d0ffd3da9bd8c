"""A person's yes: to exactly these arguments, for a while, and only if it is one."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.runs.discussion.approval import APPROVE, approval_of, digest_of, refusal

from .kit import call

CALL = call(until=100.0, to="team", text="v1")
YES = {"answer": APPROVE, "digest": digest_of(CALL)}


def test_a_person_is_shown_what_is_approved_and_until_when() -> None:
    shown = approval_of(CALL)
    assert shown["arguments"] == {"to": "team", "text": "v1"}
    assert (shown["id"], shown["kind"], shown["tool"]) == ("ask-1", "approval", "send_mail")
    assert (shown["digest"], shown["until"]) == (digest_of(CALL), 100.0)


def test_the_order_of_the_names_makes_no_other_arguments() -> None:
    assert digest_of(call(a=1, b=2)) == digest_of(call(b=2, a=1))


@pytest.mark.parametrize(
    ("one", "other"),
    [(5, 5.0), (5, "5"), (1, True), ("é", "e\u0301"), ("a", "A"), ("", None), ("团队", "团隊")],
)
def test_arguments_that_are_not_exactly_the_same_have_another_digest(one: Any, other: Any) -> None:
    assert digest_of(call(to=one)) != digest_of(call(to=other))


def test_another_tool_with_these_arguments_is_not_approved() -> None:
    assert digest_of(call("create_ticket", to="x")) != digest_of(call("send_mail", to="x"))


def test_a_yes_counts_before_its_end_and_not_at_that_second() -> None:
    assert refusal(CALL, YES, now=99.999) == ""
    assert "too late" in refusal(CALL, YES, now=100.0)
    assert "too late" in refusal(CALL, YES, now=1e9)


@pytest.mark.parametrize("digest", [None, "", digest_of(call(to="team", text="v2")), 7, ["x"]])
def test_a_yes_to_something_else_is_none(digest: Any) -> None:
    assert "something else" in refusal(CALL, {**YES, "digest": digest}, now=0.0)


@pytest.mark.parametrize(
    "word",
    [
        None,
        "approve",
        True,
        [APPROVE],
        {},
        {"digest": YES["digest"]},
        *({**YES, "answer": said} for said in ("reject", "Approve", " approve", "yes", True, None)),
    ],
)
def test_whatever_is_no_clear_yes_is_a_no(word: Any) -> None:
    assert refusal(CALL, word, now=0.0) == "a person said no"
