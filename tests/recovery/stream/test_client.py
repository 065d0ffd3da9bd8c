"""The recovering client: what it does at each kind of cut, and what it never does."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.event_log import CursorTooOld
from labkit.recovery.stream import RecoveryLimits, StreamEvent, StreamRequest, StreamRun
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.store import StaleRecord
from labkit.recovery.tools import Tool

from .playing import CALLS, DROP, FINISH, QUESTION, Played, call, play, say

WITH_TOOLS = StreamRequest("Open a ticket.", tools=("create_ticket",))
TICKET = '{"title":"VPN"}'


def test_a_whole_answer_is_asked_for_once_and_completed() -> None:
    played = play([[say("It was "), say("sent."), FINISH]])
    assert (played.record.status, played.record.text) == ("completed", "It was sent.")
    assert (played.shown, played.states) == ("It was sent.", ["generating", "done"])
    assert (len(played.requests), played.choices) == (1, ["show_result"])


# --- the eight injections


def test_text_cut_midway_is_continued_and_nothing_is_said_twice() -> None:
    attempts = [[say("It was sent "), DROP], [say("was sent "), say("on Monday."), FINISH]]
    played = play(attempts, can_continue=True)
    assert (played.shown, played.record.status) == ("It was sent on Monday.", "completed")
    assert played.choices == ["request_continuation", "show_result"]
    assert played.states == ["generating", "recovering", "done"]
    assert played.record.recoveries == 1


@pytest.mark.parametrize("can_continue", [False, True])
def test_an_end_without_a_finish_reason_is_not_taken_for_an_answer(can_continue: bool) -> None:
    played = play([[say("It was sent.")], [say("It was sent."), FINISH]], can_continue=can_continue)
    assert played.record.status == "completed"
    assert played.record.text == "It was sent."
    assert played.shown == ("It was sent." if can_continue else "It was sent.|It was sent.")
    assert len(played.requests) == 2


def test_a_duplicate_event_is_shown_once() -> None:
    played = resumed(["sent ", "sent ", "on Monday."], numbers=[1, 1, 2])
    assert (played.shown, played.record.status) == ("It was sent on Monday.", "completed")


def test_a_gap_is_asked_for_again_and_never_spliced() -> None:
    attempts = iter([([2, 3], ["Monday", "."]), ([1, 2], ["sent on ", "Monday."])])

    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        numbers, texts = next(attempts)
        for number, text in zip(numbers, texts, strict=True):
            yield StreamEvent(number, text_delta=text)
        yield StreamEvent(numbers[-1] + 1, finish_reason="stop")

    played = play([[say("It was "), DROP]], resume=resume)
    assert (played.shown, played.record.status) == ("It was sent on Monday.", "completed")
    assert played.choices == ["resume_events", "resume_events", "show_result"]


def test_half_a_tool_call_is_never_run_and_is_asked_for_again() -> None:
    attempts = [[call('{"title":"V'), DROP], [call(TICKET, "c9"), CALLS], [say("Done."), FINISH]]
    played = play(attempts, request=WITH_TOOLS)
    assert played.effects == [{"title": "VPN"}]
    assert [done.call_id for done in played.record.executed] == ["c9"]
    assert (played.record.text, played.choices[0]) == ("Done.", "restart_tool_call")
    assert played.told("tool_pending") == [{"tool": "create_ticket"}]


@pytest.mark.parametrize("arguments", [TICKET, ' { "title" : "VPN" } '])
def test_a_tool_that_was_run_is_looked_up_when_the_answer_after_it_is_cut(arguments: str) -> None:
    attempts = [
        [call(TICKET), CALLS],
        [say("Your ticket "), DROP],
        [call(arguments, "c7"), CALLS],
        [say("Your ticket is open."), FINISH],
    ]
    played = play(attempts, request=WITH_TOOLS)
    assert played.effects == [{"title": "VPN"}]
    assert played.record.status == "completed"
    last = played.requests[-1].messages
    assert [message.content for message in last] == ["Open a ticket.", "create_ticket: ticket 1"]


def test_at_the_limit_the_text_stays_and_the_page_offers_to_go_on() -> None:
    played = play([[say("It was "), DROP], [DROP], [DROP], [say("never"), FINISH]])
    assert (played.record.status, len(played.requests)) == ("failed", 3)
    assert "It was " in played.shown
    assert played.told("error") == [{"code": "disconnect", "next": "continue"}]
    assert played.states[-1] == "failed"


def test_a_users_stop_is_final_and_nothing_goes_on_in_the_background() -> None:
    attempts = [[say("It was "), say("sent.", 10), FINISH]]
    played = play(attempts, stop_at=3.0)
    assert (played.record.status, played.record.text) == ("stopped", "It was ")
    assert (len(played.requests), played.states) == (1, ["generating", "stopped"])
    again = play(attempts, played=played, by_hand=True)
    assert (again.record.status, len(again.requests)) == ("stopped", 1)


def test_a_stop_while_the_client_waits_to_recover_is_final_too() -> None:
    played = play([[say("It was "), DROP], [say("never"), FINISH]], stop_at=0.5)
    assert (played.record.status, len(played.requests)) == ("stopped", 1)


def test_a_shutdown_is_no_stop_and_can_be_gone_on_with() -> None:
    attempts = [[say("It was "), say("sent.", 10), FINISH]]
    played = play(attempts, stop_at=3.0, stopped=lambda: False)
    assert (played.record.status, played.record.cause) == ("interrupted", "shutdown")
    again = play([[say("sent."), FINISH]], played=played, by_hand=True, can_continue=True)
    assert (again.record.status, again.record.text) == ("completed", "It was sent.")


# --- limits


@pytest.mark.parametrize("recoveries", [0, 1, 3])
def test_the_program_recovers_as_often_as_it_may_and_no_more(recoveries: int) -> None:
    attempts = [[say("It was "), DROP]] + [[DROP]] * 9
    played = play(attempts, limits=RecoveryLimits(recoveries=recoveries))
    assert len(played.requests) == 1 + recoveries
    assert (played.record.status, played.shown[:7]) == ("failed", "It was ")


def test_the_time_limit_counts_from_the_first_recovery_and_ends_a_slow_one() -> None:
    slow = [say("x", 4.0)] * 30
    limits = RecoveryLimits(seconds=10)
    played = play([[say("It was "), DROP], slow], can_continue=True, limits=limits)
    assert played.record.status == "failed"
    assert played.run.time == pytest.approx(10.0)
    assert played.record.text == "It was xx"


def test_a_wait_never_passes_the_time_limit() -> None:
    refused = {"http_error": {"status": 429, "headers": {"retry-after": "300"}}}
    played = play([[say("It was "), DROP], [refused], [refused]])
    assert played.record.status == "failed"
    assert played.run.time <= 45.0
    assert played.waits == [1.0, 300.0]


def test_more_characters_than_allowed_end_the_continuation_with_the_text_kept() -> None:
    limits = RecoveryLimits(characters=10)
    long = [say("0123456789 "), say("more "), FINISH]
    played = play([[say("It was "), DROP], long], can_continue=True, limits=limits)
    assert (played.record.status, played.record.text) == ("failed", "It was 0123456789 ")


def test_going_on_by_hand_starts_one_recovery_with_a_fresh_budget() -> None:
    failed = play([[say("It was "), DROP], [DROP], [DROP]], can_continue=True)
    assert failed.record.status == "failed"
    attempts = [[DROP], [say("sent."), FINISH]]
    again = play(attempts, played=failed, by_hand=True, can_continue=True)
    assert (again.record.status, again.record.text) == ("completed", "It was sent.")
    assert again.record.recoveries == 1


def test_going_on_by_hand_works_also_where_the_program_may_not_recover_at_all() -> None:
    none = RecoveryLimits(recoveries=0)
    failed = play([[say("It was "), DROP]], can_continue=True, limits=none)
    again = play(
        [[say("sent."), FINISH]], played=failed, by_hand=True, can_continue=True, limits=none
    )
    assert (again.record.status, again.record.text) == ("completed", "It was sent.")


@pytest.mark.parametrize("status", [400, 401, 402, 403])
def test_what_no_other_try_mends_is_not_tried_again_and_can_be_gone_on_with_by_hand(
    status: int,
) -> None:
    refused = [{"http_error": {"status": status}}]
    played = play([refused, [say("never"), FINISH]])
    assert (played.record.status, len(played.requests)) == ("failed", 1)
    again = play([[say("It was sent."), FINISH]], played=played, by_hand=True)
    assert again.record.status == "completed"


def test_the_first_error_is_the_one_shown_when_the_second_try_is_refused() -> None:
    attempts = [[say("It was "), {"stall": True}], [{"http_error": {"status": 400}}]]
    played = play(attempts, can_continue=True)
    assert played.told("error") == [{"code": "stall", "next": "continue"}]
    assert (played.record.first_cause, played.record.cause) == ("stall", "bad_request")


def test_waits_grow_and_a_providers_own_wish_comes_first() -> None:
    refused = {"http_error": {"status": 429, "headers": {"retry-after": "7"}}}
    played = play([[DROP], [refused], [say("It was sent."), FINISH]])
    assert played.waits == [1.0, 7.0]


# --- what goes out


def test_with_tools_offered_and_none_run_the_question_goes_out_again_as_it_was() -> None:
    attempts = [[say("I will look"), {"stall": True}], [say("It was sent."), FINISH]]
    played = play(attempts, request=WITH_TOOLS, can_continue=True)
    assert played.requests[1] == played.requests[0]
    assert (played.shown, played.record.text) == ("I will look|It was sent.", "It was sent.")


def test_a_draft_that_is_asked_for_again_stays_in_the_record() -> None:
    played = play([[say("It was "), DROP], [say("It was sent."), FINISH]])
    assert "".join(played.record.chunks) == "It was It was sent."
    assert played.record.text == "It was sent."


def test_text_held_back_at_the_joint_is_dropped_when_it_breaks() -> None:
    rest = [say("was sent on Monday."), FINISH]
    played = play([[say("It was sent"), DROP], [say("was "), DROP], rest], can_continue=True)
    assert played.shown == played.record.text == "It was sent on Monday."


def test_events_of_another_request_are_never_taken_for_those_that_a_service_has_kept() -> None:
    resumed_at = []

    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        resumed_at.append(run.next_sequence)
        raise CursorTooOld("the events are not kept any more")
        yield StreamEvent(0)

    once = {"resume": resume, "limits": RecoveryLimits(recoveries=2)}
    played = play([[say("It was "), DROP], [say("It "), DROP]], **once)
    assert (played.record.status, resumed_at) == ("failed", [1])
    play([[say("It was sent."), FINISH]], played=played, by_hand=True, **once)
    assert (played.record.status, played.record.text) == ("completed", "It was sent.")
    assert resumed_at == [1]


# --- tools


def test_an_unknown_tool_and_wrong_arguments_are_refused_and_the_model_is_told() -> None:
    async def never(arguments: Mapping[str, Any], key: str) -> str:
        raise AssertionError("a refused call was run")

    tool = Tool(name="create_ticket", run=never, check=lambda given: "title must be a text")
    attempts = [[call("{}"), call("{}", "c2", "rm"), CALLS], [say("Sorry."), FINISH]]
    played = play(attempts, request=WITH_TOOLS, tool=tool)
    assert [(no.call_id, no.arguments, no.reason) for no in played.record.refused] == [
        ("c1", "{}", "title must be a text"),
        ("c2", "{}", "no such tool; there is: create_ticket"),
    ]
    told = [message.content for message in played.requests[1].messages[1:]]
    assert told[0] == "create_ticket: not run: title must be a text"


def test_a_tool_runs_only_for_whom_it_is_allowed() -> None:
    ran = []

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        ran.append(arguments)
        return "done"

    tool = Tool(name="create_ticket", run=run, allowed=lambda owner: owner.user == "bob")
    played = play([[call(TICKET), CALLS], [say("Sorry."), FINISH]], request=WITH_TOOLS, tool=tool)
    assert (ran, played.record.refused[0].reason) == ([], "this user may not call it")


def test_a_model_that_calls_for_ever_is_ended_with_its_text_kept() -> None:
    attempts = [[say(f"{n} "), call(f'{{"n":{n}}}', f"c{n}"), CALLS] for n in range(20)]
    played = play(attempts, request=WITH_TOOLS)
    assert (played.record.status, len(played.effects)) == ("failed", 8)


def test_a_tool_that_raises_leaves_its_error_and_an_interrupted_record() -> None:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        raise OSError("no route to the ticket service, key=sk-123")

    played = Played()
    with pytest.raises(OSError, match="ticket service"):
        play(
            [[say("Wait. "), call(TICKET), CALLS]],
            request=WITH_TOOLS,
            played=played,
            tool=Tool(name="create_ticket", run=run),
        )
    assert (played.record.status, played.record.executed) == ("interrupted", ())
    assert "sk-123" not in str(played.page)
    assert played.states[-1] == "failed"


# --- resuming


def resumed(texts: list[str], *, numbers: list[int]) -> Played:
    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        assert run.next_sequence == 1
        for number, text in zip(numbers, texts, strict=True):
            yield StreamEvent(number, text_delta=text)
        yield StreamEvent(numbers[-1] + 1, finish_reason="stop")

    return play([[say("It was "), DROP]], resume=resume)


def test_events_are_resumed_without_another_request() -> None:
    played = resumed(["sent ", "on Monday."], numbers=[1, 2])
    assert (played.shown, len(played.requests)) == ("It was sent on Monday.", 1)


def test_a_cursor_that_is_refused_is_not_tried_again() -> None:
    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        if run.next_sequence:
            raise CursorTooOld("events 1 to 3 are not kept any more")
        yield StreamEvent(0)

    played = play(
        [[say("It was "), DROP], [say("sent."), FINISH]], resume=resume, can_continue=True
    )
    assert (played.shown, played.record.status) == ("It was sent.", "completed")
    assert played.choices == ["resume_events", "request_continuation", "show_result"]


def test_events_that_end_without_a_finish_reason_are_not_taken_up_again() -> None:
    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        if run.next_sequence == 1:
            yield StreamEvent(1, text_delta="sent ")

    played = play([[say("It was "), DROP], [say("It was sent."), FINISH]], resume=resume,
                  limits=RecoveryLimits(recoveries=3))  # fmt: skip
    assert (played.shown, played.record.status) == ("It was sent |It was sent.", "completed")
    assert played.choices == ["resume_events", "resume_events", "ask_again", "show_result"]


def test_an_answer_is_begun_at_the_service_that_keeps_its_events() -> None:
    begun = []

    async def begin(request: Request) -> None:
        begun.append(request.messages[0].content)

    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        assert run.next_sequence == 0
        yield StreamEvent(0, text_delta="It was sent.")
        yield StreamEvent(1, finish_reason="stop")

    played = play([[DROP]], begin=begin, resume=resume)
    assert (played.shown, played.record.status) == ("It was sent.", "completed")
    assert (begun, played.requests) == ([QUESTION.question], [])


def test_a_resumed_stream_that_says_nothing_is_a_stall() -> None:
    async def resume(run: StreamRun) -> AsyncGenerator[StreamEvent, None]:
        await asyncio.Event().wait()
        yield StreamEvent(0)

    played = play([[say("It was "), DROP]], resume=resume)
    assert (played.record.status, played.record.cause) == ("failed", "stall")


# --- the record


def test_an_event_is_kept_before_the_page_hears_of_it() -> None:
    played = Played()
    kept: list[str] = []

    class Page(list[tuple[str, dict[str, Any]]]):
        def append(self, told: tuple[str, dict[str, Any]]) -> None:
            super().append(told)
            if told[0] == "text_delta":
                kept.append(played.record.text)

    played.page = Page()
    play([[say("It "), say("was "), FINISH]], played=played)
    assert kept == ["It ", "It was "]


def test_the_second_of_two_clients_is_refused_and_changes_nothing() -> None:
    played = play([[say("It was "), DROP]], limits=RecoveryLimits(recoveries=0))
    other: list[StreamRun] = []

    class Page(list[tuple[str, dict[str, Any]]]):
        def append(self, told: tuple[str, dict[str, Any]]) -> None:
            super().append(told)
            if not other:  # another process goes on with the same record
                other.append(played.store.save(replace(played.record, status="retrying")))

    played.page = Page()
    with pytest.raises(StaleRecord):
        play([[say("sent."), FINISH]], played=played, by_hand=True, can_continue=True)
    assert [played.record] == other
