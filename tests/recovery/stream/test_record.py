"""What a record takes in, what it refuses, and when a call's arguments may be read."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from labkit.recovery.deltas import Delta
from labkit.recovery.stream import StreamEvent, apply_event, parse_complete_tool_call
from labkit.recovery.stream.numbering import Numbering
from labkit.recovery.stream.record import (
    SequenceGap,
    StreamEnded,
    StreamError,
    interrupt,
    new_attempt,
    stop,
)

from .making import ANN, after, call, finish, record, say


def test_events_add_up_to_the_text_and_move_the_number_and_the_time() -> None:
    run = record(say("It was "), say("sent."), finish("stop"))
    assert (run.text, run.next_sequence, run.last_event_at) == ("It was sent.", 3, 3.0)
    assert (run.finish_reason, run.status, run.owner) == ("stop", "running", ANN)


def test_an_event_that_is_there_already_changes_nothing() -> None:
    run = record(say("It was "), say("sent."))
    for event in (StreamEvent(0, text_delta="It was "), StreamEvent(1, text_delta="other")):
        assert apply_event(run, event, now=9.0) is run


def test_a_gap_is_an_error_that_names_the_missing_events_and_leaves_the_record() -> None:
    run = record(say("It was "))
    with pytest.raises(SequenceGap, match="event 3 came where 1 must come: nothing is skipped"):
        apply_event(run, StreamEvent(3, text_delta="sent."), now=9.0)
    assert run == record(say("It was "))


@pytest.mark.parametrize("status", ["stopped", "completed"])
def test_nothing_is_added_to_what_is_final(status: str) -> None:
    run = replace(record(say("It was ")), status=status)
    with pytest.raises(StreamEnded, match=status):
        after(run, say("sent."))
    with pytest.raises(StreamEnded, match=status):
        new_attempt(run)
    assert interrupt(run, "disconnect") is run
    assert stop(run) is run


def test_the_first_finish_reason_counts() -> None:
    assert record(finish("length"), finish("stop")).finish_reason == "length"


def test_the_providers_own_event_id_is_kept() -> None:
    run = record({"event_id": "evt-7", **say("a")}, say("b"))
    assert run.last_event_id == "evt-7"


def test_a_record_cannot_be_changed_in_place() -> None:
    with pytest.raises(FrozenInstanceError):
        record().status = "completed"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sequence": -1}, "counts from 0"),
        ({"sequence": 0, "finish_reason": "end_turn"}, "normalise it first"),
        ({"sequence": 0, "tool_name": "pay"}, "call_id"),
        ({"sequence": 0, "arguments_delta": "{}"}, "call_id"),
    ],
)
def test_an_event_that_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamEvent(**fields)


# --- tool calls


def test_pieces_of_two_calls_are_kept_apart() -> None:
    run = record(call('{"a":', "c1", "add"), call('{"b":', "c2", "mul"))
    run = after(run, call("1}", "c1", ""), call("2}", "c2", ""))
    assert [(c.call_id, c.name, c.arguments) for c in run.calls] == [
        ("c1", "add", '{"a":1}'),
        ("c2", "mul", '{"b":2}'),
    ]


def test_a_name_that_comes_late_is_taken_and_one_that_is_there_stays() -> None:
    run = record(call("{", "c1", ""), call("}", "c1", "add"), call("", "c1", "other"))
    assert [(c.name, c.arguments) for c in run.calls] == [("add", "{}")]


def test_a_new_attempt_forgets_half_calls_and_keeps_the_text() -> None:
    run = new_attempt(interrupt(record(say("Let me see."), call('{"a":')), "disconnect"))
    assert (run.calls, run.text, run.attempt, run.status) == ((), "Let me see.", 2, "running")
    assert after(run, call('{"b":1}')).calls[0].arguments == '{"b":1}'


WHOLE = ['{"title":"VPN"}', ' {"title":"VPN"}\n', "{}"]
NOT_WHOLE = [
    *('{"title":"VPN', '{"title":"VPN"} trailing', "[1,2", "[1,2]", '"str"', "null", "1", "{"),
    *('{"a":NaN}', '{"a":1}{"a":1}', "nul", '{"a":' * 100_000, "", " "),
]


@pytest.mark.parametrize("raw", WHOLE)
def test_complete_arguments_are_one_json_object(raw: str) -> None:
    assert isinstance(parse_complete_tool_call(record(call(raw)), "c1"), dict)


@pytest.mark.parametrize("raw", NOT_WHOLE, ids=lambda raw: raw[:20])
def test_anything_else_is_nothing_and_the_raw_text_stays(raw: str) -> None:
    run = record(call(raw), finish("tool_calls"))
    assert parse_complete_tool_call(run, "c1") is None
    assert run.calls[0].arguments == raw


def test_no_text_stands_for_no_arguments_only_after_the_calls_have_ended() -> None:
    done = record(call(""), finish("tool_calls"))
    assert parse_complete_tool_call(done, "c1", takes_nothing=True) == {}
    assert parse_complete_tool_call(done, "c1") is None
    for run in (record(call("")), record(call(""), finish("stop"))):
        assert parse_complete_tool_call(run, "c1", takes_nothing=True) is None


def test_a_call_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"no call 'c2'.*there is: c1"):
        parse_complete_tool_call(record(call("{}")), "c2")


# --- numbering


def numbered(*deltas: Delta) -> Any:
    run = record(say("It was "))
    numbering = Numbering(run)
    for delta in deltas:
        run = apply_event(run, numbering.number(delta), now=2.0)
    return run


def test_the_receiving_side_numbers_on_from_the_record() -> None:
    run = numbered(Delta("role", "assistant"), Delta("text", "sent."), Delta("usage", tokens_in=5))
    assert (run.text, run.next_sequence) == ("It was sent.", 4)


def test_thinking_is_no_text() -> None:
    assert numbered(Delta("thinking", "hm")).text == "It was "


def test_a_word_for_the_end_that_nobody_knows_is_unknown_and_never_a_stop() -> None:
    assert numbered(Delta("finish", reason="eos_token")).finish_reason == "unknown"
    assert numbered(Delta("finish", reason="length")).finish_reason == "length"


def test_a_providers_own_word_for_the_end_is_understood() -> None:
    assert numbered(Delta("finish", reason="content_filter")).finish_reason == "refused"
    ends = Numbering(record(), "anthropic").number(Delta("finish", reason="end_turn"))
    assert ends.finish_reason == "stop"


def piece(text: str, index: int | None = 0, call_id: str = "", name: str = "") -> Delta:
    return Delta("tool_call", text, index=index, call_id=call_id, name=name)


CALLS: dict[str, tuple[list[Delta], list[tuple[str, str, str]]]] = {
    "the id comes with every piece": (
        [piece("{", 0, "c1", "add"), piece("}", 0, "c1", "add")],
        [("c1", "add", "{}")],
    ),
    "the name comes with every piece, the id with the first": (
        [piece("{", 0, "c1", "add"), piece("}", 0, "", "add")],
        [("c1", "add", "{}")],
    ),
    "no ids, each call whole and without an index": (
        [piece('{"a":1}', None, "", "add"), piece('{"a":2}', None, "", "add")],
        [("call-1-1", "add", '{"a":1}'), ("call-1-2", "add", '{"a":2}')],
    ),
    "no ids, in pieces": (
        [piece("{", 0, "", "add"), piece("{", 1, "", "mul"), piece("}", 0), piece("}", 1)],
        [("call-1-1", "add", "{}"), ("call-1-2", "mul", "{}")],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_pieces_find_their_call_however_a_provider_marks_them(name: str) -> None:
    deltas, calls = CALLS[name]
    assert [(c.call_id, c.name, c.arguments) for c in numbered(*deltas).calls] == calls


def test_all_that_a_record_refuses_is_of_one_base() -> None:
    assert issubclass(SequenceGap, StreamError)
    assert issubclass(StreamEnded, StreamError)


def test_a_half_call_is_kept_though_another_attempt_used_its_id() -> None:
    first = new_attempt(interrupt(record(call('{"a": 1')), "disconnect"))
    second = new_attempt(interrupt(after(first, call('{"b": 2')), "disconnect"))
    assert [no.arguments for no in second.refused] == ['{"a": 1', '{"b": 2']
    again = new_attempt(interrupt(after(second, call('{"b": 2')), "disconnect"))
    assert len(again.refused) == 2


def test_a_stop_takes_away_what_broke_before_it() -> None:
    stopped = stop(interrupt(record(say("It was ")), "disconnect"))
    assert (stopped.status, stopped.cause) == ("stopped", "")
