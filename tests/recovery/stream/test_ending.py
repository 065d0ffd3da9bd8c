"""How an answer ended, what is done about it, and where the program stops by itself."""

from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.stream import (
    RecoveryLimits,
    StreamRequest,
    StreamRun,
    can_recover,
    choose_recovery,
    classify_end,
)
from labkit.recovery.stream.record import Executed, interrupt, stop

from .making import call, finish, record, say

TOOLS = StreamRequest("q", tools=("create_ticket",))
JSON = StreamRequest("q", structured=True)
TEXT = say("It was ")
DONE = (Executed("k1", "c0", "look_up", "sent"),)


def broken(*events: dict[str, Any], cause: str = "disconnect", **changes: Any) -> StreamRun:
    return replace(interrupt(record(*events), cause), **changes)


# name -> record, its end, and what to do where (nothing, continuing, resuming, both) is possible
ENDS: dict[str, tuple[StreamRun, str, tuple[str, str, str, str]]] = {
    "a stop": (record(TEXT, finish("stop")), "completed", ("show_result",) * 4),
    "a cut after the stop": (
        broken(TEXT, finish("stop")),
        "completed",
        ("show_result",) * 4,
    ),
    "still writing": (record(TEXT), "still_running", ("inspect_task",) * 4),
    "a limit": (
        record(TEXT, finish("length")),
        "truncated_by_limit",
        ("keep_partial", "request_continuation") * 2,
    ),
    "a lost connection": (
        broken(TEXT),
        "transport_interrupted",
        ("ask_again", "request_continuation", "resume_events", "resume_events"),
    ),
    "a lost connection before any text": (
        broken(),
        "transport_interrupted",
        ("ask_again", "ask_again", "resume_events", "resume_events"),
    ),
    "a gateway's timeout": (
        broken(TEXT, cause="timeout"),
        "gateway_timeout",
        ("ask_again", "request_continuation", "resume_events", "resume_events"),
    ),
    "a user's stop": (stop(record(TEXT)), "stopped_by_user", ("keep_partial",) * 4),
    "a user's stop after a lost connection": (
        stop(broken(TEXT)),
        "stopped_by_user",
        ("keep_partial",) * 4,
    ),
    "a filter": (record(TEXT, finish("refused")), "refused", ("keep_partial",) * 4),
    "an error as finish reason": (
        record(TEXT, finish("error")),
        "transport_interrupted",
        ("ask_again", "request_continuation") * 2,
    ),
    "an end that nobody knows": (
        record(TEXT, finish("unknown")),
        "transport_interrupted",
        ("ask_again", "request_continuation") * 2,
    ),
    "half a call": (
        broken(call('{"title":"VPN')),
        "interrupted_tool_call",
        ("restart_tool_call", "restart_tool_call", "resume_events", "resume_events"),
    ),
    "half a call and a stop": (
        record(call('{"title":"VPN'), finish("stop")),
        "interrupted_tool_call",
        ("restart_tool_call",) * 4,
    ),
    "half a call at the limit": (
        record(call('{"title":"VPN'), finish("length")),
        "interrupted_tool_call",
        ("restart_tool_call",) * 4,
    ),
    "a whole call at the limit": (
        record(call("{}"), finish("length")),
        "interrupted_tool_call",
        ("restart_tool_call",) * 4,
    ),
    "a whole call without a finish reason": (
        broken(call("{}")),
        "interrupted_tool_call",
        ("restart_tool_call", "restart_tool_call", "resume_events", "resume_events"),
    ),
    "a whole call": (
        record(call("{}"), finish("tool_calls")),
        "tool_calls_ready",
        ("run_tools",) * 4,
    ),
    "a call without arguments": (
        record(call(""), finish("tool_calls")),
        "tool_calls_ready",
        ("run_tools",) * 4,
    ),
    "one whole call of two": (
        record(call("{}"), call("{", "c2"), finish("tool_calls")),
        "interrupted_tool_call",
        ("restart_tool_call",) * 4,
    ),
    "calls announced and none there": (
        record(finish("tool_calls")),
        "interrupted_tool_call",
        ("restart_tool_call",) * 4,
    ),
    "whole JSON": (
        record(say('{"a": 1}'), finish("stop"), request=JSON),
        "completed",
        ("show_result",) * 4,
    ),
    "half JSON and a stop": (
        record(say('{"a": '), finish("stop"), request=JSON),
        "cut_structured",
        ("ask_again",) * 4,
    ),
    "a number that no JSON has": (
        record(say('{"a": NaN}'), finish("stop"), request=JSON),
        "cut_structured",
        ("ask_again",) * 4,
    ),
    "half JSON at the limit": (
        record(say('{"a": '), finish("length"), request=JSON),
        "cut_structured",
        ("ask_again",) * 4,
    ),
    "half JSON and a lost connection": (
        interrupt(record(say('{"a": '), request=JSON), "disconnect"),
        "cut_structured",
        ("ask_again", "ask_again", "resume_events", "resume_events"),
    ),
    "whole JSON and a lost connection": (  # a number could still have gone on
        interrupt(record(say("12"), request=JSON), "disconnect"),
        "cut_structured",
        ("ask_again", "ask_again", "resume_events", "resume_events"),
    ),
    "tools offered, none has run": (
        interrupt(record(TEXT, request=TOOLS), "disconnect"),
        "transport_interrupted",
        ("ask_again", "ask_again", "resume_events", "resume_events"),
    ),
    "tools offered, a limit": (
        record(TEXT, finish("length"), request=TOOLS),
        "truncated_by_limit",
        ("keep_partial",) * 4,
    ),
    "tools offered, and their results confirmed": (
        interrupt(replace(record(TEXT, request=TOOLS), executed=DONE), "disconnect"),
        "transport_interrupted",
        ("ask_again", "request_continuation", "resume_events", "resume_events"),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_each_end_has_its_name_and_its_way_back(name: str) -> None:
    run, end, ways = ENDS[name]
    assert classify_end(run) == end
    possible = [(False, False), (False, True), (True, False), (True, True)]
    found = [choose_recovery(run, can_resume=r, can_continue=c) for r, c in possible]
    assert tuple(found) == ways


@pytest.mark.parametrize("cause", ["auth", "permission", "bad_request", "quota", "deadline"])
def test_what_no_other_try_mends_is_left_to_a_person(cause: str) -> None:
    run = broken(TEXT, cause=cause)
    assert choose_recovery(run, can_resume=True, can_continue=True) == "keep_partial"


def test_a_gateways_timeout_and_a_users_stop_differ_though_neither_has_a_finish_reason() -> None:
    timeout, stopped = broken(TEXT, cause="timeout"), stop(record(TEXT))
    assert timeout.finish_reason == stopped.finish_reason == ""
    assert classify_end(timeout) != classify_end(stopped)


# --- limits


@pytest.mark.parametrize(
    ("recoveries", "elapsed", "characters", "allowed"),
    [
        *((0, 0.0, 0, True), (1, 44.9, 3_999, True)),
        *((2, 0.0, 0, False), (0, 45.0, 0, False), (0, 0.0, 4_000, False)),
    ],
)
def test_two_recoveries_45_seconds_and_4000_characters_are_the_default_limits(
    recoveries: int, elapsed: float, characters: int, allowed: bool
) -> None:
    assert can_recover(recoveries, elapsed, characters) == allowed


def test_limits_can_be_set_and_none_is_one_too() -> None:
    none = RecoveryLimits(recoveries=0)
    assert not can_recover(0, 0.0, limits=none)
    assert can_recover(2, 0.0, limits=RecoveryLimits(recoveries=3))


@pytest.mark.parametrize("name", ["recoveries", "seconds", "characters"])
@pytest.mark.parametrize("value", [-1, float("nan")])
def test_limits_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=name):
        RecoveryLimits(**{name: value})  # type: ignore[arg-type]
