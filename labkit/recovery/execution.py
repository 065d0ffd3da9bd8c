"""Executes an operation whose effect must happen once: look up, return what is final, only then do.

Rules: the key is claimed before anything is sent, and the claim is renewed while the work lasts.
After an error the question is whether it had its effect. If it may have, the service is asked; it
is done again only where it surely did not happen, or where the service itself keeps repeats apart;
else it waits for a person. What is not known is never told as a failure.

    executor = Executor(keys, owner="worker-1", policy=policy, random=random)
    outcome = await executor.execute(operation, service, budget, tenant="acme")
    outcome.status, outcome.told
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from random import Random
from typing import Final
from urllib.parse import quote

from . import outcomes
from .attempts import Tries
from .budget import Budget
from .cancel import to_the_end
from .claims import Claim
from .errors import PolicyError
from .idempotency import (
    ASK_PERSON,
    CONFLICT,
    EXECUTE,
    FAILED,
    JOIN,
    RECONCILE,
    REUSE,
    SUCCEEDED,
    UNKNOWN,
    BadOperation,
    KeyRecord,
    KeyStore,
    Operation,
    Seen,
    checked,
    claimed,
    enter,
)
from .lease import Lease, bounded, is_held_by
from .outcomes import Outcome
from .policy import ExecutionPolicy
from .renewal import UNRENEWED, while_held
from .retry import Observe
from .service import DONE, Service

DRIFT: Final = 5.0  # seconds by which a store's clock and ours may part
MOMENT: Final = 0.001  # seconds that are not worth a wait
POLL: Final = 0.5  # seconds between two looks at a call that was joined
NOTHING_KNOWN: Final = Outcome(status=outcomes.UNKNOWN)


class ClockJumped(BadOperation):
    """What has expired by the store's clock is not known, and nothing ran: look at that clock.

    Then say `trust_clock()`, and execute it again.
    """


class Executor:
    """Executes operations; `owner` is a name that no other executor has, in any process.

    `observe(kind, **details)` is told of each step, with the key's digest; `now` is the wall clock
    that dates in headers are compared with.
    """

    def __init__(
        self,
        keys: KeyStore,
        *,
        owner: str,
        policy: ExecutionPolicy,
        random: Random,
        observe: Observe = lambda kind, **details: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(policy, ExecutionPolicy):
            raise PolicyError(f"a policy is an ExecutionPolicy(...), not {policy!r:.60}")
        if not isinstance(owner, str) or not owner:
            raise PolicyError(f"an owner is a name that no other executor has, not {owner!r:.60}")
        self.keys = keys
        self.owner = owner
        self.policy = policy
        self.random = random
        self.observe = observe
        self.now = now
        self._calls = count(1)
        self._offset: tuple[float, float] | None = None  # of the store's clock to ours, from and to

    async def execute(
        self, operation: Operation, service: Service, budget: Budget, *, tenant: str
    ) -> Outcome:
        """One operation of `tenant` to its outcome, which is told and never raised.

        A cancel leaves as it came, and the key says what is known by then. An error of the store
        leaves too: whether the operation was done is asked by whoever comes next.
        """
        try:
            fingerprint = checked(operation)
            if operation.tenant != tenant:
                raise BadOperation("another_tenants_key: name a thing of your own")
            tries = self._tries(operation, service, budget)
            outcome = await self._entered(fingerprint, tries)
            outcome = replace(outcome, attempts=tuple(tries.attempts))
        except BadOperation as refused:
            outcome = Outcome(status=outcomes.REJECTED, how=str(refused), error=refused)
        told = replace(outcome, digest=_digest(operation))
        self.observe("outcome", digest=told.digest, status=told.status, attempts=len(told.attempts))
        return told

    def _tries(self, operation: Operation, service: Service, budget: Budget) -> Tries:
        return Tries(
            operation=operation,
            service=service,
            budget=budget.within(quote(operation.name, safe=""), tool=operation.name),
            policy=self.policy,
            random=self.random,
            observe=self.observe,
            now=self.now,
        )

    async def _entered(self, fingerprint: str, tries: Tries) -> Outcome:
        """Look up, return a final state, only then execute."""
        operation, clock = tries.operation, asyncio.get_running_loop().time
        until = clock() + min(self.policy.join, tries.budget.remaining)
        joined: Lease | None = None
        while True:
            began = clock()
            seen, now = await self._read(operation)
            if joined and seen and seen.state == SUCCEEDED and is_held_by(seen.lease, joined):
                return _answered(REUSE, seen, joined=True)  # however short results are kept
            answer = enter(seen, fingerprint, now=now)  # breakpoint: look up first
            self.observe("entered", digest=operation.digest, answer=answer)
            if seen is None or answer in (EXECUTE, RECONCILE):
                tries.doubt = answer == RECONCILE
                if claim := await self._claimed(seen, tries, now=now, began=began):
                    return await self._held(claim, tries)
            elif answer != JOIN or until - clock() < MOMENT:
                return _answered(answer, seen, joined=joined is not None)
            else:
                joined = seen.lease
                await self._bound(seen, now)
                await asyncio.sleep(min(POLL, until - clock()))

    async def _read(self, operation: Operation) -> Seen:
        """The record and the store's time. Raises `ClockJumped` if that clock has.

        What has expired by such a clock is not known. It read its time between ours before and
        after, so a slow answer is no jump.
        """
        clock = asyncio.get_running_loop().time
        before = clock()
        seen = await self.keys.read(operation.tenant, operation.sent)
        least, most = seen.now - clock(), seen.now - before
        known_least, known_most = self._offset = self._offset or (least, most)
        if least > known_most + DRIFT or most < known_least - DRIFT:  # breakpoint: clock check
            jump = f"{least - known_least:+.0f} s"
            cure = "look at it, then trust_clock()"
            raise ClockJumped(f"clock_jumped: the store's by {jump}; {cure}")
        return seen

    async def _claimed(
        self, seen: KeyRecord | None, tries: Tries, *, now: float, began: float
    ) -> Claim | None:
        """Claim the key that was read from `began` on; None where another was quicker.

        A cancel or an error meanwhile gives it back, since nothing was sent.
        """
        owner = f"{self.owner} {next(self._calls)}"  # two calls here are two holders
        length = self.policy.lease
        mine = claimed(seen, tries.operation, owner, now=now, length=length)
        if mine is None:
            return None
        claim = Claim(self.keys, mine, self.observe, since=began)
        tries.since = began - (now - mine.since)
        tries.fence, tries.lost = mine.lease.fence, claim.renewal.lost_by_now
        try:
            written = await to_the_end(self.keys.swap(seen, mine))  # breakpoint: claimed
        except BaseException:
            with suppress(Exception):  # of a store that is gone: the lease ends by itself
                await self._give_back(claim, tries, NOTHING_KNOWN, patience=0.0)
            raise
        return claim if written else None

    async def _bound(self, seen: KeyRecord, now: float) -> None:
        """See to it that a clock that was set back does not make a dead executor's claim last."""
        lease = bounded(seen.lease, now=now)
        if lease != seen.lease:
            await self.keys.swap(seen, replace(seen, lease=lease, version=seen.version + 1))

    async def _held(self, claim: Claim, tries: Tries) -> Outcome:
        """Work while the claim is renewed beside it; a claim that is lost ends the work at once."""
        name = f"execute {claim.mine.digest}"
        work = await while_held(self._worked(claim, tries), claim.renewal, name=name)
        if work.cancelled():
            return Outcome(status=outcomes.UNKNOWN, how=claim.lost or UNRENEWED)
        return work.result()

    async def _worked(self, claim: Claim, tries: Tries) -> Outcome:
        """Every try, and what is written under the key after them, however they end."""
        try:
            outcome = await tries.settled()
        except BaseException:
            outcome = NOTHING_KNOWN
            if tries.doubt and tries.service.cancels and not claim.lost:
                known = await tries.called_off()
                if known.state == DONE:
                    outcome = Outcome(status=outcomes.RECONCILED, result=known.result)
            await self._give_back(claim, tries, outcome)
            raise
        try:
            written = await self._give_back(claim, tries, outcome)
        except Exception as error:
            error.add_note(f"of the operation itself is known: {outcome.status}")
            raise
        if not written and outcome.status not in outcomes.DONE:  # another may have done it
            return Outcome(status=outcomes.UNKNOWN, how=claim.lost)
        return outcome

    async def _give_back(
        self, claim: Claim, tries: Tries, outcome: Outcome, *, patience: float | None = None
    ) -> bool:
        """Write what is known, also where a cancel comes meanwhile; whether it is written."""
        done = outcome.status in outcomes.DONE
        state = UNKNOWN if tries.doubt else SUCCEEDED if done else FAILED
        work = claim.give_back(
            state,
            outcome.result,
            ttl=self.policy.ttl,
            handed_over=outcome.status == outcomes.MANUAL,
            patience=patience,
        )
        return await to_the_end(work)

    def trust_clock(self) -> None:
        """Go on after the store's clock was set: say so once somebody has looked at it."""
        self._offset = None


def _digest(operation: Operation) -> str:
    """Its digest, or "" for something of which none can be made."""
    try:
        return operation.digest
    except (AttributeError, TypeError, ValueError):
        return ""


def _answered(answer: str, seen: KeyRecord, joined: bool) -> Outcome:
    """What is told where nothing is executed."""
    if answer == REUSE and joined:
        return Outcome(status=outcomes.DEDUPLICATED, result=seen.result)
    if answer == REUSE:
        return Outcome(status=outcomes.REUSED, result=seen.result)
    if answer == CONFLICT:
        told = "key_conflict: this key was used with another payload"
        return Outcome(status=outcomes.REJECTED, how=told)
    if answer == ASK_PERSON:
        return Outcome(status=outcomes.MANUAL, how="it waits for a person")
    return Outcome(status=outcomes.DEDUPLICATED, how="in_progress: its result is not there yet")
