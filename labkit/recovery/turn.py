"""A turn: ask the model, run the tools it calls, ask again, until there is an answer.

What may be lost at an interruption is decided here. A step is saved when it has finished, and text
before it is shown, so that nothing that took effect or was seen is forgotten. Whatever ends the
turn passes one clause, which closes the checkpoint, and leaves as it came.

    task = asyncio.create_task(run_turn("Where is my refund?", checkpointer, services))
    await stop(task)     # draft, finished steps and marked calls are in `checkpointer.session`
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from .budget import Budget
from .calls import Calls, named
from .cancel import by_user
from .checkpoint import Checkpointer
from .deltas import Boundary, Delta
from .errors import ProviderError, RecoveryError
from .execution import Executor
from .mailbox import Mailbox
from .policy import RetryPolicy
from .retry import Observe, stream_with_retry
from .session import (
    ASSISTANT,
    USER,
    Message,
    Session,
    add_step,
    begin_turn,
    close_turn,
    finish_turn,
    show,
)
from .stream.record import Owner, ToolCall
from .tools import ToolRegistry

MOST_CALLS: Final = 8  # model calls in one turn
PATIENT: Final = 5  # model calls after which an answer is the last: the next message waits

Ask = Callable[[Sequence[Message], int], AsyncGenerator[Delta, None]]


class TooManyCalls(RecoveryError):
    """The model went on calling tools: the finished steps are saved; ask it to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnServices:
    """What a turn works with.

    `ask(history, attempt)` sends a request; `show` is given each visible text when it is saved,
    and `said`, which raises nothing, all the text of a model call when that is saved. `stopped()`:
    whether a cancel is its user's stop, else the process is going down. `budget`: the turn's
    account and deadline, for the model and for tools. `executor`: runs tools that have a service.
    """

    ask: Ask
    show: Callable[[str], object]
    policy: RetryPolicy
    random: Random
    observe: Observe
    tools: ToolRegistry
    owner: Owner
    stopped: Callable[[], bool] = by_user
    now: Callable[[], float] = time.time
    said: Callable[[str], object] = lambda text: None
    budget: Budget | None = None
    executor: Executor | None = None


async def run_turn(
    question: str,
    checkpoint: Checkpointer,
    services: TurnServices,
    mailbox: Mailbox | None = None,
) -> str:
    """Run one turn and return the answer; what arrives in `mailbox` meanwhile joins it.

    Raises what ended the turn: a `ProviderError`, `TooManyCalls`, what `show` or the store raised;
    a cancel leaves as `CancelledError`. In each case the session holds what happened by then. A
    cancel that comes once the answer is being saved leaves when that is done: the turn is whole.
    """
    letters = Mailbox() if mailbox is None else mailbox  # an empty one is false
    calls = Calls(
        checkpoint=checkpoint,
        tools=services.tools,
        owner=services.owner,
        observe=services.observe,
        executor=services.executor,
        budget=services.budget,
    )
    try:
        await checkpoint.save(begin_turn(checkpoint.session, question), "user")
        for number in range(MOST_CALLS):
            text, wanted = await _model_step(checkpoint, services)
            if not wanted and letters.finish(anyway=number >= PATIENT):  # breakpoint: whole answer
                answered = finish_turn(checkpoint.session, text)
                await _say(text, answered, "answer", checkpoint, services)
                return text
            step = Message(ASSISTANT, text, calls=wanted)
            await _say(text, add_step(checkpoint.session, step), "said", checkpoint, services)
            await calls.run(wanted)
            for _ in range(len(letters)):  # not those who come meanwhile, or it might never end
                if message := letters.take():
                    services.observe("injected", session=message.session, message=message.text)
                    joined = add_step(checkpoint.session, Message(USER, message.text))
                    await checkpoint.save(joined, "user")  # breakpoint: injected
        raise TooManyCalls(f"no answer after {MOST_CALLS} model calls")
    except BaseException as interruption:
        await _close(checkpoint, interruption, services)
        raise  # breakpoint: interruption leaves


async def _model_step(
    checkpoint: Checkpointer, services: TurnServices
) -> tuple[str, tuple[ToolCall, ...]]:
    """One answer of the model: its text, which has been shown, and the calls in it."""
    history = checkpoint.session.history
    calls: dict[int | str, ToolCall] = {}
    shown = ""
    pieces = stream_with_retry(
        lambda attempt: services.ask(history, attempt),
        policy=services.policy,
        random=services.random,
        observe=services.observe,
        now=services.now,
        budget=services.budget and services.budget.within("model"),
    )
    async with aclosing(pieces):
        async for piece in pieces:
            if isinstance(piece, Boundary):
                calls.clear()  # half a call of the attempt before
            elif piece.visible:
                shown += piece.text
                await checkpoint.save(show(checkpoint.session, piece.text))
                services.show(piece.text)
            elif piece.kind == "tool_call":
                place = _place(piece, calls)
                calls[place] = _joined(calls.get(place), piece)
            elif piece.reason == "length":
                raise ProviderError("the answer ran into its token limit", kind="cut_off")
    taken = (call.call_id for message in history for call in message.calls)
    return shown, named(calls.values(), taken)


async def _say(
    text: str, changed: Session, step: str, checkpoint: Checkpointer, services: TurnServices
) -> None:
    """Save a text of the model, and tell it, also where a cancel came while it was saved."""
    try:
        await checkpoint.save(changed, step)
    finally:
        if text and checkpoint.session.version > changed.version:  # it is saved
            services.said(text)


async def _close(
    checkpoint: Checkpointer, interruption: BaseException, services: TurnServices
) -> None:
    """Keep what happened; a store that fails now must not hide what ended the turn."""
    closed = close_turn(checkpoint.session, _why(interruption, services))
    if closed is checkpoint.session:
        return  # the answer was saved before the interruption
    try:
        await checkpoint.save(closed, "closed")
    except Exception as error:
        interruption.add_note(f"and the session was not saved: {error}")


def _place(piece: Delta, calls: Iterable[int | str]) -> int | str:
    """Which call a piece belongs to: by index, else by id, else the one before."""
    if piece.index is not None:
        return piece.index
    return piece.call_id or next(reversed(list(calls)), "")


def _joined(call: ToolCall | None, piece: Delta) -> ToolCall:
    if call is None:
        return ToolCall(piece.call_id, piece.name, piece.text)
    name, arguments = piece.name or call.name, call.arguments + piece.text
    return replace(call, call_id=piece.call_id or call.call_id, name=name, arguments=arguments)


def _why(interruption: BaseException, services: TurnServices) -> str:
    if isinstance(interruption, ProviderError):
        return interruption.kind
    if isinstance(interruption, asyncio.CancelledError):
        return "stopped" if services.stopped() else "shutdown"
    return "failed"
