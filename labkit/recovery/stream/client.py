"""Receive, record, classify, choose, recover: an answer that survives its stream.

Each event is kept before the page hears of it. What the page has shown is never taken back: more of
the same answer goes on where it stopped, another answer opens a segment of its own. The program
helps itself within its limits; then the text stays, and a person may go on by hand.

    run = await recovering_answer(run, services)     # completed, stopped, or failed with its text
"""

import asyncio
from dataclasses import replace
from typing import Final

from ..budget import BudgetExhausted
from ..errors import ProviderError
from ..retry import backoff
from ..retry_after import parse_retry_after
from ..tools import Admitted, admit
from .continuation import Joint, continuation_context, continuation_request, first_request
from .ending import (
    ASK_AGAIN,
    CONTINUE,
    INSPECT,
    KEEP,
    RESUME,
    RUN_TOOLS,
    SHOW,
    can_recover,
    choose_recovery,
    classify_end,
)
from .receiving import Events, Live, Services, asked, received, resumed, time_left
from .record import (
    COMPLETED,
    FAILED,
    FINAL,
    RETRYING,
    RUNNING,
    STOPPED,
    Executed,
    StreamError,
    StreamRun,
    interrupt,
    new_attempt,
    stop,
)

ROUNDS: Final = 8  # requests for tools within one answer


async def recovering_answer(run: StreamRun, services: Services) -> StreamRun:
    """Bring the answer of `run` to an end, and return its record.

    A new record is asked. One that is there already is gone on with by hand: one recovery at once,
    and fresh limits and budget after it. A cancel leaves as it came, after the record was kept:
    stopped if its user wanted that, else interrupted. No provider's error leaves: the record and
    the page say what became of it. Raises `StaleRecord` where another client has the record.
    """
    live = Live(run, services)
    try:
        await _to_its_end(live)
    except StreamError:
        raise
    except BudgetExhausted as short:
        live.change(interrupt(live.run, short.kind))
        _failed(live, short.what)
    except asyncio.CancelledError:
        ended = stop(live.run) if live.services.stopped() else interrupt(live.run, "shutdown")
        if live.change(ended).status == STOPPED:
            live.services.page("status", state=STOPPED)
        raise
    except Exception:
        live.change(interrupt(live.run, "failed"))
        _tell_failure(live)
        raise
    return live.run


async def _to_its_end(live: Live) -> None:
    by_hand = live.run.version > 1 or live.run.status != RUNNING
    error = None if by_hand else await _begin(live)
    if by_hand:
        _fresh_budget(live)
    for _ in range(ROUNDS):
        while (action := _choice(live)) != RUN_TOOLS:
            if action == SHOW:
                return _completed(live)
            if action == KEEP and by_hand and live.run.status not in FINAL:
                action = ASK_AGAIN
            if action in (KEEP, INSPECT):
                return _failed(live, action)
            if not by_hand and not _may_recover(live):  # breakpoint: recovery limits
                return _failed(live, "limit")
            wait = 0.0 if by_hand else _agreed_wait(live, error)
            live.services.page("status", state="recovering")
            if not by_hand:
                await _wait(live, wait)
            by_hand = False
            error = await received(_recovery(action, live), live)
        await _run_tools(live)
        error = await received(_asked_again(live), live)
    return _failed(live, f"{ROUNDS} rounds of tools")


async def _begin(live: Live) -> ProviderError | None:
    live.services.page("status", state="generating")
    live.pay()
    request, services = first_request(live.run), live.services
    if services.begin is None or services.resume is None:
        return await received(asked(request, live), live)
    await services.begin(request)
    return await received(resumed(services.resume(live.run), live), live)


def _fresh_budget(live: Live) -> None:
    """What was there is an interrupted answer, whoever left it."""
    run = interrupt(live.run, "by_hand")
    live.change(replace(run, first_cause="", recoveries=0, continued=0, recovering_since=None))


def _choice(live: Live) -> str:
    run = live.run
    # Numbers of a later attempt are ours: to the service they would be other events.
    can_resume = live.services.resume is not None and live.can_resume and run.attempt == 1
    action = choose_recovery(run, can_resume=can_resume, can_continue=live.services.can_continue)
    live.services.observe("choice", end=classify_end(run), action=action, attempt=run.attempt)
    return action


# --- recovering


def _may_recover(live: Live) -> bool:
    run, since = live.run, live.run.recovering_since
    elapsed = 0.0 if since is None else live.services.now() - since
    return can_recover(run.recoveries, elapsed, run.continued, limits=live.services.limits)


def _agreed_wait(live: Live, refusal: ProviderError | None) -> float:
    """Seconds before one more recovery: as the provider asked, or backoff; the budget's answer.

    Raises `BudgetExhausted` where the budget does not allow the recovery after that wait.
    """
    services = live.services
    wait = parse_retry_after(refusal.headers, now=services.now()) if refusal else None
    if wait is None:
        wait = backoff(live.run.recoveries + 1, policy=services.policy, random=services.random)
    if live.budget is not None and (short := live.budget.retry(wait)):
        raise BudgetExhausted(short)
    return wait


async def _wait(live: Live, wait: float) -> None:
    """Count one recovery, and wait; the time of all recoveries begins with the first."""
    run, now = live.run, live.services.now()
    since = now if run.recovering_since is None else run.recovering_since
    run = replace(run, status=RETRYING, recoveries=run.recoveries + 1, recovering_since=since)
    live.change(run)
    live.services.observe("wait", attempt=run.attempt + 1, seconds=wait, reason=run.cause)
    await asyncio.sleep(min(wait, max(0.0, time_left(live))))


def _recovery(action: str, live: Live) -> Events:
    if action == RESUME and live.services.resume is not None:
        return resumed(live.services.resume(live.run), live)
    if action == CONTINUE:
        live.pay()
        run = live.change(new_attempt(live.run))
        request = continuation_request(continuation_context(run))
        return asked(request, live, joint=Joint(run.text))
    return _asked_again(live)


def _asked_again(live: Live) -> Events:
    """The question as it was, after which another answer begins."""
    live.pay()
    before = live.run
    run = live.change(new_attempt(before, afresh=True))
    if before.text:
        live.services.page("segment_end", reason=before.cause or "tools")
    return asked(first_request(run), live)


# --- tools


async def _run_tools(live: Live) -> None:
    """Run what may run, once; keep each result before the next call begins."""
    for call in live.run.calls:
        admitted = admit(live.run, call, live.services.tools)
        if not isinstance(admitted, Admitted):
            live.change(replace(live.run, refused=(*live.run.refused, admitted)))
            live.services.observe("refused", tool=call.name, reason=admitted.reason)
        elif admitted.done is None:  # breakpoint: looked up first
            live.services.page("tool_pending", tool=call.name)
            result = await admitted.tool.run(admitted.arguments, admitted.key)
            done = Executed(admitted.key, call.call_id, call.name, result)
            live.change(replace(live.run, executed=(*live.run.executed, done)))
    live.change(replace(live.run, calls=()))  # each has its answer now


# --- ends


def _completed(live: Live) -> None:
    live.change(replace(live.run, status=COMPLETED, cause="", first_cause=""))
    live.services.page("status", state="done")


def _failed(live: Live, why: str) -> None:
    """The text stays, and a person may go on."""
    if live.run.status != STOPPED:
        live.change(replace(live.run, status=FAILED))
        live.services.observe("gave_up", reason=why, attempt=live.run.attempt)
        _tell_failure(live)


def _tell_failure(live: Live) -> None:
    """The page is told the first error: what came of trying to mend it is the lesser news."""
    code = live.run.first_cause or classify_end(live.run)
    live.services.page("error", code=code, next="continue")
    live.services.page("status", state="failed")
