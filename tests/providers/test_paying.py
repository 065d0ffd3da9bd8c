"""The unmodified client on a budget: its retries are counted, refused, and end by its own error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import httpx2
import openai
import pytest

from labkit.providers.paying import Paying
from labkit.providers.script import script
from labkit.providers.sdk import scripted
from labkit.recovery.budget import Budget, BudgetExhausted, BudgetLimits, Spent
from labkit.simulation import Observer, Run, simulate
from tests.simulation.kit import scenario

MANY = BudgetLimits(requests=1000, retries=1000, per_tool=1000, seconds=1e6)
QUESTION: Any = {"model": "any", "messages": [{"role": "user", "content": "Hi"}]}
DOWN = (503, {})


class Network:
    """Answers each request with the next of `answers`, and the last one for ever."""

    def __init__(self, answers: Sequence[Any], limits: BudgetLimits, retries: int) -> None:
        self.answers = list(answers)
        self.times: list[float] = []
        self.budget = Budget(limits, clock=asyncio.get_running_loop().time)
        transport = Paying(httpx2.MockTransport(self.answer), self.budget.within("sdk"), retries)
        http = openai.DefaultAsyncHttpxClient(transport=transport)
        self.client = openai.AsyncOpenAI(
            api_key="k", base_url="http://x/v1", http_client=http, max_retries=retries
        )
        self.error: Any = None

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.times.append(asyncio.get_running_loop().time())
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(told, type):
            raise told("gone", request=request)
        return httpx2.Response(told[0], headers=told[1], json={"error": {"message": "no"}})

    async def ask(self, **options: Any) -> None:
        try:
            await self.client.with_options(**options).chat.completions.create(**QUESTION)
        except (openai.OpenAIError, BudgetExhausted) as error:
            self.error = error


def asked(
    *answers: Any, limits: BudgetLimits = MANY, retries: int = 2, times: int = 1, **options: Any
) -> Network:
    """A client that asks `times` times at once; the network that it asked."""

    async def client(provider: Any, policy: Any, observe: Observer) -> Network:
        network = Network(answers, limits, retries)
        await asyncio.gather(*(network.ask(**options) for _ in range(times)))
        return network

    run = simulate(scenario(client, sdk=True))
    assert run.error is None
    network: Network = run.result
    return network


def spent(network: Network) -> tuple[int, int]:
    used = network.budget.used["run/sdk"]
    return used.requests, used.retries


ANSWERS = [
    *((status, {}) for status in (400, 401, 404, 408, 409, 422, 429, 499, 500, 503, 529)),
    (400, {"x-should-retry": "true"}),
    (503, {"x-should-retry": "false"}),
    (503, {"x-should-retry": "perhaps"}),
    *((429, {"retry-after": asked_for}) for asked_for in ("0", "3", "120", "121", "soon")),
    (429, {"retry-after-ms": "250"}),
    (429, {"retry-after-ms": "121000"}),
    (503, {"retry-after": "121", "x-should-retry": "true"}),
    httpx2.ConnectError,
    httpx2.ReadError,
    httpx2.ReadTimeout,
]


@pytest.mark.parametrize("answer", ANSWERS, ids=str)
def test_what_is_paid_for_is_what_the_client_does_by_its_own_rules(answer: Any) -> None:
    network = asked(answer)
    made = len(network.times)
    assert made in (1, 3)
    assert spent(network) == (made, made - 1)


@pytest.mark.parametrize("answer", [DOWN, (429, {"retry-after": "3"}), httpx2.ReadError], ids=str)
def test_the_wait_that_is_asked_for_is_never_shorter_than_the_clients_own(answer: Any) -> None:
    network = asked(answer, retries=6)
    really = [later - before for before, later in pairwise(network.times)]
    waited = network.budget.used["run"].waited
    assert 0.75 * waited <= sum(really) <= waited


def test_where_the_budget_says_no_the_client_ends_with_the_last_real_answer() -> None:
    network = asked(DOWN, (500, {}), limits=BudgetLimits(retries=1))
    assert (len(network.times), type(network.error)) == (2, openai.InternalServerError)
    assert (network.error.status_code, network.error.__cause__) == (500, None)
    told = network.error.response.headers
    assert (told["x-should-retry"], told["x-budget-exhausted"]) == ("false", "retries")


@pytest.mark.parametrize(
    ("lost", "error"),
    [
        (httpx2.ReadError, openai.APIConnectionError),
        (httpx2.ConnectError, openai.APIConnectionError),
        (httpx2.ReadTimeout, openai.APITimeoutError),
    ],
)
def test_a_lost_connection_ends_in_the_error_that_the_client_itself_would_raise(
    lost: Any, error: Any
) -> None:
    limited, alone = asked(lost, limits=BudgetLimits(retries=0)), asked(lost, retries=0)
    assert (len(limited.times), len(alone.times)) == (1, 1)
    for network in (limited, alone):
        assert type(network.error) is error
        assert type(network.error.__cause__) is lost
    assert str(limited.error) == str(alone.error)
    assert limited.error.__notes__ == ["the client was not let try again: retries"]


def test_a_wait_that_would_pass_the_deadline_is_not_slept() -> None:
    network = asked((429, {"retry-after": "30"}), limits=BudgetLimits(seconds=20.0))
    assert network.times == [0.0]
    assert network.error.response.headers["x-budget-exhausted"] == "seconds"


def test_not_even_the_first_request_goes_out_on_an_empty_budget() -> None:
    network = asked(DOWN, limits=BudgetLimits(requests=0))
    assert (network.times, type(network.error)) == ([], BudgetExhausted)


def test_a_retry_that_was_allowed_has_its_request_even_where_others_use_up_the_rest() -> None:
    network = asked(DOWN, limits=BudgetLimits(requests=5), times=3)
    assert len(network.times) == 5 == network.budget.used["run"].requests
    assert isinstance(network.error, openai.InternalServerError)


def test_retries_beyond_those_it_was_made_with_pay_at_the_door() -> None:
    network = asked(DOWN, limits=BudgetLimits(requests=3), retries=1, max_retries=4)
    assert len(network.times) == 3 == network.budget.used["run"].requests
    assert isinstance(network.error, BudgetExhausted)


def test_a_scripted_client_draws_on_the_budget_that_it_is_given() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> dict[str, Spent]:
        budget = Budget(BudgetLimits(requests=2), clock=asyncio.get_running_loop().time)
        down = script({"name": "x", "attempts": [[{"http_error": {"status": 503}}]]})
        sdk = scripted(down, observe.of("provider"), budget=budget.within("sdk"))
        with pytest.raises(openai.InternalServerError):
            await sdk.chat.completions.create(**QUESTION)
        return budget.used

    run: Run = simulate(scenario(client, sdk=True))
    assert run.error is None
    assert sum(event.kind == "request" for event in run.trace) == 2
    assert run.result["run/sdk"] == Spent(requests=2, retries=1, waited=0.5)


class Breaks(httpx2.AsyncByteStream):
    """A body that breaks in the middle."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b'{"id": '
        raise httpx2.ReadError("reset")


class BodyBreaks(Network):
    """Each answer begins well."""

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """Begin it."""
        self.times.append(asyncio.get_running_loop().time())
        return httpx2.Response(200, stream=Breaks())


@pytest.mark.parametrize(("allowed", "sent"), [(1000, 3), (2, 2), (1, 1)])
def test_a_retry_after_a_body_that_broke_is_a_request_like_any_other(
    allowed: int, sent: int
) -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> tuple[int, int]:
        limits = replace(MANY, requests=allowed)
        network = BodyBreaks([DOWN], limits, 2)
        await network.ask()
        return len(network.times), network.budget.used["run"].requests

    run = simulate(scenario(client, sdk=True))
    assert (run.error, run.result) == (None, (sent, sent))
