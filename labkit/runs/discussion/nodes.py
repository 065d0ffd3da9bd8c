"""The steps of a discussion; what a step hands in when it ends is all that is kept of it.

Rules: a step that was under way when its worker died is done again, so it asks its model again, and
its effects have keys; who is next is decided by plain code wherever the turns say it already, and
whatever a model says, a discussion ends: it has so many proposals, critiques and questions at most.

    nodes = Nodes(run, speaker, memories, tools, once, clock)
    await nodes.critic(talk)               # {"turns": [{"role": "critic", ...}], "tokens": 51}
"""

import hashlib
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain_core.messages import AIMessage
from langgraph.types import interrupt

from labkit.recovery.tools import Permitted, Tool, ToolRegistry, permit

from ..jobs import Once
from ..record import AgentRun
from .approval import OVER, QUESTION, VALID, approval_of, refusal
from .memory import LOADED, Memories, facts_in
from .speaking import KEEPER, SUMMARIZER, Speaker, finish_of, object_in, tokens_of
from .talk import (
    COORDINATOR,
    CRITIC,
    PERSON,
    PROPOSER,
    TOOL,
    Call,
    Talk,
    ended,
    last_speaker,
    spoken,
    storable,
    turn,
)

QUESTIONS: Final = 3  # to a person, in one discussion
CALLS: Final = 8  # of tools, in one proposal
DISPATCH: Final = "dispatch"
ASK_HUMAN: Final = "ask_human"
FINISH: Final = "finish"


class Nodes:
    """The steps for one run. `clock()`: the store's time; without `memories` nothing is kept."""

    def __init__(
        self,
        run: AgentRun,
        speaker: Speaker,
        memories: Memories | None,
        tools: ToolRegistry,
        once: Once,
        clock: Callable[[], Awaitable[float]],
    ) -> None:
        self._run = run
        self._speaker = speaker
        self._memories = memories
        self._tools = tools
        self._once = once
        self._clock = clock

    async def recall(self, talk: Talk) -> Talk:
        """Load what is remembered of this user."""
        if self._memories is None:
            return {"memories": []}
        known = await self._memories.of(self._run.owner, most=LOADED)
        return {"memories": [memory.text for memory in known]}

    async def coordinator(self, talk: Talk) -> Talk:
        """Decide who is next; a model is asked only where the turns leave that open."""
        if reason := ended(talk):
            return {"decision": {"action": FINISH, "reason": reason}, "end_reason": reason}
        message = await self._speaker(COORDINATOR, talk)
        return {"decision": self._decision(object_in(message.text), talk), **_cost(message)}

    def _decision(self, told: dict[str, Any], talk: Talk) -> dict[str, str]:
        """What a model has decided, where it may decide so."""
        reason = str(told.get("reason", ""))
        question = str(told.get("instruction", "")).strip()
        if told.get("action") == ASK_HUMAN and question and len(spoken(talk, PERSON)) < QUESTIONS:
            return {"action": ASK_HUMAN, "instruction": question, "reason": reason}
        proposals, last = len(spoken(talk, PROPOSER)), last_speaker(talk)
        again = told.get("target") == PROPOSER and proposals < talk["rounds"]
        critic = last is not None and last["role"] == PROPOSER and not again
        return {"action": DISPATCH, "target": CRITIC if critic else PROPOSER, "reason": reason}

    async def proposer(self, talk: Talk) -> Talk:
        """Propose; tools that it wants are called in the next step."""
        message = await self._speaker(PROPOSER, talk)
        until = await self._clock() + VALID if message.tool_calls else 0.0
        before = sum(len(each["tools"]) for each in spoken(talk, PROPOSER))
        calls: list[Call] = [
            {"id": f"ask-{before + n}", "tool": c["name"], "arguments": c["args"], "until": until}
            for n, c in enumerate(message.tool_calls[:CALLS], start=1)
        ]
        more = len(message.tool_calls) - len(calls)
        left = f"\n({more} more calls are left out: {CALLS} at a time.)" if more else ""
        said = turn(PROPOSER, message.text + left, [call["tool"] for call in calls])
        return {"turns": [said], "calls": calls, **_cost(message)}

    async def tool(self, call: Call) -> Talk:
        """Do one call, after a person's yes where it has an effect."""
        permitted = permit(call["tool"], call["arguments"], self._tools, self._run.owner)
        if isinstance(permitted, str):
            return _result(call, f"not run: {permitted}")
        if permitted.tool.service is not None:
            word = interrupt(approval_of(call))  # breakpoint: waits for a person
            why = refusal(call, word, now=await self._clock())
            if why == OVER and await self._begun(permitted):
                why = ""  # in time, by a worker that is gone: what came of it is found out
            if why:
                return _result(call, f"not run: {why}")
        return _result(call, await self._done(permitted))

    async def _done(self, permitted: Permitted) -> str:
        """The result of a tool; one with an effect has it once, whichever worker asks."""
        tool, arguments = permitted
        if tool.service is None:
            return await tool.run(arguments, "")
        return await self._once(self._run, tool.name, thing=thing(tool, arguments), given=arguments)

    async def _begun(self, permitted: Permitted) -> bool:
        tool, arguments = permitted
        return await self._once.begun(self._run, tool.name, thing=thing(tool, arguments))

    async def critic(self, talk: Talk) -> Talk:
        """Say what is wrong with the newest plan, and whether it will do."""
        message = await self._speaker(CRITIC, talk)
        return {"turns": [turn(CRITIC, message.text)], **_cost(message)}

    async def ask_human(self, talk: Talk) -> Talk:
        """Wait for what the user alone knows."""
        question = talk["decision"]["instruction"]
        number = len(spoken(talk, PERSON)) + 1
        word = interrupt({"id": f"question-{number}", "kind": QUESTION, "question": question})
        return {"turns": [turn(PERSON, f"{question} -> {word.get('answer', '')}")]}

    async def summarise(self, talk: Talk) -> Talk:
        """Write the conclusion."""
        message = await self._speaker(SUMMARIZER, talk)
        return {"conclusion": storable(message.text), **_cost(message)}

    async def remember(self, talk: Talk) -> Talk:
        """Keep a few facts for the next time; that this fails does not make the run fail."""
        if self._memories is None:
            return {"remembered": 0}
        try:
            message = await self._speaker(KEEPER, talk)
        except Exception:  # whatever the library of a model raises
            return {"remembered": 0}
        facts = facts_in(finish_of(message), object_in(message.text))
        if facts is None:
            return {"remembered": 0, **_cost(message)}
        await self._memories.keep(self._run, facts, at=await self._clock())
        return {"remembered": len(talk["turns"]), **_cost(message)}


def thing(tool: Tool, arguments: Any) -> str:
    """What the effect is on, short enough for a key: the same call again is no second one."""
    named = tool.resource(arguments) or json.dumps(arguments, sort_keys=True)
    return hashlib.sha256(named.encode()).hexdigest()[:16]


def _result(call: Call, told: str) -> Talk:
    return {"turns": [turn(TOOL, f"{call['tool']}: {told}", [call["tool"]])]}


def _cost(message: AIMessage) -> Talk:
    return {"tokens": tokens_of(message), "requests": 1}
