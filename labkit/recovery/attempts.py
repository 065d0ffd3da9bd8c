"""The tries of one operation: after each error, first whether it happened, then whether to go on.

Rules: a request may have had its effect from the moment it goes out until somebody says otherwise,
by a definite error or by an answer of the service. In doubt the service is asked; it is done again
only where it surely did not happen, or where the service itself keeps repeats apart; else a person
has to look.

    tries = Tries(operation, service, budget, policy, fence=1, ...)
    outcome = await tries.settled()
    tries.attempts, tries.doubt
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeVar

from . import outcomes
from .budget import Budget, BudgetExhausted
from .cancel import wait_or_cancel
from .errors import ProviderError
from .idempotency import Operation
from .outcomes import Attempt, Outcome
from .policy import ExecutionPolicy
from .retry import GIVE_UP, Decision, Observe, agreed, decide
from .service import DONE, IN_FLIGHT, NOT_DONE, UNSURE, Known, Request, Service

Answer = TypeVar("Answer")
OUT_OF_TIME: Final = ("deadline", "seconds")
USED_UP: Final = ("attempts", "requests", "retries", "per_tool", "cost")


async def _never(ask: bool) -> str:
    return ""


@dataclass(slots=True, kw_only=True)
class Tries:
    """One operation on its way; `doubt`: whether it may have been done, since loop time `since`.

    `lost(ask)`: why the claim on its key is lost by now, or ""; asked before each request.
    """

    operation: Operation
    service: Service
    budget: Budget
    policy: ExecutionPolicy
    random: Random
    observe: Observe
    now: Callable[[], float]
    lost: Callable[[bool], Awaitable[str]] = _never
    fence: int = 0
    doubt: bool = False
    since: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)

    async def settled(self) -> Outcome:
        """Try until it is done or may not be tried again; settle each doubt before the next try."""
        error: ProviderError | None = None
        wait = 0.0
        while True:
            if self.doubt and (outcome := await self._reconciled(error)):
                return outcome
            if error is not None:
                decision = self._again(error)
                if decision.action == GIVE_UP:
                    return self._given_up(error, decision.reason)
                wait = decision.wait
                if self.doubt and not self._remembered(wait + self.policy.limit):
                    return self._by_person(error)
                self._tell("wait", seconds=wait, reason=decision.reason)
                await asyncio.sleep(wait)
            if lost := await self.lost(error is not None):  # breakpoint: claim asked before a try
                return Outcome(status=outcomes.UNKNOWN, how=lost, error=error)
            try:
                result = await self._try(wait)
                return Outcome(status=outcomes.SUCCEEDED, result=result)
            except BudgetExhausted as short:
                return self._given_up(error or short, short.what)
            except ProviderError as failed:
                error = failed

    async def _try(self, waited: float) -> str:
        """One request; afterwards `doubt` says whether it may have been done."""
        self.budget.request(self.policy.cost)
        clock = asyncio.get_running_loop().time
        started = clock()
        if not self.doubt:
            self.since = started
        before, self.doubt = self.doubt, True  # breakpoint: it may happen from here on
        attempt = Attempt(number=len(self.attempts) + 1, error="cancelled", waited=waited)
        self.attempts.append(attempt)
        self._tell("attempt", number=attempt.number)
        try:
            result = str(await self._within_limit(self.service.perform(self._request())))
            attempt = replace(attempt, error="")
            self.doubt = False
            return result
        except ProviderError as error:
            if error.definite:  # breakpoint: definite check
                self.doubt = before
            attempt = replace(attempt, error=error.kind, sent=not error.definite)
            raise
        finally:
            attempt = replace(attempt, elapsed=clock() - started)
            self.attempts[-1] = attempt
            self._tell("tried", number=attempt.number, error=attempt.error, sent=attempt.sent)

    async def _within_limit(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer within the limit of one try and the time that is left.

        Raises `ProviderError`. Any error of another kind is one of which nobody knows what it did.
        """
        limit = min(self.policy.limit, self.budget.remaining)
        if limit <= 0:
            work.close()
            raise ProviderError("there was no time left to ask", kind="deadline")
        task = asyncio.create_task(work, name=f"ask {self.operation.digest}")
        await wait_or_cancel(task, limit)
        failed = not task.done() or task.cancelled() or task.exception() is not None
        if failed and task.cancelling():  # by us, since its time was over
            raise ProviderError(f"no answer within {limit:g} s", kind="timeout")
        if task.cancelled():
            raise ProviderError("the service gave it up", kind="unknown")
        error = task.exception()
        if isinstance(error, ProviderError) and not isinstance(error, BudgetExhausted):
            raise error
        if isinstance(error, Exception):  # also a budget's no: an inner layer may have sent before
            raise ProviderError(f"it broke: {type(error).__name__}", kind="unknown") from error
        return task.result()

    def _request(self) -> Request:
        meant, number = self.operation, len(self.attempts)
        return Request(meant.sent, meant.payload, self.fence, number, meant.tenant)

    def _again(self, error: ProviderError) -> Decision:
        """Whether it may be tried again, and the retry's place in the budget of all layers."""
        policy = self.policy
        decision = decide(
            error,
            attempt=len(self.attempts),
            visible=False,
            segments=False,
            remaining=self.budget.remaining,
            now=self.now(),
            policy=policy.retry,
            random=self.random,
        )
        return agreed(decision, self.budget, policy.cost)

    def _given_up(self, error: ProviderError, what: str) -> Outcome:
        """No more tries: what that means, with the last error and a note of what ran out."""
        error.add_note(f"gave up after attempt {len(self.attempts)}: {what}")
        status = outcomes.FAILED
        if self.doubt:
            status = outcomes.UNKNOWN
        elif what in OUT_OF_TIME:
            status = outcomes.TIMED_OUT
        elif what in USED_UP:
            status = outcomes.EXHAUSTED
        how = str(error) if isinstance(error, BudgetExhausted) else f"{error}; {what}"
        how = how.replace(self.operation.sent, self.operation.digest)  # a service may quote the key
        return Outcome(status=status, how=how, error=error)

    # --- a doubt

    async def _reconciled(self, error: ProviderError | None) -> Outcome | None:
        """Ask what became of it; None where it may be done again."""
        known = await self.known()
        if known.state == DONE:
            return Outcome(status=outcomes.RECONCILED, result=known.result)
        again = known.state == NOT_DONE or self.service.atomic
        if again and self._remembered():  # breakpoint: may it be done again
            return None
        if known.state == IN_FLIGHT or self.budget.remaining <= 0:
            return Outcome(status=outcomes.UNKNOWN, how="it may still be done", error=error)
        return self._by_person(error)

    def _remembered(self, wait: float = 0.0) -> bool:
        """Whether the service still knows the key, `wait` seconds from now."""
        return asyncio.get_running_loop().time() + wait < self.since + self.service.remembers

    def _by_person(self, error: ProviderError | None) -> Outcome:
        how = "nobody can say by now whether it was done"
        return Outcome(status=outcomes.MANUAL, how=how, error=error)

    async def known(self) -> Known:
        """What the service says, asked several times while it says nothing final."""
        if self.service.cancels:
            known = await self.called_off()
        else:
            known = await self._asked(self.service.look_up)
        for _ in range(1, self.policy.look_ups):
            final = known.state in (DONE, NOT_DONE)
            if final or self.policy.look_up_wait >= self.budget.remaining:
                break
            await asyncio.sleep(self.policy.look_up_wait)
            known = await self._asked(self.service.look_up)
        return known

    async def called_off(self) -> Known:
        """What became of it when it was called off: cancelling our wait undoes nothing there."""
        return await self._asked(self.service.call_off)

    async def _asked(self, ask: Callable[[Request], Coroutine[Any, Any, Known]]) -> Known:
        try:
            known = await self._within_limit(ask(self._request()))
            if not isinstance(known, Known):
                raise ProviderError("this is no answer to the question", kind="protocol")
        except ProviderError as error:
            self._tell("looked_up", error=error.kind)
            return Known(UNSURE)
        self._tell("looked_up", state=known.state)
        if known.state == DONE or (known.state == NOT_DONE and self._remembered()):
            self.doubt = False  # breakpoint: doubt settled
        return known

    def _tell(self, kind: str, **details: Any) -> None:
        self.observe(kind, digest=self.operation.digest, **details)
