"""What goes out with a continuation, and how what comes back is joined."""

from dataclasses import replace
from random import Random

import pytest

from labkit.recovery.stream import (
    StreamRequest,
    continuation_context,
    continuation_request,
    merge_overlap,
)
from labkit.recovery.stream.continuation import Joint, first_request
from labkit.recovery.stream.record import Executed

from .making import record, say

REQUEST = StreamRequest("Where is my refund?", system_version="desk-3", model="m", tools=("look",))
DRAFT = "It was sent on {Mon"
DONE = (Executed("k1", "c0", "look", "sent on Monday"),)
RUN = replace(record(say("It was sent "), say("on {Mon"), request=REQUEST), executed=DONE)


def test_the_context_holds_what_is_needed_to_ask_as_before() -> None:
    context = continuation_context(RUN)
    assert (context.question, context.system_version, context.model, context.tools) == (
        REQUEST.question,
        "desk-3",
        "m",
        ("look",),
    )
    assert (context.confirmed, context.draft, context.last_sequence) == (DONE, DRAFT, 1)


def test_the_draft_is_quoted_and_is_never_an_assistants_message() -> None:
    request = continuation_request(continuation_context(RUN))
    assert [message.role for message in request.messages] == ["user", "tool", "user"]
    holding = [message for message in request.messages if DRAFT in message.content]
    assert [message.role for message in holding] == ["user"]
    assert (request.system_version, request.model, request.tools) == ("desk-3", "m", ("look",))


def test_asking_again_sends_the_question_and_the_confirmed_results_and_no_draft() -> None:
    request = first_request(RUN)
    assert [message.content for message in request.messages] == [
        REQUEST.question,
        "look: sent on Monday",
    ]


# --- the joint


@pytest.mark.parametrize(
    ("prefix", "suffix", "merged"),
    [
        ("First open ", "First open the door.", "First open the door."),
        ("abcd", "abcd", "abcd"),
        ("abc", "abc", "abcabc"),
        ("abcabc", "abcabcd", "abcabcd"),
        ("x" * 100, "x" * 90 + "y", "x" * 100 + "x" * 10 + "y"),
        ("", "Hi", "Hi"),
        ("Hi there", "", "Hi there"),
        (
            "Open it, then wait.",
            "open it, then wait. Go.",
            "Open it, then wait.open it, then wait. Go.",
        ),
    ],
)
def test_only_equal_characters_of_at_least_four_are_cut(
    prefix: str, suffix: str, merged: str
) -> None:
    assert merge_overlap(prefix, suffix) == merged


def test_a_minimum_of_one_loses_a_digit_and_four_does_not() -> None:
    assert merge_overlap("The price is 10", "0 yen", min_overlap=1) == "The price is 10 yen"
    assert merge_overlap("The price is 10", "0 yen") == "The price is 100 yen"


def test_a_minimum_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        merge_overlap("a", "b", min_overlap=0)


@pytest.mark.parametrize("seed", range(30))
def test_pieces_are_joined_like_the_whole_however_they_are_cut(seed: int) -> None:
    random = Random(seed)
    for _ in range(200):
        draft = "".join(random.choices("ab ", k=random.randrange(30)))
        suffix = "".join(random.choices("ab ", k=random.randrange(30)))
        if random.random() < 0.7:
            suffix = draft[random.randrange(len(draft) + 1) :] + suffix
        window, least = random.choice([3, 8, 80]), random.choice([1, 2, 4])
        joint = Joint(draft, window=window, min_overlap=least)
        shown, rest = draft, suffix
        while rest:
            size = random.randrange(1, 5)
            shown += joint.push(rest[:size])
            rest = rest[size:]
        shown += joint.end()
        assert shown == merge_overlap(draft, suffix, window=window, min_overlap=least)


def test_nothing_is_held_back_that_cannot_repeat_the_end() -> None:
    joint = Joint("It was sent")
    assert joint.push(" on Monday") == " on Monday"
    assert joint.push("It was sent") == "It was sent"  # the joint is made: no second cut


def test_what_may_repeat_the_end_is_held_back_until_that_is_known() -> None:
    joint = Joint("It was sent")
    assert joint.push("was ") == ""
    assert joint.push("sent on Monday") == " on Monday"


def test_nothing_is_held_back_for_a_repeat_that_would_be_too_short_to_be_cut() -> None:
    joint = Joint("The price is 10")
    assert joint.push("1") == "1"
