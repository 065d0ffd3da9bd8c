"""One question to a model: whole or not at all, tried again where that helps, each try paid for."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from labkit.recovery.budget import BudgetExhausted
from labkit.recovery.errors import ProviderError
from labkit.runs.discussion.speaking import Speaker, as_provider_error, finish_of, object_in
from labkit.runs.discussion.talk import CRITIC, PROPOSER, turn
from labkit.runs.discussion.toolbox import toolbox
from tests.simulation.kit import virtually

from .kit import Desk, Scripted, talk, whole

REFUSED = ProviderError("slow down", status=429, code="rate_limit_exceeded")


def asks(*words: Any, role: str = CRITIC, **more: Any) -> Any:
    """What comes of a question that is answered so, and the model."""
    model = Scripted(says={role: list(words)})
    speaker = Speaker(model, random=Random(7), observe=lambda kind, **told: None, **more)
    return virtually(speaker(role, talk(turn("proposer", "Plan")))), model


def test_a_refusal_that_passes_is_tried_again_and_each_try_is_paid_for() -> None:
    paid: list[int] = []
    message, model = asks(REFUSED, REFUSED, "Sound.", pay=lambda: paid.append(1))
    assert message.text == "Sound."
    assert len(model.asked) == len(paid) == 3


def test_an_answer_that_nobody_calls_whole_is_asked_for_again() -> None:
    message, model = asks(whole("Sou", finish=""), "Sound.")
    assert message.text == "Sound."
    assert len(model.asked) == 2


@pytest.mark.parametrize("finish", ["length", "content_filter", "max_tokens"])
def test_an_answer_that_was_cut_is_an_error_and_not_asked_for_again(finish: str) -> None:
    with pytest.raises(ProviderError, match=finish):
        asks(whole("Sou", finish=finish))


def test_what_does_not_pass_is_raised_at_once() -> None:
    quota = ProviderError("none left", status=429, code="insufficient_quota")
    with pytest.raises(ProviderError) as caught:
        asks(quota, "never said")
    assert caught.value is quota


def test_without_budget_nothing_is_sent() -> None:
    model = Scripted()

    def pay() -> None:
        raise BudgetExhausted("requests")

    speaker = Speaker(model, random=Random(7), observe=lambda kind, **told: None, pay=pay)
    with pytest.raises(BudgetExhausted):
        virtually(speaker(CRITIC, talk()))
    assert model.asked == []


def test_only_the_proposer_is_offered_tools() -> None:
    offered: list[Any] = []

    class Offered(Scripted):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            offered.append(tools)
            return self

    _, schemas = toolbox(Desk())
    model = Offered()
    speaker = Speaker(model, random=Random(7), observe=lambda k, **t: None, tools=schemas)
    virtually(speaker(CRITIC, talk(turn("proposer", "Plan"))))
    assert offered == []
    virtually(speaker(PROPOSER, talk()))
    assert offered == [schemas]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure! ```json\n{"a": {"b": 2}}\n``` Done.', {"a": {"b": 2}}),
        ("no braces", {}),
        ("} {", {}),
        ('{"a": 1', {}),
        ("[1, 2]", {}),
        ('{"a": 1} and {"b": 2}', {}),
        ("{" * 100_000 + "}" * 100_000, {}),
        ("", {}),
    ],
    ids=lambda each: str(each)[:20],
)
def test_the_json_object_in_a_models_words_is_found_or_none(text: str, found: Any) -> None:
    assert object_in(text) == found


class StatusError(Exception):
    """As an SDK has it."""

    status_code = 429
    code = "insufficient_quota"


class ReadTimeout(Exception):
    """As an HTTP library has it."""


class ConnectError(Exception):
    """As an HTTP library has it."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [(StatusError(), "quota"), (ReadTimeout(), "timeout"), (ConnectError(), "connect")],
)
def test_an_sdks_error_is_known_by_its_status_or_its_name(error: Exception, kind: str) -> None:
    found = as_provider_error(error)
    assert isinstance(found, ProviderError)
    assert found.kind == kind


def test_what_is_no_answer_of_a_provider_stays_what_it_is() -> None:
    error = KeyError("x")
    assert as_provider_error(error) is error
    assert finish_of(whole("x", finish="")) == ""
