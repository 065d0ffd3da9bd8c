"""The shell around the decision: streams, waits, clocks and what leaves."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.deltas import Boundary, Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.retry import stream_with_retry, whole_answer
from labkit.scenarios.clients import with_segments
from labkit.simulation import Segment

from .playing import (
    FINISH,
    PLAIN,
    calls,
    notes,
    play,
    play_with,
    refused,
    requests_without_an_end,
    say,
    told,
)

OK = [say("Hello"), FINISH]
STALL = {"stall": True}


def pieces_of(
    provider: Any, policy: Any, observe: Any, *, segments: bool = False, tell: Any = None
) -> AsyncGenerator[Delta | Boundary, None]:
    return stream_with_retry(
        provider.stream,
        policy=policy,
        random=observe.random,
        segments=segments,
        observe=tell or observe,
        now=observe.now,
    )


def reading(seconds: float, *, at: Callable[[Any], bool], segments: bool = False) -> Any:
    """A client that takes so many seconds over each piece that `at` picks."""

    async def client(provider: Any, policy: Any, observe: Any) -> list[Any]:
        seen = []
        async for piece in pieces_of(provider, policy, observe, segments=segments):
            seen.append(piece)
            if at(piece):
                await asyncio.sleep(seconds)
        return seen

    return client


# --- waits and attempts ---------------------------------------------------------------------------


def test_a_refusal_before_the_first_delta_is_tried_again_after_the_wait_asked_for() -> None:
    run = play([refused(429, retry_after="2"), OK])
    assert told(run, "wait", "seconds") == [2]
    assert [e.time for e in run.trace if e.kind == "request"] == [0, 2]
    assert (run.error, run.text) == (None, "Hello")


def test_after_visible_text_an_error_is_not_tried_again() -> None:
    run = play([[say("Hel"), {"error": {"code": "server_error"}}], OK])
    assert (calls(run), run.text) == (1, "Hel")
    assert told(run, "decision", "reason") == ["visible output"]


def test_the_last_error_leaves_as_it_is_with_a_note_of_what_ran_out() -> None:
    run = play([refused(503), refused(500), refused(503, retry_after="0")])
    assert isinstance(run.error, ProviderError)
    assert run.error.headers == {"retry-after": "0"}
    assert notes(run) == ["gave up after attempt 4 of 4: attempts"]
    assert run.error.__cause__ is None


def test_a_wait_that_would_pass_the_deadline_ends_the_run_at_once() -> None:
    run = play([refused(429, retry_after="60")])
    assert (calls(run), run.time) == (1, 0)
    assert notes(run) == ["gave up after attempt 1 of 4: deadline"]


def test_each_refusal_is_asked_for_its_own_retry_after() -> None:
    run = play([refused(429, retry_after="3"), refused(429), OK])
    assert told(run, "wait", "seconds") == [3, 2]
    assert told(run, "wait", "reason") == ["retry-after", "backoff"]


def test_a_retry_after_of_zero_is_tried_again_at_once() -> None:
    run = play([refused(429, retry_after="0"), OK])
    assert (run.time, run.text) == (0, "Hello")


def test_a_date_is_measured_by_the_clock_that_was_given() -> None:
    run = play([refused(429, retry_after="Mon, 02 Mar 2026 12:00:30 GMT"), OK])
    assert told(run, "wait", "seconds") == [30]


def test_quota_and_rate_limit_are_told_apart_by_the_code_alone() -> None:
    for code, requests in (("insufficient_quota", 1), ("rate_limit_exceeded", 2)):
        error = {"status": 429, "code": code, "message": "You exceeded your current quota"}
        assert calls(play([[{"http_error": error}], OK])) == requests


def test_jitter_comes_from_the_seed() -> None:
    policy = replace(PLAIN, jitter=0.5)
    waits = [
        told(play([refused(503), OK], policy=policy, seed=seed), "wait", "seconds")[0]
        for seed in (1, 1, 2)
    ]
    assert waits[0] == waits[1] != waits[2]
    assert all(0.5 <= wait <= 1 for wait in waits)


def test_the_observer_is_told_of_every_attempt_failure_decision_and_wait() -> None:
    run = play([refused(503), OK])
    kinds = [event.kind for event in run.trace if event.actor == "client"]
    assert kinds == [
        *("attempt", "failure", "decision", "wait"),
        *("attempt", "first_text", "complete"),
    ]


def test_a_slow_reader_at_the_boundary_does_not_make_the_wait_longer() -> None:
    slow = reading(3.0, at=lambda piece: isinstance(piece, Boundary))
    run = play([refused(429, retry_after="5"), OK], slow)
    assert [e.time for e in run.trace if e.kind == "request"] == [0, 5]


def test_a_reader_who_takes_longer_than_the_wait_is_followed_at_once() -> None:
    slow = reading(7.0, at=lambda piece: isinstance(piece, Boundary))
    run = play([refused(429, retry_after="5"), OK], slow)
    assert [e.time for e in run.trace if e.kind == "request"] == [0, 7]


def test_a_reader_who_takes_longer_than_the_deadline_is_asked_for_no_more_requests() -> None:
    slow = reading(70.0, at=lambda piece: isinstance(piece, Boundary))
    run = play([refused(503), OK], slow)
    assert (calls(run), told(run, "failure", "error")) == (1, ["overloaded", "deadline"])


# --- what is visible ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "piece",
    [
        {"role": "assistant"},
        {"think": "hm"},
        say(""),
        {"call": {"id": "c1", "name": "look_up", "arguments": "{"}},
        {"usage": {"in": 5, "out": 0}},
    ],
    ids=lambda piece: next(iter(piece)),
)
def test_what_no_reader_has_seen_does_not_stop_a_retry(piece: dict[str, Any]) -> None:
    run = play([[piece, {"drop": True}], OK])
    assert (calls(run), run.text) == (2, "Hello")


def test_a_single_blank_has_been_seen() -> None:
    assert calls(play([[say(" "), {"drop": True}], OK])) == 1


# --- stalls and segments --------------------------------------------------------------------------


def test_a_stall_after_text_opens_a_segment_where_the_caller_can() -> None:
    run = play([[say("Hel"), STALL], OK], with_segments)
    assert run.segments == (Segment("Hel", "stall"), Segment("Hello"))
    assert told(run, "attempt", "segment") == [1, 2]
    assert told(run, "decision", "action") == ["new_segment"]


def test_a_stall_after_text_ends_it_where_the_caller_cannot() -> None:
    run = play([[say("Hel"), STALL], OK])
    assert (calls(run), run.time, run.segments) == (1, 5, (Segment("Hel"),))


def test_a_stall_before_text_is_tried_again_in_the_same_segment() -> None:
    run = play([[{"role": "assistant"}, STALL], OK], with_segments)
    assert (calls(run), run.segments) == (2, (Segment("Hello"),))


def test_an_ordinary_error_after_text_opens_no_segment() -> None:
    run = play([[say("Hel"), {"drop": True}], OK], with_segments)
    assert (calls(run), run.segments) == (1, (Segment("Hel"),))


def test_stalls_share_the_attempts_and_leave_no_empty_segment_at_the_end() -> None:
    run = play([[say("Hel"), STALL]], with_segments)
    assert calls(run) == 4
    assert run.segments == (*[Segment("Hel", "stall")] * 3, Segment("Hel"))
    assert notes(run) == ["gave up after attempt 4 of 4: attempts"]


def test_a_failure_in_a_new_segment_before_its_text_is_tried_again_in_it() -> None:
    run = play([[say("Hel"), STALL], refused(503), OK], with_segments)
    assert run.segments == (Segment("Hel", "stall"), Segment("Hello"))
    assert told(run, "attempt", "segment") == [1, 2, 2]


def test_the_boundary_comes_before_the_wait_and_says_why() -> None:
    client = reading(0, at=lambda piece: False, segments=True)
    run = play([[say("Hel"), STALL], refused(503), OK], client)
    boundaries = [piece for piece in run.result if isinstance(piece, Boundary)]
    assert boundaries == [Boundary(2, 2, "stall"), Boundary(3, 2, "overloaded")]


# --- the clocks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [{"role": "assistant"}, say(""), {"think": ""}, {"usage": {"in": 5, "out": 1}}],
    ids=["role", "empty text", "empty thinking", "usage"],
)
def test_a_piece_without_news_does_not_put_off_the_stall(step: dict[str, Any]) -> None:
    run = play([[say("Hel"), {"forever": [step | {"wait": 1}]}]])
    assert (type(run.error), run.time) == (ProviderError, 5)
    assert told(run, "failure", "error") == ["stall"]


@pytest.mark.parametrize(
    "step",
    [{"think": "hm"}, say("x"), {"call": {"id": "c1", "name": "f", "arguments": "{"}}],
    ids=["thinking", "text", "tool call"],
)
def test_news_puts_off_the_stall(step: dict[str, Any]) -> None:
    run = play([[*[step | {"wait": 4}] * 10, {"wait": 4, "finish": "stop"}]])
    assert (run.error, run.time) == (None, 44)


@pytest.mark.parametrize("slow_at", ["text", "role"])
def test_the_readers_own_time_is_no_stall(slow_at: str) -> None:
    slow = reading(10.0, at=lambda piece: piece.kind == slow_at)
    run = play([[say("Hel"), {"role": "assistant"}, say("lo", 4), FINISH]], slow)
    assert run.error is None


def test_the_deadline_ends_a_stream_that_goes_on_and_on() -> None:
    run = play([[{"forever": [say("x", 4)]}]], policy=replace(PLAIN, total=30.0))
    assert (run.time, run.text) == (30, "x" * 7)
    assert told(run, "failure", "error") == ["deadline"]
    assert notes(run) == ["gave up after attempt 1 of 4: deadline"]


def test_what_comes_at_the_very_instant_of_the_deadline_comes_too_late() -> None:
    run = play([[say("Hel", 4), say("lo", 4), FINISH]], policy=replace(PLAIN, total=8.0))
    assert (run.time, run.text) == (8, "Hel")


def test_the_deadline_counts_the_attempts_and_waits_before() -> None:
    policy = replace(PLAIN, total=10.0)
    run = play(
        [refused(429, retry_after="7"), [say("Hel", 1), say("lo", 3), FINISH]], policy=policy
    )
    assert (run.time, run.text) == (10, "Hel")


# --- the end of an answer -------------------------------------------------------------------------


def test_a_clean_end_without_a_finish_reason_is_an_error() -> None:
    run = play([[say("Hel"), {"end": True}], OK])
    assert told(run, "failure", "error") == ["cut_off"]
    assert (calls(run), run.text) == (1, "Hel")


def test_an_empty_answer_without_a_finish_reason_is_tried_again() -> None:
    assert play([[{"end": True}], OK]).text == "Hello"


def test_the_usage_after_the_finish_reason_is_still_handed_on() -> None:
    usage = {"wait": 1, "usage": {"in": 5, "out": 1}}
    run = play([[*OK, usage]], reading(0, at=lambda piece: False))
    assert run.result[-1] == Delta("usage", tokens_in=5, tokens_out=1)


@pytest.mark.parametrize(
    "after",
    [{"drop": True}, {"error": "late trouble"}, STALL, {"end": True}, FINISH],
    ids=lambda step: next(iter(step)),
)
def test_nothing_that_comes_after_the_finish_reason_spoils_the_answer(
    after: dict[str, Any],
) -> None:
    run = play([[*OK, after]])
    assert (run.error, run.text, calls(run)) == (None, "Hello", 1)


def test_a_stream_that_hangs_after_its_finish_reason_is_left_after_two_seconds() -> None:
    for steps in ([STALL], [{"forever": [{"wait": 0.5, "finish": "stop"}]}]):
        run = play([[say("Hello"), {"wait": 1, "finish": "stop"}, *steps]])
        assert (run.error, run.time) == (None, 3)


# --- errors that are not the provider's word ------------------------------------------------------


async def hello(attempt: int) -> AsyncGenerator[Delta, None]:
    yield Delta("text", "Hello")
    yield Delta("finish", reason="stop")


@pytest.mark.parametrize(
    "error",
    [ValueError("bad JSON"), ConnectionResetError("reset"), TimeoutError("its own"), KeyError(1)],
    ids=repr,
)
def test_an_error_that_is_no_provider_error_leaves_at_once_and_as_it_is(error: Exception) -> None:
    async def broken(attempt: int) -> AsyncGenerator[Delta, None]:
        yield Delta("role")
        raise error

    run = play_with(broken)
    assert run.error is error
    assert told(run, "attempt", "attempt") == [1]
    assert not hasattr(error, "__notes__")


def test_a_provider_that_fails_before_it_gives_a_stream_is_treated_like_any_failure() -> None:
    def refuses_once(attempt: int) -> AsyncGenerator[Delta, None]:
        if attempt == 1:
            raise ProviderError("busy", status=503)
        return hello(attempt)

    run = play_with(refuses_once)
    assert (run.error, run.text, told(run, "wait", "seconds")) == (None, "Hello", [1])


def test_an_open_stream_that_breaks_leaves_as_it_is() -> None:
    def broken(attempt: int) -> AsyncGenerator[Delta, None]:
        raise ValueError("no such model")

    assert repr(play_with(broken).error) == "ValueError('no such model')"


def telling_until(kind: str) -> Any:
    async def client(provider: Any, policy: Any, observe: Any) -> None:
        def tell(told_kind: str, **details: Any) -> None:
            observe(told_kind, **details)
            if told_kind == kind:
                raise RuntimeError(f"observer: {kind}")

        async with aclosing(pieces_of(provider, policy, observe, tell=tell)) as pieces:
            async for _ in pieces:
                pass

    return client


@pytest.mark.parametrize(
    "kind", ["attempt", "failure", "decision", "wait", "first_text", "complete"]
)
def test_an_error_of_the_observer_leaves_at_once_and_closes_the_stream(kind: str) -> None:
    run = play([refused(503), OK], telling_until(kind))
    assert repr(run.error) == f"RuntimeError('observer: {kind}')"
    assert run.findings == ()
    assert requests_without_an_end(run) == 0


# --- leaving early --------------------------------------------------------------------------------

STEPS = [{"role": "assistant"}, say("Hel", 1), say("lo", 1), FINISH, {"usage": {"in": 1, "out": 1}}]


@pytest.mark.parametrize("count", range(1, 6))
def test_a_reader_may_leave_after_any_piece_and_the_stream_is_closed_by_then(count: int) -> None:
    async def leaves(provider: Any, policy: Any, observe: Any) -> int:
        taken = 0
        async with aclosing(pieces_of(provider, policy, observe)) as pieces:
            async for _ in pieces:
                taken += 1
                if taken == count:
                    break
        observe("away", tasks=len(asyncio.all_tasks()))
        return taken

    run = play([STEPS], leaves)
    away = run.trace[-2]
    assert (away.kind, away["tasks"], run.result) == ("away", 1, count)
    left = [event for event in run.trace if event.kind == "left"]
    assert [event["how"] for event in left] == ["closed"]
    assert left[0].index < away.index


def test_a_reader_may_leave_at_a_boundary() -> None:
    async def leaves(provider: Any, policy: Any, observe: Any) -> int:
        async with aclosing(pieces_of(provider, policy, observe)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Boundary):
                    break
        return len(asyncio.all_tasks())

    run = play([refused(503), OK], leaves)
    assert (run.result, run.time, calls(run)) == (1, 0, 1)


def test_an_error_of_the_reader_leaves_and_the_stream_is_closed() -> None:
    async def fails(provider: Any, policy: Any, observe: Any) -> None:
        async with aclosing(pieces_of(provider, policy, observe)) as pieces:
            async for piece in pieces:
                if piece == Delta("text", "Hel"):
                    raise ProviderError("the reader's own", status=503)

    run = play([STEPS], fails)
    assert (str(run.error), calls(run)) == ("the reader's own", 1)
    assert told(run, "left", "how") == ["closed"]


def test_a_whole_answer_that_is_left_closes_its_stream() -> None:
    async def leaves(provider: Any, policy: Any, observe: Any) -> int:
        answer = whole_answer(provider.stream(1), stall=5, deadline=60)
        async with aclosing(answer):
            await anext(answer)
        return len(asyncio.all_tasks())

    run = play([STEPS], leaves)
    assert (run.result, told(run, "left", "how")) == (1, ["closed"])
