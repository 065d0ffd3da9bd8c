"""The models of a discussion: a demo model that needs no key, and real ones where they are allowed.

Rules: the demo model is a function of what it reads, so a step that is done again says the same; a
real model needs an explicit number of calls that this process may make.

    models = Models(pause=0.5)
    models.check("fake-slow")              # raises UnknownModel for what a user may not name
    await models("fake").ainvoke(messages)
"""

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from labkit.recovery.budget import BudgetExhausted
from labkit.recovery.errors import ProviderError
from labkit.recovery.run_states import RunError

from .talk import APPROVES, COORDINATOR, CRITIC, PERSON, PROPOSER

SLOW: Final = 2.0  # seconds that a call of fake-slow takes longer
ASKS: Final = "[needs clarification]"
ACTS: Final = "[needs approval]"
WHAT_IS_IT: Final = "What is the budget?"
DEMO: Final = ("fake", "fake-slow", "fake-broken")


class UnknownModel(RunError, LookupError):
    """There is no such model here: take one of those that the message names."""


class DemoModel(BaseChatModel):
    """Answers by what it reads alone. `pause`: seconds of a call; `breaks`: the role that fails."""

    pause: float = 0.0
    breaks: str = ""

    @property
    def _llm_type(self) -> str:
        return "demo"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> "DemoModel":
        """As it is: it knows its tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *more: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("it is asked with await")

    async def _agenerate(
        self, messages: list[BaseMessage], *more: Any, **options: Any
    ) -> ChatResult:
        await asyncio.sleep(self.pause)
        role = re.findall(r"\w+", str(messages[0].content))[3]  # "You are the critic. ..."
        if role == self.breaks:
            raise ProviderError(
                "the demo model has no quota left", status=429, code="quota_exceeded"
            )
        read = str(messages[-1].content)
        text, calls = said(role, read)
        used = (len(read) // 4, len(text) // 4)
        usage = {"input_tokens": used[0], "output_tokens": used[1], "total_tokens": sum(used)}
        message = AIMessage(
            text,
            tool_calls=calls,
            usage_metadata=usage,
            response_metadata={"finish_reason": "tool_calls" if calls else "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def said(role: str, read: str) -> tuple[str, list[dict[str, Any]]]:
    """What the demo model says in a role after it has read so much, and the tools that it calls."""
    question = read.partition("\n[")[0]
    turns = re.findall(r"^\[(\w+)\]", read, re.M)
    if role == COORDINATOR:
        if ASKS in question and PERSON not in turns:
            return json.dumps({"action": "ask_human", "instruction": WHAT_IS_IT}), []
        both = [each for each in turns if each in (PROPOSER, CRITIC)]
        target = CRITIC if both[-1:] == [PROPOSER] else PROPOSER
        return json.dumps({"action": "dispatch", "target": target, "reason": "its turn"}), []
    if role == PROPOSER:
        version = turns.count(PROPOSER) + 1
        calls = _calls(question.count(ACTS)) if version == 1 else []
        return f"Plan v{version}: one service, one database, one page.", calls
    if role == CRITIC:
        first = turns.count(PROPOSER) < 2
        return "What does it cost?\nVERDICT: REVISE" if first else f"Sound.\n{APPROVES}", []
    if role == "summarizer":
        known = " The remembered budget is kept to." if "Remembered:" in question else ""
        return f"Take plan v{turns.count(PROPOSER)}.{known}", []
    answers = re.findall(rf"^\[{PERSON}\] .* -> (.*)$", read, re.M)
    return json.dumps({"facts": [f"The user's budget: {answer}" for answer in answers]}), []


def _calls(number: int) -> list[dict[str, Any]]:
    named = [
        ("create_ticket", {"title": "Try plan v1"}),
        ("send_mail", {"to": "team", "text": "v1"}),
    ]
    return [
        {"name": named[each % 2][0], "args": named[each % 2][1], "id": f"model-{each + 1}"}
        for each in range(number)
    ]


class Models:
    """Models by name. `real_calls`: of real models, in this process; `pause`: of a demo call."""

    names: Final = DEMO
    default: Final = DEMO[0]

    def __init__(self, *, real_calls: int = 0, pause: float = 0.0) -> None:
        slow = pause + SLOW
        self._models: dict[str, BaseChatModel] = {
            "fake": DemoModel(pause=pause),
            "fake-slow": DemoModel(pause=slow),
            "fake-broken": DemoModel(pause=pause, breaks=CRITIC),
        }
        self._real = real_calls > 0
        self._left = real_calls

    def check(self, name: str) -> None:
        """Whether a user may name it. Raises `UnknownModel`."""
        real = self._real and re.fullmatch(r"[\w.-]+:[\w./:-]+", name)
        if name not in DEMO and not real:
            more = ", or PROVIDER:MODEL" if self._real else ""
            raise UnknownModel(f"no model {name!r:.60}; there is: {', '.join(DEMO)}{more}")

    def add(self, name: str, model: BaseChatModel) -> None:
        """Take this model for that name."""
        self._models[name] = model

    def __call__(self, name: str) -> BaseChatModel:
        """The model; a real one by LangChain's loader, which takes its key from the environment."""
        self.check(name)
        if name not in self._models:
            from langchain.chat_models import init_chat_model

            # What it tried again by itself, nobody would count.
            self._models[name] = init_chat_model(name, max_retries=0)
        return self._models[name]

    def pay(self, name: str) -> None:
        """One call of that model. Raises `BudgetExhausted` once the real ones are used up."""
        if name in DEMO:
            return
        if self._left <= 0:
            raise BudgetExhausted("requests")
        self._left -= 1
