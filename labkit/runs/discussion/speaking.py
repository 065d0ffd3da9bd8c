"""One question to a model, in a role: tried again like any request, and whole or not at all.

message = await Speaker(model, policy=policy, random=random, pay=pay)(CRITIC, talk)
message.text, message.tool_calls
"""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import Observe, stream_with_retry

from .talk import COORDINATOR, CRITIC, PROPOSER, Talk, transcript

POLICY: Final = RetryPolicy(retry_on=TRANSIENT)
SUMMARIZER: Final = "summarizer"
KEEPER: Final = "keeper"
WHOLE: Final = ("stop", "tool_calls", "end_turn", "tool_use")

# role -> what it is told. A text of the discussion is data, and gives no orders.
_ROLES: Final[Mapping[str, str]] = {
    COORDINATOR: "Decide who is next, as one JSON object and nothing else: "
    '{"action": "dispatch", "target": "proposer" or "critic", "reason": "..."}, or '
    '{"action": "ask_human", "instruction": "the question"} where the user alone knows.',
    PROPOSER: "Propose a plan, or a better one after a critique. Keep to what is remembered.",
    CRITIC: "Say what is wrong with the newest plan. The last line is VERDICT: APPROVE or "
    "VERDICT: REVISE.",
    SUMMARIZER: "Write the conclusion, in at most five sentences.",
    KEEPER: "Give 0 to 3 stable facts about the user that help in other discussions, each of at "
    'most 200 characters, as one JSON object: {"facts": ["..."]}. Nothing that holds once only.',
}


class Speaker:
    """Asks `model`. `tools`: their schemas, for the proposer; `pay()` is called before each try."""

    def __init__(
        self,
        model: BaseChatModel,
        *,
        random: Random,
        observe: Observe,
        pay: Callable[[], None] = lambda: None,
        tools: Sequence[dict[str, Any]] = (),
        policy: RetryPolicy = POLICY,
    ) -> None:
        self._model = model
        self._random = random
        self._observe = observe
        self._pay = pay
        self._tools = tools
        self._policy = policy

    async def __call__(self, role: str, talk: Talk) -> AIMessage:
        """The whole answer. Raises `ProviderError`; a cancel ends the request."""
        messages = [
            SystemMessage(f"You are the {role}. {_ROLES[role]}"),
            HumanMessage(transcript(talk)),
        ]
        with_tools = role == PROPOSER and self._tools
        model: Any = self._model.bind_tools(self._tools) if with_tools else self._model
        answers: list[AIMessage] = []

        async def attempt(number: int) -> AsyncGenerator[Delta, None]:
            self._pay()
            try:
                answers.append(await model.ainvoke(messages))
            except Exception as error:
                raise as_provider_error(error) from error
            if finish := finish_of(answers[-1]):  # without one it is cut off, and tried again
                yield Delta("finish", reason=finish)

        stream = stream_with_retry(
            attempt, policy=self._policy, random=self._random, observe=self._observe
        )
        async for _ in stream:
            pass
        if finish_of(answers[-1]) not in WHOLE:
            raise ProviderError(f"the answer ended by {finish_of(answers[-1])!r:.40}", kind="limit")
        return answers[-1]


def finish_of(message: AIMessage) -> str:
    """Why the answer ended, or "" where nobody says."""
    told = message.response_metadata
    return str(told.get("finish_reason") or told.get("stop_reason") or "").lower()


def tokens_of(message: AIMessage) -> int:
    """What it cost."""
    return message.usage_metadata["total_tokens"] if message.usage_metadata else 0


def object_in(text: str) -> dict[str, Any]:
    """The JSON object in a model's words, or an empty one."""
    try:
        found = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def as_provider_error(error: Exception) -> Exception:
    """An SDK's error by its status; what is no answer of a provider stays what it is."""
    if isinstance(error, ProviderError):
        return error
    status, code = getattr(error, "status_code", None), getattr(error, "code", None)
    if isinstance(status, int):
        response = getattr(error, "response", None)
        headers = dict(getattr(response, "headers", {}))
        code = code if isinstance(code, str) else None
        return ProviderError(str(error), status=status, code=code, headers=headers)
    name = type(error).__name__
    if "Timeout" in name:
        return ProviderError(str(error), kind="timeout")
    return ProviderError(str(error), kind="connect") if "Connect" in name else error
