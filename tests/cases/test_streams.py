"""Cases 13 to 16, 20, 28, 30 to 34 and 36: stalls, replay, tool calls and continuation."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from labkit.providers.chat import deltas
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.event_log import Entry, EventLog, frames
from labkit.recovery.retry import whole_answer
from labkit.recovery.sse import SSEDecoder, encode_comment, encode_event
from labkit.recovery.stream import (
    StreamEvent,
    StreamRequest,
    StreamRun,
    apply_event,
    merge_overlap,
    parse_complete_tool_call,
)
from labkit.recovery.stream.numbering import Numbering
from labkit.recovery.tools import Tool
from tests.recovery.stream.making import ANN
from tests.recovery.stream.playing import FINISH, Played, play, say
from tests.simulation.kit import virtually

from .public import case

Heard = tuple[str, str, str, float]  # how it ended, why, the text, when


async def heard(stream: AsyncGenerator[Delta, None], stall: float, total: float) -> Heard:
    """How one attempt ended for a reader with these limits."""
    clock, text = asyncio.get_running_loop().time, ""
    try:
        async with aclosing(whole_answer(stream, stall=stall, deadline=total)) as answer:
            async for delta in answer:
                text += delta.text if delta.visible else ""
    except ProviderError as error:
        return "interrupted", error.kind, text, clock()
    return "stop", "", text, clock()


async def over_the_wire(frames_at: list[tuple[float, bytes]]) -> AsyncGenerator[Delta, None]:
    """The deltas of frames that arrive at their times, then nothing more."""
    clock, decoder = asyncio.get_running_loop().time, SSEDecoder()
    for at, frame in frames_at:
        await asyncio.sleep(at - clock())
        for event in decoder.feed(frame):
            yield Delta("text", event.data)
    await asyncio.Event().wait()


def test_case_13_a_comment_is_no_progress() -> None:
    told, expect = case(13)["input"]["a"], case(13)["expect"]["a"]
    wire: dict[str, Callable[[str], bytes]] = {"delta": encode_event, "comment": encode_comment}
    arriving = [(at, wire[kind](text)) for at, kind, text in told["timeline"]]
    found = virtually(heard(over_the_wire(arriving), told["stall"], 60))
    assert found == (expect["end"], expect["reason"], expect["text"], expect["at"])


def test_case_13_comments_on_an_idle_connection_are_no_messages() -> None:
    told, expect = case(13)["input"]["b"], case(13)["expect"]["b"]

    async def work() -> int:
        log, messages, decoder = EventLog("idle"), 0, SSEDecoder()
        try:
            async with asyncio.timeout(told["for"]):
                async for frame in frames(log, heartbeat=told["comment_every"]):
                    messages += len(decoder.feed(frame))
        except TimeoutError:
            return messages
        raise AssertionError("the connection ended")

    assert virtually(work()) == expect["messages"]


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_case_14_stall_deadline_and_the_first_token_are_three_things(name: str) -> None:
    told, expect = case(14)["input"][name], case(14)["expect"][name]

    async def stream() -> AsyncGenerator[Delta, None]:
        count = 10**6 if told["n"] == "inf" else told["n"]
        for number in range(count):
            await asyncio.sleep(told["every"] if number else 0)
            yield Delta("text", "x")
        if told.get("then"):
            yield Delta("finish", reason=told["then"])
        await asyncio.sleep(10**6)

    async def stops() -> AsyncGenerator[Delta, None]:
        async with aclosing(stream()) as pieces:
            async for piece in pieces:
                yield piece
                if piece.kind == "finish":
                    return

    end, reason, text, at = virtually(heard(stops(), case(14)["input"]["stall"], told["total"]))
    found = {"end": end, "reason": reason, "text": text, "at": at, "retry_allowed": text == ""}
    assert {key: found[key] for key in expect} == expect


def test_case_15_our_heartbeats_carry_no_id_and_are_no_events() -> None:
    async def work() -> list[bytes]:
        got: list[bytes] = []
        try:
            async with asyncio.timeout(60):
                async for frame in frames(EventLog("idle")):
                    got.append(frame)
        except TimeoutError:
            pass
        return got

    sent = virtually(work())
    assert len(sent) >= 3
    assert any(b"id" in frame for frame in sent) == case(15)["expect"]["server_heartbeat_has_id"]
    assert SSEDecoder().feed(b"".join(sent)) == []


@pytest.mark.parametrize(
    ("frames_seen", "resume_point"),
    [(3, "resume_point"), (2, "resume_point_if_cut_after_ping")],
)
def test_case_15_a_foreign_ping_is_neither_shown_nor_where_the_answer_goes_on(
    frames_seen: int, resume_point: str
) -> None:
    told, expect = case(15)["input"]["frames"][:frames_seen], case(15)["expect"]
    decoder, run = SSEDecoder(), StreamRun("run-1", ANN)
    sent = b"".join(encode_event(text, event=kind, id=id_) for id_, kind, text in told)
    applied = 0
    for event in decoder.feed(sent):
        if event.event == "delta":
            delta = StreamEvent(run.next_sequence, text_delta=event.data, event_id=event.id)
            run = apply_event(run, delta, now=0.0)
            applied += 1
    assert run.last_event_id == expect[resume_point]
    if frames_seen == len(case(15)["input"]["frames"]):
        assert (run.text, applied) == (expect["text"], expect["content_callbacks"])
    else:
        assert decoder.last_event_id == "hb-1"  # by the standard: hence no ids on heartbeats


@pytest.mark.parametrize("turns", range(6))
def test_case_16_the_hand_over_from_log_to_live_loses_and_doubles_nothing(turns: int) -> None:
    told, expect = case(16)["input"], case(16)["expect"]

    async def work() -> list[int]:
        log = EventLog("s")
        for number in told["log"]:
            log.append(str(number))

        async def read() -> list[Entry | None]:
            return [entry async for entry in log.follow(log.cursor(told["last_event_id"]))]

        reader = asyncio.create_task(read())
        for _ in range(turns):  # event 6 comes at any step between replay and live
            await asyncio.sleep(0)
        log.append("6")
        await asyncio.sleep(1)
        log.append(str(told["live"][0]))
        log.close()
        return [int(entry.data) for entry in await reader if entry]

    seen = virtually(work())
    assert seen == expect["seen"]


def test_case_20_a_disconnect_is_no_stop_and_a_stop_is_one() -> None:
    told, expect = case(20)["input"], case(20)["expect"]

    async def viewer(log: EventLog, cursor: str, count: int) -> list[str]:
        got: list[str] = []
        async with aclosing(log.follow(cursor)) as entries:
            async for entry in entries:
                assert entry is not None
                got.append(entry.data)
                if len(got) == count:
                    break
        return got

    async def provider(log: EventLog) -> str:
        for token in told["tokens"]:
            await asyncio.sleep(1)
            log.append(token)
        log.close()
        return "stop"

    async def work() -> tuple[Any, ...]:
        log = EventLog("a")
        task = asyncio.create_task(provider(log))
        await viewer(log, "", told["A"]["drop_after"])  # and is gone
        rest = await viewer(log, log.cursor(told["A"]["resume"]), 99)
        return await task, rest

    end, rest = virtually(work())
    assert (end, rest) == (expect["A"]["end"], expect["A"]["resumed"])

    steps = [say(token, 1.0) for token in told["tokens"]]
    played = play([[*steps, FINISH]], stop_at=told["B"]["stop_after"] + 0.5)
    assert list(played.record.chunks) == expect["B"]["stored"]
    assert len(played.requests) == expect["B"]["provider_calls"]
    assert (played.record.status, expect["B"]["state"]) == ("stopped", "cancelled")
    before = played.record.next_sequence
    again = play([[*steps, FINISH]], played=played, by_hand=True)
    assert again.record.next_sequence - before == expect["B"]["after_reconnect_new_events"]
    assert len(again.requests) == expect["B"]["provider_calls"]


TRAILING = case(28)["input"]["chunks"]
ORDERS = {
    "as told": [0, 1, 2],
    "usage first": [0, 2, 1],
    "finish twice": [0, 1, 1, 2],
}


@pytest.mark.parametrize("order", ORDERS)
def test_case_28_chunks_after_the_finish_reason_are_read_and_change_nothing(order: str) -> None:
    expect = case(28)["expect"]
    chunks = [TRAILING[index] for index in ORDERS[order]]

    async def stream() -> AsyncGenerator[Delta, None]:
        for chunk in chunks:
            told = dict(chunk)
            if used := told.get("usage"):
                told["usage"] = {"prompt_tokens": used["in"], "completion_tokens": used["out"]}
            for delta in deltas(told):
                yield delta

    async def work() -> list[Delta]:
        return [delta async for delta in whole_answer(stream(), stall=5, deadline=60)]

    got = virtually(work())
    run = StreamRun("run-1", ANN)
    numbering = Numbering(run)
    for delta in got:
        run = apply_event(run, numbering.number(delta), now=0.0)
    used = [(delta.tokens_in, delta.tokens_out) for delta in got if delta.kind == "usage"]
    assert (run.finish_reason, run.text) == (expect["end"], expect["text"])
    assert used == [(expect["usage"]["in"], expect["usage"]["out"])]


# --- tool calls


def called(raw: str, call_id: str = "c1", name: str = "delete_records") -> dict[str, Any]:
    return {"call": {"index": 0, "id": call_id, "name": name, "arguments": raw}}


OFFERED = StreamRequest("Clean up.", tools=("delete_records",))


@pytest.mark.parametrize("end", case(30)["input"]["ends"])
@pytest.mark.parametrize("raw", case(30)["input"]["raw"])
def test_case_30_half_arguments_are_never_run_and_their_raw_text_is_kept(
    raw: str, end: str
) -> None:
    ran: list[Mapping[str, Any]] = []
    expect = case(30)["expect"]
    ends = [{"finish": end}] if end == "tool_calls" else []
    played = play(
        [[called(raw), *ends], [{"stall": True}]],
        request=OFFERED,
        stop_at=1.5,
        tool=counting(ran),
    )
    assert len(ran) == expect["executions"]
    assert [no.arguments for no in played.record.refused] == [raw] * expect["invalid_calls_each"]
    assert [no.call_id for no in played.record.refused] == ["c1"]


def counting(ran: list[Mapping[str, Any]], **options: Any) -> Tool:
    async def run(arguments: Mapping[str, Any], key: str) -> str:
        ran.append(arguments)
        return "done"

    return Tool(name="delete_records", run=run, **options)


def test_case_31_a_call_cut_by_the_limit_is_no_empty_call_and_the_loop_ends() -> None:
    ran: list[Mapping[str, Any]] = []
    told, expect = case(31)["input"], case(31)["expect"]
    cut = [called(told["args"]), {"finish": told["finish"]}]
    played = play([cut], request=OFFERED, tool=counting(ran))
    assert len(ran) == expect["executions"]
    assert played.record.status == "failed"
    assert len(played.requests) == 3
    assert {no.arguments for no in played.record.refused} == {told["args"]}


@pytest.mark.parametrize("index", [0, 1])
def test_case_31_a_tool_without_arguments_runs_with_none_or_an_empty_object(index: int) -> None:
    ran: list[Mapping[str, Any]] = []
    raw, executions = (
        case(31)[key][name][index]
        for key, name in (("input", "controls"), ("expect", "control_executions"))
    )
    attempts = [[called(raw), {"finish": "tool_calls"}], [say("Done."), FINISH]]
    tool = counting(ran, takes_nothing=True)
    played = play(attempts, request=OFFERED, tool=tool)
    assert ran == [{}] * executions
    assert played.record.status == "completed"


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_case_32_streamed_calls_are_put_together_by_id_and_index(name: str) -> None:
    run = StreamRun("run-1", ANN)
    numbering = Numbering(run)
    for chunk in case(32)["input"][name]:
        for piece in chunk:
            delta = Delta(
                "tool_call",
                piece["args"],
                piece["index"],
                piece.get("id", ""),
                piece.get("name", ""),
            )
            run = apply_event(run, numbering.number(delta), now=0.0)
    found = [[c.call_id, c.name, parse_complete_tool_call(run, c.call_id)] for c in run.calls]
    assert found == case(32)["expect"][name]


def test_case_33_a_call_is_put_together_from_one_attempt_only() -> None:
    ran: list[Mapping[str, Any]] = []
    told, expect = case(33)["input"], case(33)["expect"]
    steps: dict[str, Callable[..., dict[str, Any]]] = {
        "tool": lambda index, call, name, raw: called(raw, call, "delete_records"),
        "reset": lambda: {"drop": True},
        "finish": lambda reason: {"finish": reason},
    }
    attempts = [[steps[kind](*rest) for kind, *rest in attempt] for attempt in told["attempts"]]
    # the case ends where the tool has run; the answer after it is ours
    played = play([*attempts, [say("Done."), FINISH]], request=OFFERED, tool=counting(ran))
    assert len(played.requests) - 1 == expect["provider_calls"]
    assert ran == expect["executions"]
    assert [done.call_id for done in played.record.executed] == expect["history_call_ids"]


# --- continuation


@pytest.mark.parametrize("row", range(len(case(34)["input"]["rows"])))
def test_case_34_text_is_merged_only_where_the_end_meets_the_beginning(row: int) -> None:
    prefix, suffix = case(34)["input"]["rows"][row]
    assert merge_overlap(prefix, suffix) == case(34)["expect"]["merged"][row]


def unanswered(request: StreamRequest, second: list[Any], *, can_continue: bool) -> Played:
    first = [say("I will look"), {"error": {"code": "timeout_error"}}]
    return play([first, second], request=request, can_continue=can_continue)


@pytest.mark.parametrize(
    ("name", "request_", "can_continue"),
    [("a", OFFERED, True), ("b", replace(OFFERED, tools=()), False)],
)
def test_case_36_where_no_continuation_may_go_out_the_request_is_the_first_one(
    name: str, request_: StreamRequest, can_continue: bool
) -> None:
    assert case(36)["expect"][name]["continuation_messages"] == 0
    played = unanswered(request_, [say("Done."), FINISH], can_continue=can_continue)
    assert played.requests[1] == played.requests[0]
    assert "I will look" in played.shown


def test_case_36_the_first_error_is_shown_where_the_continuation_is_refused() -> None:
    status, expect = case(36)["input"]["c"]["target_status"], case(36)["expect"]["c"]
    refused = [{"http_error": {"status": status}}]
    played = unanswered(StreamRequest("Where?"), refused, can_continue=True)
    assert [told["code"] for told in played.told("error")] == [expect["primary_error"]]
    assert played.record.cause == "bad_request"
