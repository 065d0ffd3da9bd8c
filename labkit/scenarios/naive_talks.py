"""Parts of a discussion that get one thing wrong, for the lesson on durable runs."""

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import interrupt

from labkit.recovery.stream.record import Owner
from labkit.recovery.tools import permit
from labkit.runs.discussion.approval import APPROVE, approval_of, refusal
from labkit.runs.discussion.checkpoints import Checkpoints
from labkit.runs.discussion.memory import LISTED, Memories, Memory, below, memory_of, space_of
from labkit.runs.discussion.nodes import Nodes
from labkit.runs.discussion.talk import Call, Talk, turn

from .naive_runs import RenewsWithSteps

__all__ = [
    "ApprovesByName",
    "AsksInItsStep",
    "CountsAtOnce",
    "OneThread",
    "RenewsWithSteps",
    "StartsOver",
]


class StartsOver(Checkpoints):
    """Knows nothing of what an earlier worker has done."""

    async def take_over(self) -> None:
        """Begin anew."""


class OneThread(Checkpoints):
    """One thread for the run, whoever works on it, and the newest checkpoint in it."""

    def __init__(self, saver: Any, run_id: str, fence: int, *more: Any) -> None:
        super().__init__(saver, run_id, fence, *more)
        self._thread = run_id

    async def take_over(self) -> None:
        """It is all there."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """What was put last, by whomever."""
        found = await self._saver.aget_tuple({"configurable": {"thread_id": self._thread}})
        if found is not None:
            self._newest = found.checkpoint["id"]
        return found


class AsksInItsStep(Nodes):
    """Asks for the approval in the step that asks the model, which the answer does again."""

    async def proposer(self, talk: Talk) -> Talk:
        """Propose, ask a person, and do the calls, all in one."""
        told = await super().proposer(talk)
        for call in told["calls"]:
            told["turns"].append(turn("tool", await self._asked(call), [call["tool"]]))
        return {**told, "calls": []}

    async def _asked(self, call: Call) -> str:
        if why := self._refused(call, interrupt(approval_of(call)), await self._clock()):
            return f"{call['tool']}: not run: {why}"
        permitted = permit(call["tool"], call["arguments"], self._tools, self._run.owner)
        assert not isinstance(permitted, str)
        return await self._done(permitted)

    def _refused(self, call: Call, word: Mapping[str, Any], now: float) -> str:
        return refusal(call, word, now=now)


class ApprovesByName(AsksInItsStep):
    """The same, and a yes is a yes to whatever the tool is called with."""

    def _refused(self, call: Call, word: Mapping[str, Any], now: float) -> str:
        return "" if word.get("answer") == APPROVE else "a person said no"


class CountsAtOnce(Memories):
    """Takes a memory for true as soon as it is there, whatever becomes of its run."""

    async def of(self, owner: Owner, *, most: int = LISTED) -> list[Memory]:
        """All of them."""
        return [memory_of(item) for item in await below(self._store, space_of(owner))][:most]
