"""What a session keeps through every change, and a history from outside that is repaired."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.recovery.session import (
    ASSISTANT,
    DONE,
    NOT_STARTED,
    NOTE,
    TOOL,
    UNKNOWN,
    USER,
    Draft,
    Message,
    OpenTurn,
    Session,
    SessionError,
    add_step,
    begin_call,
    begin_turn,
    close_turn,
    end_call,
    finish_turn,
    repaired,
    show,
)
from labkit.recovery.stream.record import ToolCall

NEW = Session("ann")
ASKED = Message(ASSISTANT, "Let me look.", calls=tuple(ToolCall(name, "look_up") for name in "abc"))


def asked() -> Session:
    """A turn in which three calls were asked for."""
    return add_step(show(begin_turn(NEW, "Where?"), "Let me look."), ASKED)


def results(session: Session) -> list[tuple[str, str]]:
    return [(row.call_id, row.status) for row in session.history if row.role == TOOL]


def test_the_model_is_given_the_messages_and_the_steps_of_the_turn_under_way() -> None:
    before = finish_turn(begin_turn(NEW, "Hi"), "Hello.")
    session = begin_turn(before, "Where?")
    assert [row.content for row in session.history] == ["Hi", "Hello.", "Where?"]
    assert session.messages == before.messages


def test_text_that_is_shown_is_a_draft_until_the_step_it_belongs_to_takes_its_place() -> None:
    session = show(show(begin_turn(NEW, "Where?"), "It "), "is ")
    assert session.turn
    assert session.turn.draft == "It is "
    after = add_step(session, Message(ASSISTANT, "It is there."))
    assert after.turn
    assert after.turn.draft == ""


def test_a_message_that_joins_the_turn_does_not_take_the_drafts_place() -> None:
    session = add_step(show(begin_turn(NEW, "Where?"), "It "), Message(USER, "and mine?"))
    assert close_turn(session, "stopped").drafts == (Draft("It ", "stopped"),)


def test_results_stand_in_the_order_of_the_calls_and_not_of_their_ends() -> None:
    session = asked()
    for name in "abc":
        session = begin_call(session, name)
    for name in "cab":
        session = end_call(session, name, f"result of {name}", DONE)
    assert [row.call_id for row in session.history if row.role == TOOL] == ["a", "b", "c"]
    assert session.turn
    assert session.turn.running == ()


def test_results_belong_to_the_last_calls_also_where_there_were_calls_before() -> None:
    session = end_call(end_call(end_call(asked(), "a", "", DONE), "b", "", DONE), "c", "", DONE)
    again = Message(ASSISTANT, "", calls=(ToolCall("d", "look_up"), ToolCall("e", "look_up")))
    session = end_call(add_step(session, again), "e", "", DONE)
    session = end_call(session, "d", "", DONE)
    assert [row.call_id for row in session.history if row.role == TOOL] == list("abcde")


def test_closing_marks_what_ran_as_unknown_and_the_rest_as_not_started_in_the_order_of_calls() -> (
    None
):
    session = begin_call(begin_call(asked(), "a"), "b")
    closed = close_turn(end_call(session, "b", "found", DONE), "stopped")
    assert results(closed) == [("a", UNKNOWN), ("b", DONE), ("c", NOT_STARTED)]
    assert "may have had its effect" in closed.messages[2].content
    assert "had no effect" in closed.messages[4].content
    assert closed.messages[-1] == Message(NOTE, "This turn ended without an answer: stopped.")
    assert closed.turn is None


def test_closing_a_session_without_an_open_turn_changes_nothing() -> None:
    whole = finish_turn(begin_turn(NEW, "Hi"), "Hello.")
    assert close_turn(whole, "stopped") is whole


def test_a_turn_that_was_left_open_is_closed_before_the_next_begins() -> None:
    session = begin_turn(begin_call(show(asked(), "It "), "a"), "Hello?")
    assert results(session) == [("a", UNKNOWN), ("b", NOT_STARTED), ("c", NOT_STARTED)]
    assert session.drafts == (Draft("It ", "crash"),)
    assert [row.role for row in session.messages][-1] == NOTE
    assert session.turn == OpenTurn((Message(USER, "Hello?"),))


@pytest.mark.parametrize(
    "change",
    [
        lambda session: show(session, "It"),
        lambda session: add_step(session, Message(ASSISTANT, "It")),
        lambda session: begin_call(session, "a"),
        lambda session: end_call(session, "a", "", DONE),
        lambda session: finish_turn(session, "It"),
    ],
)
def test_a_change_of_a_turn_that_is_not_open_is_refused_with_the_sessions_name(
    change: object,
) -> None:
    with pytest.raises(SessionError, match="no turn is open in session 'ann': begin one first"):
        change(NEW)  # type: ignore[operator]


def test_no_change_touches_the_session_that_it_is_made_from() -> None:
    before = asked()
    told = repr(before)
    close_turn(end_call(begin_call(before, "a"), "a", "", DONE), "stopped")
    assert repr(before) == told


def test_a_sessions_text_form_is_one_line_of_kinds() -> None:
    session = begin_turn(close_turn(begin_call(asked(), "a"), "stopped"), "Hello?")
    assert repr(session) == (
        "Session('ann', version=0, messages=['user', 'assistant', 'tool (unknown)', "
        "'tool (not started)', 'tool (not started)', 'note'], checkpoint=['user'], drafts=[])"
    )


# --- repaired

IDS = st.sampled_from(["a", "b", "c", "d"])
CALLS = st.lists(IDS, max_size=3, unique=True)
ROWS = st.lists(
    st.one_of(
        st.just(Message(USER, "Hi")),
        st.just(Message(NOTE, "ended")),
        CALLS.map(lambda ids: Message(ASSISTANT, "", calls=tuple(ToolCall(i, "f") for i in ids))),
        IDS.map(lambda call_id: Message(TOOL, "found", call_id=call_id, status=DONE)),
    ),
    max_size=12,
)


def whole(rows: Sequence[Message]) -> bool:
    """Whether each call is answered once, at once and in order, and the end is no question."""
    left = list(rows)
    while left:
        row = left.pop(0)
        if row.role == TOOL:
            return False
        for call in row.calls:
            if not left or (left[0].role, left[0].call_id) != (TOOL, call.call_id):
                return False
            left.pop(0)
    return not rows or rows[-1].role in (ASSISTANT, NOTE)


@given(ROWS)
def test_a_repaired_history_has_one_result_for_each_call_and_is_repaired_once(
    rows: list[Message],
) -> None:
    good = repaired(rows)
    assert whole(good)
    assert repaired(good) == good
    assert [row for row in good if row.role in (USER, ASSISTANT)] == [
        row for row in rows if row.role in (USER, ASSISTANT)
    ]
    if whole(rows):
        assert good == tuple(rows)


@given(ROWS)
def test_a_result_that_was_there_is_kept_and_one_that_is_missing_is_unknown(
    rows: list[Message],
) -> None:
    for row in repaired(rows):
        if row.role == TOOL:
            assert row.status in (DONE, UNKNOWN)
            assert (row.status == DONE) == (row.content == "found")


def test_a_long_history_is_repaired_in_time_that_grows_with_its_length() -> None:
    turn = [Message(USER, "Hi"), ASKED, *(Message(TOOL, "", call_id=name) for name in "abc")]
    rows = [*turn, Message(ASSISTANT, "There.")] * 10_000  # a minute where each looks at all
    assert repaired(rows) == tuple(rows)
