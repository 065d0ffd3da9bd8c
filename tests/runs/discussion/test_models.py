"""Demo models that are functions of what they read, and real ones behind a flag and a cap."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import langchain.chat_models
import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from labkit.recovery.budget import BudgetExhausted
from labkit.recovery.errors import ProviderError
from labkit.runs.codes import error_code
from labkit.runs.discussion.models import DEMO, SLOW, DemoModel, Models, UnknownModel, said
from labkit.runs.discussion.speaking import _ROLES
from labkit.runs.discussion.talk import transcript, turn
from tests.simulation.kit import virtually

from .kit import ASKS, BOTH, talk

READ = transcript(talk(turn("proposer", "Plan v1"), turn("critic", "VERDICT: REVISE")))


async def asked(model: Any, role: str, read: str = READ) -> Any:
    """What the model says in a role, and the seconds that it takes."""
    clock = asyncio.get_running_loop().time
    began = clock()
    messages = [SystemMessage(f"You are the {role}. {_ROLES[role]}"), HumanMessage(read)]
    return await model.ainvoke(messages), clock() - began


@pytest.mark.parametrize("role", _ROLES)
def test_the_demo_model_says_the_same_whenever_it_reads_the_same(role: str) -> None:
    first, _ = virtually(asked(Models()("fake"), role))
    second, _ = virtually(asked(Models()("fake-slow"), role))
    assert (first.content, first.tool_calls) == (second.content, second.tool_calls)
    assert first.usage_metadata["total_tokens"] == len(READ) // 4 + len(first.content) // 4
    assert first.response_metadata["finish_reason"] == "stop"


def test_a_call_takes_the_pause_and_one_of_the_slow_model_longer() -> None:
    made = Models(pause=0.5)
    waits = [virtually(asked(made(name), "critic"))[1] for name in ("fake", "fake-slow")]
    assert waits == [0.5, 0.5 + SLOW]


def test_the_broken_model_has_no_quota_in_the_critic_and_is_well_elsewhere() -> None:
    broken = Models()("fake-broken")
    virtually(asked(broken, "proposer"))
    with pytest.raises(ProviderError) as caught:
        virtually(asked(broken, "critic"))
    assert error_code(caught.value) == "QUOTA_EXCEEDED"


def test_a_question_makes_the_demo_model_ask_once_and_want_two_calls_once() -> None:
    told = json.loads(said("coordinator", transcript(talk(question=ASKS)))[0])
    assert told["action"] == "ask_human"
    after = transcript(talk(turn("person", "How? -> so"), question=ASKS))
    assert json.loads(said("coordinator", after)[0])["action"] == "dispatch"
    _, calls = said("proposer", transcript(talk(question=BOTH)))
    assert [each["name"] for each in calls] == ["create_ticket", "send_mail"]
    assert said("proposer", transcript(talk(turn("proposer", "v1"), question=BOTH)))[1] == []


@pytest.mark.parametrize("name", ["", "gpt", "openai:gpt-5", "fake "])
def test_an_unknown_model_is_refused_and_so_is_a_real_one_without_the_flag(name: str) -> None:
    for refused in (Models().check, Models()):
        with pytest.raises(UnknownModel, match=r"there is: fake, fake-slow, fake-broken$"):
            refused(name)
    for known in DEMO:
        Models().check(known)


def test_with_the_flag_a_real_one_needs_its_provider_and_a_plain_name() -> None:
    allowed = Models(real_calls=1)
    allowed.check("openai:gpt-5")
    allowed.check("ollama:library/phi4:14b")
    for name in ("gpt-5", "openai:", "openai:gpt 5", "openai:x\n", ":x"):
        with pytest.raises(UnknownModel, match="or PROVIDER:MODEL"):
            allowed.check(name)


def test_a_real_one_is_loaded_once_by_its_name_and_tries_nothing_again_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loads: list[Any] = []

    def load(name: str, **how: Any) -> DemoModel:
        loads.append((name, how))
        return DemoModel()

    monkeypatch.setattr(langchain.chat_models, "init_chat_model", load)
    made = Models(real_calls=1)
    assert made("openai:gpt-5") is made("openai:gpt-5")
    assert loads == [("openai:gpt-5", {"max_retries": 0})]


def test_calls_of_real_models_are_counted_over_all_of_them_and_demo_calls_are_free() -> None:
    made = Models(real_calls=2)
    for name in (*DEMO, "a:x", *DEMO, "b:y", *DEMO):
        made.pay(name)
    with pytest.raises(BudgetExhausted):
        made.pay("a:x")
    made.pay("fake")


def test_a_real_model_without_its_key_says_what_is_missing_and_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")
    made = Models(real_calls=1)
    with pytest.raises(Exception, match=r".") as caught:
        made("nobody:gpt-5")
    assert "sk-secret" not in str(caught.value)
