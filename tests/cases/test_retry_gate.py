"""Cases 22 and 26: nothing is said twice, and a stall opens a segment."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.scenarios.clients import Client, careful, starts_over, with_segments
from labkit.simulation import Run
from tests.recovery.playing import calls, play, told

from .public import case

STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "delta": lambda text: {"say": text},
    "finish": lambda reason: {"finish": reason},
    "reset": lambda: {"drop": True},
}
BREAKS: dict[str, dict[str, Any]] = {
    "reset": {"drop": True},
    "error": {"error": {"code": "server_error"}},
    "plain error": {"error": "something went wrong"},
    "clean end": {"end": True},
    "stall": {"stall": True},
}
ONCE, TWICE = case(22), case(26)
POLICY_22 = RetryPolicy(retry_on=TRANSIENT, attempts=1 + ONCE["input"]["max_retries"])


def step(kind: str, *rest: Any) -> dict[str, Any]:
    return STEPS[kind](*rest)


def case_22(client: Client, **first: Any) -> Run:
    attempts = [[step(*told) for told in attempt] for attempt in ONCE["input"]["attempts"]]
    if first:
        attempts[0][-1] = first
    return play(attempts, client, policy=POLICY_22)


@pytest.mark.parametrize("client", [careful, with_segments])
def test_case_22_a_reset_after_text_ends_the_answer_with_the_text_kept(client: Client) -> None:
    run, expect = case_22(client), ONCE["expect"]["strict"]
    assert (calls(run), run.text) == (expect["provider_calls"], expect["text"])
    assert expect["end"] == "interrupted"
    assert getattr(run.error, "kind", None) == "disconnect"
    assert "disconnect" in TRANSIENT  # the user may try again, by hand


@pytest.mark.parametrize("client", [careful, with_segments])
@pytest.mark.parametrize("how", BREAKS)
def test_case_22_however_the_stream_breaks_no_segment_says_it_twice(
    how: str, client: Client
) -> None:
    run = case_22(client, **BREAKS[how])
    for segment in run.segments:
        assert ONCE["expect"]["never_contains"] not in segment.text
    assert run.findings == ()


def test_case_22_the_loop_around_the_whole_stream_does_say_it_twice() -> None:
    run = case_22(starts_over)
    assert ONCE["expect"]["never_contains"] in run.text
    assert [finding.name for finding in run.findings] == ["duplicate_text"]


def case_26(client: Client) -> Run:
    policy = RetryPolicy(
        retry_on=TRANSIENT, stall=TWICE["input"]["stall"], total=TWICE["input"]["total"]
    )
    attempts = []
    for attempt in TWICE["input"]["attempts"]:
        times = [0, *(at for at, *_ in attempt)]
        waits = [later - earlier for earlier, later in pairwise(times)]
        attempts.append(
            [step(*told) | {"wait": wait} for (_, *told), wait in zip(attempt, waits, strict=True)]
        )
    attempts[0].append({"stall": True})
    return play(attempts, client, policy=policy)


def test_case_26_a_stall_after_text_opens_a_new_segment() -> None:
    run, expect = case_26(with_segments), TWICE["expect"]
    first, second = expect["segments"]
    assert [segment.text for segment in run.segments] == [first["text"], second["text"]]
    assert run.segments[0].reason == first["reason"]
    assert told(run, "finish", "reason") == [second["end"]]
    assert run.text == expect["final"]
    assert calls(run) == expect["provider_calls"]


def test_case_26_one_boundary_stands_between_the_segments_and_numbers_keep_rising() -> None:
    run = case_26(with_segments)
    boundaries = [event.index for event in run.trace if event.kind == "segment_end"]
    assert len(boundaries) == TWICE["expect"]["boundary_events"]
    first, second = (event.index for event in run.trace if event.kind == "shown")
    assert first < boundaries[0] < second
    assert [event.index for event in run.trace] == list(range(len(run.trace)))


def test_case_26_where_there_are_no_segments_the_text_stays_and_the_end_is_told() -> None:
    run = case_26(careful)
    assert (run.text, getattr(run.error, "kind", None)) == ("Step 1 done. ", "stall")
    assert (calls(run), run.time) == (1, TWICE["input"]["stall"])
