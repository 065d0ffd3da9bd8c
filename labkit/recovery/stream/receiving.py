"""Takes one stream into the record: each event is kept, then shown; how it broke is noted.

A stream comes from a request, whose deltas are numbered here, or from a service that has kept the
events. Both are watched: nothing for `stall` seconds, or beyond the time that is left, is an error.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ..budget import Budget
from ..cancel import by_user
from ..deltas import Delta
from ..errors import ProviderError
from ..event_log import CursorError
from ..policy import RetryPolicy
from ..retry import Observe, next_within, whole_answer
from ..tools import ToolRegistry
from .continuation import Joint, Request
from .ending import DEFAULT_LIMITS, RecoveryLimits
from .numbering import Numbering
from .record import SequenceGap, StreamEvent, StreamRun, apply_event, interrupt

Events = AsyncGenerator[StreamEvent, None]
Ask = Callable[[Request, int], AsyncGenerator[Delta, None]]


NO_TOOLS: Final = ToolRegistry()


def _nobody(kind: str, **details: object) -> None:
    """The observer of a caller who brought none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What a recovering client works with.

    `ask(request, attempt)` sends a request. Where a service stands in between that keeps the
    events, `begin(request)` starts the answer there, and `resume(run)` takes up the events after
    the record's last one; it ends when the service has ended the answer, and raises when only the
    connection has ended. `can_continue`: the target accepts a continuation.
    `provider`: whose words for an answer's end `ask` brings.
    `save` keeps a record and returns it. `page(kind, **data)` is what the user sees: text_delta,
    segment_end, status, tool_pending, error. `stopped()`: whether a cancel is its user's stop.
    `new_budget()`: the account of one answer, which each request and each recovery draws on; it is
    asked again where a person goes on by hand, so that this begins with a fresh one.
    """

    ask: Ask
    save: Callable[[StreamRun], StreamRun]
    page: Observe
    policy: RetryPolicy
    random: Random
    tools: ToolRegistry = NO_TOOLS
    begin: Callable[[Request], Awaitable[None]] | None = None
    resume: Callable[[StreamRun], Events] | None = None
    can_continue: bool = False
    provider: str = "openai-chat"
    limits: RecoveryLimits = DEFAULT_LIMITS
    stopped: Callable[[], bool] = by_user
    observe: Observe = _nobody
    now: Callable[[], float] = time.time
    new_budget: Callable[[], Budget] | None = None


class Live:
    """The record as it is by now: each change is kept before anybody hears of it."""

    def __init__(self, run: StreamRun, services: Services) -> None:
        self.run = run
        self.services = services
        self.budget = services.new_budget() if services.new_budget else None
        self.can_resume = True  # until the service has refused our cursor, or has nothing more

    def change(self, run: StreamRun) -> StreamRun:
        if run is not self.run:
            self.run = self.services.save(run)  # breakpoint: record saved
        return self.run

    def pay(self) -> None:
        """Pay for a request, before the record is changed for it; raises `BudgetExhausted`."""
        if self.budget is not None:
            self.budget.request()


async def received(events: Events, live: Live) -> ProviderError | None:
    """Take in one stream to its end; the error that broke it, if one did."""
    limit = live.services.limits.characters
    try:
        async with aclosing(events):
            async for event in events:
                before = live.run
                after = apply_event(before, event, now=live.services.now())
                if after is before:
                    continue  # a duplicate
                if before.recoveries:
                    after = replace(after, continued=after.continued + len(event.text_delta))
                live.change(after)
                if event.text_delta:
                    live.services.page("text_delta", text=event.text_delta)
                if live.run.recoveries and live.run.continued > limit:
                    raise ProviderError("the continuation is too long", kind="limit")
    except SequenceGap as gap:
        return _broke(ProviderError(str(gap), kind="protocol"), live)
    except CursorError as refusal:
        live.can_resume = False
        return _broke(ProviderError(str(refusal), kind="protocol"), live)
    except ProviderError as error:
        return _broke(error, live)
    return None


def _broke(error: ProviderError, live: Live) -> ProviderError:
    live.change(interrupt(live.run, error.kind))
    live.services.observe("broke", error=error.kind, status=error.status, attempt=live.run.attempt)
    return error


async def asked(request: Request, live: Live, *, joint: Joint | None = None) -> Events:
    """The events of one request, numbered here; a continuation is joined to its draft."""
    run, policy = live.run, live.services.policy
    numbering = Numbering(run, live.services.provider)
    deadline = asyncio.get_running_loop().time() + time_left(live)
    stream = live.services.ask(request, run.attempt)
    answer = whole_answer(stream, stall=policy.stall, deadline=deadline)
    deltas = _joined(answer, joint) if joint else answer
    async with aclosing(deltas):
        async for delta in deltas:
            yield numbering.number(delta)


async def resumed(events: Events, live: Live) -> Events:
    """The events that a service has kept; as impatient as with an answer that is asked for."""
    clock, before = asyncio.get_running_loop().time, live.run.next_sequence
    deadline = clock() + time_left(live)
    async with aclosing(events):
        while event := await next_within(events, clock() + live.services.policy.stall, deadline):
            yield event
    if not live.run.finish_reason:
        live.can_resume = live.run.next_sequence > before  # else there is nothing to take up
        raise ProviderError("the events ended without a finish reason", kind="cut_off")


async def _joined(deltas: AsyncGenerator[Delta, None], joint: Joint) -> AsyncGenerator[Delta, None]:
    """The deltas of a continuation, without what repeats the draft's end.

    Where it breaks, what was still held back is dropped: it may be half of a repeat, and so far it
    says nothing that the draft does not say.
    """
    async with aclosing(deltas):
        async for delta in deltas:
            if delta.kind == "finish":
                yield Delta("text", joint.end())
            yield replace(delta, text=joint.push(delta.text)) if delta.visible else delta


def time_left(live: Live) -> float:
    """Seconds for the next stream: all of them at first, later what limit and budget leave."""
    since, left = live.run.recovering_since, live.services.policy.total
    if since is not None:
        left = since + live.services.limits.seconds - live.services.now()
    return left if live.budget is None else min(left, live.budget.remaining)
