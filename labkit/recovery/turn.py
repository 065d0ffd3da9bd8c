"""A minimal turn: ask the model, run the tools it calls, ask again, until there is an answer.

What may be lost at an interruption is decided here. A step is saved when it has finished, so that
nothing that took effect is forgotten; text that the reader saw but that never became an answer is
kept as a draft, marked interrupted, and never passed off as a finished message.

    session = Session(observe)
    task = asyncio.create_task(run_turn("Where is my refund?", session, ...))
    await stop(task)     # the draft and the finished steps are still in `session`
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from random import Random
from typing import Any, Final

from .deltas import Boundary, Delta
from .errors import ProviderError, RecoveryError
from .policy import RetryPolicy
from .retry import Observe, OpenStream, stream_with_retry

MOST_CALLS: Final = 8  # model calls in one turn

Tool = Callable[[str, str], Awaitable[str]]  # name and arguments in, result out


class TooManyCalls(RecoveryError):
    """The model went on calling tools: the finished steps are saved; ask it to answer."""


class Session:
    """What is left after a turn, however it ended; `observe` is told of each thing kept.

    `checkpoint`: the finished steps, (kind, content), append-only; the kinds are user, said (text
    before a tool call), tool, answer. `turns`: finished (question, answer) pairs. `drafts`: text
    that was shown and then interrupted, with the reason.
    """

    def __init__(self, observe: Observe) -> None:
        self.checkpoint: list[tuple[str, str]] = []
        self.turns: list[tuple[str, str]] = []
        self.drafts: list[tuple[str, str]] = []
        self._observe = observe

    def save(self, kind: str, content: str) -> None:
        """Add a finished step to the checkpoint."""
        self.checkpoint.append((kind, content))  # breakpoint: checkpoint saved
        self._observe("checkpoint", step=kind)

    def keep_draft(self, text: str, reason: str) -> None:
        """Keep text that was shown but never became an answer."""
        self.drafts.append((text, reason))  # breakpoint: draft kept
        self._observe("draft", text=text, reason=reason)

    def finish(self, question: str, answer: str) -> None:
        """The turn has come to its answer."""
        self.save("answer", answer)
        self.turns.append((question, answer))

    def __repr__(self) -> str:
        kinds = [kind for kind, _ in self.checkpoint]
        return f"Session(checkpoint={kinds}, turns={len(self.turns)}, drafts={self.drafts})"


async def run_turn(
    question: str,
    session: Session,
    *,
    open_stream: OpenStream,
    tool: Tool,
    show: Callable[[str], object],
    policy: RetryPolicy,
    random: Random,
    observe: Observe,
    now: Callable[[], float] = time.time,
) -> str:
    """Run one turn and return the answer; `show` is given each visible text as it arrives.

    Raises what ended the turn: a `ProviderError`, or whatever the tool or `show` raised. A cancel
    leaves as `CancelledError`. In each case the text shown by then has become a draft, and every
    finished step is in the checkpoint.
    """
    session.save("user", question)
    for _ in range(MOST_CALLS):
        shown: list[str] = []
        calls: dict[int | None, Delta] = {}
        pieces = stream_with_retry(
            open_stream, policy=policy, random=random, observe=observe, now=now
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if isinstance(piece, Boundary):
                        calls.clear()  # half a call of the attempt before
                    elif piece.visible:
                        shown.append(piece.text)
                        show(piece.text)
                    elif piece.kind == "tool_call":
                        calls[piece.index] = _joined(calls.get(piece.index), piece)
                    elif piece.reason == "length":
                        raise ProviderError("the answer ran into its token limit", kind="cut_off")
        except BaseException as interruption:
            if shown:
                session.keep_draft("".join(shown), _why(interruption))
            raise  # breakpoint: interruption leaves
        text = "".join(shown)
        if not calls:
            session.finish(question, text)
            return text
        if text:
            session.save("said", text)
        for call in calls.values():
            session.save("tool", await tool(call.name, call.text))
    raise TooManyCalls(f"no answer after {MOST_CALLS} model calls")


async def stop(task: asyncio.Task[Any]) -> bool:
    """Cancel `task` and wait until it has cleaned up; whether it really ended as cancelled.

    A cancel of the caller leaves at once and does not wait for the task.
    """
    task.cancel()
    await asyncio.wait([task])
    return task.cancelled()


def _joined(call: Delta | None, piece: Delta) -> Delta:
    if call is None:
        return piece
    return replace(
        call,
        call_id=piece.call_id or call.call_id,
        name=piece.name or call.name,
        text=call.text + piece.text,
    )


def _why(interruption: BaseException) -> str:
    if isinstance(interruption, ProviderError):
        return interruption.kind
    return "stopped" if isinstance(interruption, asyncio.CancelledError) else "failed"
