"""The unmodified client in virtual time, and the adapter that makes it look like the fake."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from labkit.providers.fake import FakeProvider
from labkit.providers.script import script
from labkit.providers.sdk import SDKProvider, provider_error, scripted
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.scenarios import clients
from labkit.scenarios.sdk import unmodified
from labkit.simulation import STREAM_JUDGES, Fault, Observer, Run, Scenario, simulate

from .worlds import listen, of_sdk, run_of

Answer = Callable[[httpx2.Request], Any]
DONE = b"data: [DONE]\n\n"


def over(handler: Answer, **options: Any) -> SDKProvider:
    """The adapter over a client whose network is `handler`."""
    http = openai.DefaultAsyncHttpxClient(transport=httpx2.MockTransport(handler))
    options = {"max_retries": 0, **options}
    client = openai.AsyncOpenAI(api_key="k", base_url="http://x/v1", http_client=http, **options)
    return SDKProvider(client)


def streamed(*data: str | bytes) -> SDKProvider:
    """The adapter over one 200 answer with these events."""
    lines = [piece if isinstance(piece, bytes) else piece.encode() for piece in data]
    body = b"".join(b"data: " + line + b"\n\n" for line in lines)
    headers = {"content-type": "text/event-stream"}
    return over(lambda request: httpx2.Response(200, headers=headers, content=body))


def heard(provider: SDKProvider) -> list[Delta]:
    async def listening() -> list[Delta]:
        return [delta async for delta in provider.stream()]

    return asyncio.run(listening())


def failure(provider: SDKProvider) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        heard(provider)
    return caught.value


def _same(answer: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    return answer


def chunk(**choice: Any) -> str:
    return json.dumps({"choices": [{"index": 0, **choice}]})


def playing(*attempts: Any, client: Any, make: Any, policy: Any = None) -> Run:
    return simulate(
        Scenario(
            name="x",
            claim="",
            script=script({"name": "x", "attempts": list(attempts)}),
            make=make,
            client=client,
            policy=policy,
            judges=STREAM_JUDGES,
            sdk=True,
        )
    )


# Case 25: an error object without choices


CASE = json.loads((Path(__file__).parents[2] / "data/cases/25.json").read_text("utf-8"))


@pytest.mark.parametrize("number", range(len(CASE["input"]["frames"])))
def test_case_25_an_error_without_choices_is_never_an_empty_success(number: int) -> None:
    error = failure(streamed(*CASE["input"]["frames"][number]))
    assert CASE["expect"]["message_contains"][number] in str(error)
    assert not error.definite


def test_case_25_a_quota_is_known_by_its_type_also_inside_a_stream() -> None:
    assert failure(streamed(*CASE["input"]["frames"][0])).kind == "quota"
    assert failure(streamed(*CASE["input"]["frames"][1])).kind == "unknown"


@pytest.mark.parametrize("make", [FakeProvider, of_sdk])
@pytest.mark.parametrize("error", [{"code": "insufficient_quota"}, "words", "", {}])
def test_case_25_no_adapter_ends_well_on_an_error_that_is_all_there_is(
    make: Any, error: Any
) -> None:
    play = script({"name": "x", "attempts": [[{"error": error}]]})
    (seen,) = run_of(play, make, is_sdk=True).result
    assert [entry[0] for entry in seen] == ["error"]


@pytest.mark.parametrize("error", ['""', "{}", "[]", "0", "false", '{"message": 5}', "503"])
def test_an_error_that_the_client_lets_pass_is_an_error_all_the_same(error: str) -> None:
    assert not failure(streamed(f'{{"error": {error}}}', "[DONE]")).definite


def test_an_error_field_of_null_beside_a_choice_is_no_error() -> None:
    said = '{"error": null, "choices": [{"index": 0, "delta": {"content": "a"}}]}'
    assert heard(streamed(said, "[DONE]")) == [Delta("text", "a")]


# What the adapter reads


def test_every_field_of_a_chunk_becomes_a_delta() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    provider = streamed(
        chunk(delta={"role": "assistant", "content": ""}),
        chunk(delta={"reasoning_content": "hm", "content": None}),
        chunk(delta={"content": "a", "tool_calls": [call]}, finish_reason="stop"),
        chunk(delta={"refusal": "no"}),
        '{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}',
        "[DONE]",
    )
    assert heard(provider) == [
        Delta("role", "assistant"),
        Delta("thinking", "hm"),
        Delta("text", "a"),
        Delta("tool_call", "{}", 0, "c", "f"),
        Delta("finish", reason="stop"),
        Delta("text", "no"),
        Delta("usage", tokens_in=5, tokens_out=1),
    ]


def test_a_finish_reason_is_never_invented() -> None:
    for last in ("[DONE]", chunk(delta={"content": "b"}, finish_reason="")):
        kinds = [delta.kind for delta in heard(streamed(chunk(delta={"content": "a"}), last))]
        assert "finish" not in kinds


def test_comments_and_chunks_that_say_nothing_are_passed_over() -> None:
    assert heard(streamed('{"choices": []}', "{}", b"[DONE]")) == []


@pytest.mark.parametrize(
    "junk",
    [
        *("{", b"\xff", "5", '"text"', "[1]"),
        *('{"choices": 5}', '{"choices": [5]}', '{"choices": [{}]}', '{"usage": 5}'),
        *(chunk(delta=said) for said in (None, {"content": 5}, {"tool_calls": [5]})),
    ],
)
def test_junk_from_the_provider_is_an_error_of_the_protocol(junk: str | bytes) -> None:
    assert failure(streamed(junk)).kind == "protocol"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"code": "unheard_of", "type": "rate_limit_error"}, "rate_limit"),
        ({"code": 503, "message": "busy"}, "overloaded"),
        ({"code": "400", "type": "BadRequestError"}, "bad_request"),
        ({"code": "9" * 5000}, "unknown"),
        ({"message": "rate limit, quota, 503, timeout"}, "unknown"),
    ],
)
def test_an_error_in_the_stream_is_read_by_code_and_type_alone(body: Any, kind: str) -> None:
    error = failure(streamed(json.dumps({"error": body})))
    assert (error.kind, error.status, error.definite) == (kind, None, False)


def test_a_refusal_keeps_status_code_message_and_headers() -> None:
    told = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}
    answer = httpx2.Response(429, headers={"Retry-After": "7"}, json=told)
    error = failure(over(partial(_same, answer)))
    assert (error.kind, error.status, str(error)) == ("rate_limit", 429, "slow down")
    assert (error.code, error.definite) == ("rate_limit_exceeded", True)
    assert error.headers["retry-after"] == "7"


def test_a_refusal_without_a_readable_body_is_read_by_its_status() -> None:
    for content in (b"", b"<html>", b"\xff", b'"text"', b"[1]", b'{"error": 5}'):
        answer = httpx2.Response(503, content=content)
        error = failure(over(partial(_same, answer)))
        assert (error.kind, error.status, error.definite) == ("overloaded", 503, False)


@pytest.mark.parametrize(
    ("raised", "kind", "definite"),
    [
        (httpx2.ConnectError, "connect", True),
        (httpx2.ConnectTimeout, "connect", True),
        (httpx2.PoolTimeout, "connect", True),
        (httpx2.ReadTimeout, "timeout", False),
        (httpx2.WriteTimeout, "timeout", False),
        (httpx2.ReadError, "disconnect", False),
        (httpx2.WriteError, "disconnect", False),
        (httpx2.RemoteProtocolError, "disconnect", False),
    ],
)
def test_a_failing_network_is_told_by_the_type_of_its_error(
    raised: Any, kind: str, definite: bool
) -> None:
    def network(request: httpx2.Request) -> httpx2.Response:
        raise raised("timeout connect 429", request=request)

    error = failure(over(network))
    assert (error.kind, error.definite, error.status) == (kind, definite, None)
    assert isinstance(error.__cause__, openai.APIConnectionError)


def test_silence_before_and_inside_a_stream_are_two_kinds() -> None:
    timeout = openai.APITimeoutError(request=httpx2.Request("POST", "http://x"))
    assert provider_error(timeout, opened=False).kind == "timeout"
    assert provider_error(timeout, opened=True).kind == "stall"


# Time


SILENT = ([{"say": "a"}, {"wait": 3, "say": "b"}, {"finish": "stop"}],)


def with_timeout(seconds: float | None) -> Any:
    return lambda play, observe: scripted(play, observe, max_retries=0, timeout=seconds)


def test_the_clients_read_timeout_passes_in_virtual_time() -> None:
    run = playing(*SILENT, client=unmodified, make=with_timeout(2.5))
    assert (type(run.error), run.time, run.text) == (openai.APITimeoutError, 2.5, "a")
    assert playing(*SILENT, client=unmodified, make=with_timeout(3.5)).text == "ab"
    assert playing(*SILENT, client=unmodified, make=with_timeout(None)).text == "ab"


def test_the_timeout_counts_from_the_last_byte_and_covers_the_first() -> None:
    steady = [{"wait": 2, "say": letter} for letter in "abc"]
    assert playing(steady, client=unmodified, make=with_timeout(2.5)).text == "abc"
    late = playing([{"wait": 3, "say": "a"}], client=unmodified, make=with_timeout(2.5))
    assert (type(late.error), late.time) == (openai.APITimeoutError, 2.5)


def test_the_client_retries_silence_before_the_stream_and_never_inside_it() -> None:
    def make(play: Any, observe: Observer) -> openai.AsyncOpenAI:
        return scripted(play, observe, timeout=2.5)

    late = playing([{"wait": 9, "say": "a"}], client=unmodified, make=make)
    assert [e["attempt"] for e in late.trace if e.kind == "request"] == [1, 2, 3]
    inside = playing(*SILENT, client=unmodified, make=make)
    assert [e["attempt"] for e in inside.trace if e.kind == "request"] == [1]


def test_a_stall_of_five_hours_does_not_succeed() -> None:
    steps = [{"say": "a"}, {"wait": 18_000, "finish": "stop"}]
    run = playing(steps, client=unmodified, make=scripted)
    assert (type(run.error), run.time) == (openai.APITimeoutError, 600.0)


def test_a_stop_reaches_the_provider_through_the_client() -> None:
    async def stopped(provider: Any, policy: Any, observe: Observer) -> Any:
        return await listen(provider, 1, 0.5)

    run = playing([{"say": "a"}, {"stall": True}], client=stopped, make=of_sdk)
    assert [entry[0] for entry in run.result[0]] == ["text", "left"]
    left = [event for event in run.trace if event.kind == "left"]
    assert [(event.time, event["how"]) for event in left] == [(0.5, "cancelled")]


def test_leaving_early_closes_the_connection_at_once() -> None:
    async def leaves(provider: Any, policy: Any, observe: Observer) -> None:
        async with aclosing(provider.stream()) as stream:
            await anext(stream)
        observe("gone")

    run = playing([{"say": "a"}, {"wait": 5, "say": "b"}], client=leaves, make=of_sdk)
    kinds = [event.kind for event in run.trace if event.kind in ("left", "gone")]
    assert kinds == ["left", "gone"]


def test_a_cancel_at_any_suspension_leaves_as_a_cancel() -> None:
    async def careful(provider: Any, policy: Any, observe: Observer) -> None:
        await clients.careful(provider, policy, observe)

    policy = RetryPolicy(retry_on=TRANSIENT)
    steps = [{"wait": 0.1, "say": "a"}, {"wait": 0.1, "say": "b"}, {"finish": "stop"}]
    scenario = playing(steps, client=careful, make=of_sdk, policy=policy).scenario
    for phase in ("waiting", "waking"):
        for point in range(3):
            run = simulate(scenario, faults=[Fault("cancel", point, phase=phase)])
            assert run.missed == ()
            assert isinstance(run.error, asyncio.CancelledError), (phase, point, run)


# The lab's own rules


def test_no_key_reaches_the_trace_or_the_places() -> None:
    def make(play: Any, observe: Observer) -> openai.AsyncOpenAI:
        client = scripted(play, observe)
        client.api_key = "sk-verysecret123"
        return client

    async def client(sdk: Any, policy: Any, observe: Observer) -> None:
        api_key = sdk.api_key
        observe("asking", api_key=api_key, headers=f"authorization: Bearer {api_key}")
        await unmodified(sdk, policy, observe)

    run = playing([{"say": "a"}], client=client, make=make)
    assert run.error is None
    assert "verysecret" not in repr(run.trace) + repr([view.locals for view in run.recorded])
    assert "***" in repr(run.trace)


FRESH = """
import random
random.seed(5)
from labkit import simulate
first, second = simulate("sdk.down", seed=3), simulate("sdk.down", seed=3)
assert first.hash == second.hash, (first.trace, second.trace)
assert not [event for event in first.trace if event.kind == "refused"], first.trace
assert first.recorded
assert random.random() == random.Random(5).random()
print(first.hash)
"""


def test_the_first_run_of_a_process_is_like_every_other() -> None:
    hashes = {
        subprocess.run(
            [sys.executable, "-c", FRESH],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1
