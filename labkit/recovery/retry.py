"""Tries a stream again where that is safe, and only there.

Rules: what a reader has seen is never silently said again; the one exception is a stall, and only
for a caller who can close the old segment and open a new one. A wait that would pass the deadline
is not slept. The last attempt's own error leaves, with a note of what ran out. Cancellation leaves.
A budget that is handed in pays for each request at its door and for each retry before its wait.

    async with aclosing(stream_with_retry(open_stream, policy=policy, random=random)) as pieces:
        async for piece in pieces:
            ...   # a Delta, or a Boundary between two attempts
"""

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

from .budget import Budget, BudgetExhausted
from .deltas import Boundary, Delta
from .errors import ProviderError
from .policy import RetryPolicy
from .retry_after import parse_retry_after

Item = TypeVar("Item")
Observe = Callable[..., object]
OpenStream = Callable[[int], AsyncGenerator[Delta, None]]

RETRY: Final = "retry"
NEW_SEGMENT: Final = "new_segment"
GIVE_UP: Final = "give_up"

AFTER_FINISH: Final = 2.0  # seconds for the usage that may trail the finish reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do after a failure: `action`, the `wait` before it in seconds, and why."""

    action: str
    reason: str
    wait: float = 0.0


def decide(
    error: ProviderError,
    *,
    attempt: int,
    visible: bool,
    segments: bool,
    remaining: float,
    now: float,
    policy: RetryPolicy,
    random: Random,
) -> Decision:
    """Whether to try again after `error`, how, and when.

    `attempt` counts from 1; `visible`: the reader has seen text of this attempt; `segments`: the
    caller can close a segment and open another; `remaining`: seconds until the deadline; `now`:
    seconds since the epoch, for dates in headers.
    """
    if error.kind == "deadline":
        return Decision(action=GIVE_UP, reason="deadline")
    if visible and not (error.kind == "stall" and segments):  # breakpoint: retry guard
        return Decision(action=GIVE_UP, reason="visible output")
    if error.kind not in policy.retry_on:
        return Decision(action=GIVE_UP, reason=f"{error.kind} is not in retry_on")
    if attempt >= policy.attempts:
        return Decision(action=GIVE_UP, reason="attempts")
    asked = parse_retry_after(error.headers, now=now)
    if asked is not None and asked > policy.retry_after_cap:
        return Decision(action=GIVE_UP, reason="retry-after above the cap")
    wait = backoff(attempt, policy=policy, random=random) if asked is None else asked
    if wait >= remaining:
        return Decision(action=GIVE_UP, reason="deadline")
    reason = "backoff" if asked is None else "retry-after"
    action = NEW_SEGMENT if visible else RETRY
    return Decision(action=action, reason=reason, wait=wait)


def backoff(attempt: int, *, policy: RetryPolicy, random: Random) -> float:
    """Seconds before the attempt after `attempt`: exponential, capped, less a random share."""
    try:
        growth = float(policy.factor) ** (attempt - 1)
    except OverflowError:
        growth = sys.float_info.max
    wait = min(policy.first_wait * growth, policy.max_wait)
    return wait * (1 - policy.jitter * random.random())


async def stream_with_retry(
    open_stream: OpenStream,
    *,
    policy: RetryPolicy,
    random: Random,
    segments: bool = False,
    observe: Observe | None = None,
    now: Callable[[], float] = time.time,
    budget: Budget | None = None,
) -> AsyncGenerator[Delta | Boundary, None]:
    """Yield an answer's deltas, trying again where `decide` allows it.

    `open_stream(attempt)` starts one attempt. `segments`: the caller understands a `Boundary` whose
    segment has risen. `observe(kind, **details)` is told of every attempt, failure, decision, wait
    and end. `budget`: the account shared with other layers; of two deadlines the nearer one counts.
    Raises the last attempt's `ProviderError`, with a note of what ran out; any other error leaves
    at once. A cancel closes the open attempt, or ends the wait, and leaves as it came.
    """
    tell = observe or _nobody
    clock = asyncio.get_running_loop().time
    deadline = clock() + (policy.total if budget is None else min(policy.total, budget.remaining))
    attempt = segment = 1
    last: ProviderError | None = None
    while True:
        visible = False
        try:
            if budget is not None:
                budget.request()
            tell("attempt", attempt=attempt, segment=segment)
            stream = open_stream(attempt)
            answer = whole_answer(stream, stall=policy.stall, deadline=deadline)
            async with aclosing(answer):
                async for delta in answer:
                    if delta.visible and not visible:
                        visible = True  # breakpoint: has streamed
                        tell("first_text", attempt=attempt, segment=segment)
                    yield delta
            tell("complete", attempt=attempt)
            return
        except BudgetExhausted as short:
            leaving = last or short  # nothing was sent, and that is not what went wrong
            leaving.add_note(f"gave up before attempt {attempt} of {policy.attempts}: {short.what}")
            raise leaving  # noqa: B904 - as it came, unwrapped
        except ProviderError as error:
            _let_a_cancel_leave(error)
            tell("failure", attempt=attempt, **_facts(error), visible=visible)
            failed = clock()
            decision = decide(
                error,
                attempt=attempt,
                visible=visible,
                segments=segments,
                remaining=deadline - failed,
                now=now(),
                policy=policy,
                random=random,
            )
            if budget is not None:
                decision = agreed(decision, budget)
            tell("decision", attempt=attempt, action=decision.action, reason=decision.reason)
            if decision.action == GIVE_UP:
                tried = f"attempt {attempt} of {policy.attempts}"
                error.add_note(f"gave up after {tried}: {decision.reason}")
                raise
            last, reason = error, error.kind
        if decision.action == NEW_SEGMENT:
            segment += 1  # breakpoint: new segment
        attempt += 1
        yield Boundary(attempt, segment, reason)
        tell("wait", attempt=attempt, seconds=decision.wait, reason=decision.reason)
        due = failed + decision.wait  # a slow reader at the boundary does not make it later
        await asyncio.sleep(due - clock())


async def whole_answer(
    stream: AsyncGenerator[Delta, None], *, stall: float, deadline: float
) -> AsyncGenerator[Delta, None]:
    """Yield the deltas of one attempt, insist on a finish reason, and close `stream` in any case.

    Raises `ProviderError` of kind "stall" after `stall` seconds of waiting without progress,
    "deadline" at loop time `deadline`, "cut_off" at an end without a finish reason. Once the reason
    is there the answer is whole: what fails after it is not an error any more.
    """
    clock = asyncio.get_running_loop().time
    finished = False
    patience = clock() + stall
    try:
        async with aclosing(stream):
            while (delta := await next_within(stream, patience, deadline)) is not None:
                handed = clock()
                yield delta
                patience += clock() - handed  # the reader's own time does not count
                if finished:
                    continue
                finished = delta.kind == "finish"
                if delta.progress:
                    patience = clock() + (AFTER_FINISH if finished else stall)
    except ProviderError:
        if not finished:
            raise
    if not finished:
        raise ProviderError("the stream ended without a finish reason", kind="cut_off")


async def next_within(stream: AsyncIterator[Item], patience: float, deadline: float) -> Item | None:
    """The next item, or None at the end; a `ProviderError` says which loop time was reached."""
    limit = min(patience, deadline)
    if limit > asyncio.get_running_loop().time():  # a timeout of 0 could swallow a cancel
        try:
            async with asyncio.timeout_at(limit) as scope:
                return await anext(stream, None)
        except TimeoutError:
            if not scope.expired():
                raise  # the provider's own, not this clock's
    kind = "stall" if limit < deadline else "deadline"
    raise ProviderError(f"nothing new came before the {kind} limit", kind=kind)


def agreed(decision: Decision, budget: Budget, cost: float = 0.0) -> Decision:
    """The decision once the budget has paid for the retry in it, or to give up for want of what."""
    if decision.action != GIVE_UP and (short := budget.retry(decision.wait, cost)):
        return Decision(action=GIVE_UP, reason=short)
    return decision


def _let_a_cancel_leave(error: ProviderError) -> None:
    """Raise the cancel again where the provider has turned it into an error of its own."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from error


def _facts(error: ProviderError) -> dict[str, Any]:
    return {"error": error.kind, "status": error.status, "definite": error.definite}


def _nobody(kind: str, **details: Any) -> None:
    """The observer of a caller who brought none."""
