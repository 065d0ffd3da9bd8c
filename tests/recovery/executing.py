"""Executes operations in virtual time against a service that does what a test says.

service = Told([LOST_ANSWER, OK], known=[Known(NOT_DONE)])
outcome = virtually(execute(service))
service.requests, service.effects, outcome.status
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.cancel import stop
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import KeyRecord, Operation, claimed
from labkit.recovery.outcomes import Outcome
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.stores.memory import MemoryKeyStore
from tests.simulation.kit import virtually

TENANT = "acme"
CHARGE = Operation(
    tenant=TENANT, name="charge", resource="order-7", payload={"order": "order-7", "amount": 5}
)
RETRY = RetryPolicy(
    retry_on=TRANSIENT, attempts=3, first_wait=1.0, jitter=0.0, stall=5.0, total=600.0
)
POLICY = ExecutionPolicy(retry=RETRY, limit=10.0, lease=10.0, ttl=100.0)
LIMITS = BudgetLimits(requests=50, retries=50, per_tool=50, seconds=600.0, cost=100.0)


@dataclass(frozen=True)
class Step:
    """One request: the effect after `effect` seconds if any, the answer or error after `seconds`.

    Without an answer nothing comes for ever; a client that leaves changes nothing.
    """

    answer: str | BaseException | None = "receipt"
    seconds: float = 0.1
    effect: float | None = 0.05


OK = Step()
REFUSED = Step(ProviderError("connection refused", kind="connect"), effect=None)
LOST_REQUEST = Step(None, effect=None)
LOST_ANSWER = Step(None)
BROKE_AFTER = Step(ValueError("after the effect"))
BAD_REQUEST = Step(ProviderError("no such order", status=400), effect=None)

FOUND, NOT_THERE, NOT_YET = Known(DONE, "receipt 1"), Known(NOT_DONE), Known(IN_FLIGHT)
DOWN = ProviderError("down", status=503)


@dataclass
class Told:
    """A service: what each request meets, the last step for ever, and what each look-up says."""

    steps: Sequence[Step]
    known: Sequence[Known | Exception] = (Known(NOT_DONE),)
    atomic: bool = False
    cancels: bool = False
    remembers: float = 86_400.0
    look_up_takes: float = 0.1  # seconds
    requests: list[Request] = field(default_factory=list)
    effects: list[float] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    working: list[asyncio.Task[None]] = field(default_factory=list)

    async def perform(self, request: Request) -> str:
        """Do as the step says."""
        step = self.steps[min(len(self.requests), len(self.steps) - 1)]
        self.requests.append(request)
        if step.effect is not None and not (self.atomic and self.effects):
            self.working.append(asyncio.create_task(self._effect(step.effect), name="far side"))
        await asyncio.sleep(step.seconds if step.answer is not None else 1e6)
        if isinstance(step.answer, BaseException):
            raise step.answer
        return str(step.answer)

    async def _effect(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self.effects.append(asyncio.get_running_loop().time())

    async def look_up(self, request: Request) -> Known:
        """Say the next word, the last one for ever."""
        return await self._say("look_up")

    async def call_off(self, request: Request) -> Known:
        """The same."""
        return await self._say("call_off")

    async def _say(self, how: str) -> Known:
        self.asked.append(how)
        await asyncio.sleep(self.look_up_takes)
        said = self.known[min(len(self.asked), len(self.known)) - 1]
        if isinstance(said, Exception):
            raise said
        return said


class Shop:
    """A store of keys and its executors, each a process of its own."""

    def __init__(self, policy: ExecutionPolicy = POLICY, keys: Any = None) -> None:
        self.policy = policy
        self.jump = 0.0  # seconds by which somebody has set the store's clock
        self.clock = asyncio.get_running_loop().time
        self.keys = keys or MemoryKeyStore(lambda: self.clock() + self.jump)
        self.told: list[tuple[str, dict[str, Any]]] = []

    def executor(self, owner: str = "worker-1") -> Executor:
        """One of them."""
        return Executor(
            self.keys,
            owner=owner,
            policy=self.policy,
            random=Random(0),
            observe=lambda kind, **details: self.told.append((kind, details)),
        )

    async def execute(
        self,
        service: Told,
        operation: Operation = CHARGE,
        *,
        by: Executor | None = None,
        at: float = 0.0,
        limits: BudgetLimits = LIMITS,
        tenant: str = TENANT,
    ) -> Outcome:
        """Execute at a time."""
        await asyncio.sleep(max(0.0, at - self.clock()))
        budget = Budget(limits, clock=self.clock)
        worker = by or self.executor()
        return await worker.execute(operation, service, budget, tenant=tenant)

    async def crash(self, service: Told, *, at: float) -> None:
        """An executor of the call is no more from then on: its claim stays as it is."""
        work = asyncio.create_task(self.execute(service, by=self.executor("worker-0")))
        await asyncio.sleep(at - self.clock())
        kept = dict(self.keys.kept)
        await stop(work)
        self.keys.kept = kept

    def claimed_by_another(self) -> KeyRecord:
        """Another claims the key, as if its holder had slept past its lease."""
        at = CHARGE.tenant, CHARGE.sent
        before: KeyRecord = self.keys.kept[at]
        lease = replace(before.lease, owner="worker-2", fence=before.lease.fence + 1, until=1e6)
        self.keys.kept[at] = replace(before, lease=lease, version=before.version + 1)
        return self.keys.kept[at]  # type: ignore[no-any-return]  # it is one

    def kept(self, operation: Operation = CHARGE) -> str:
        """The state under its key."""
        return str(self.keys.kept[operation.tenant, operation.sent].state)


def claim(owner: str = "worker-0", *, now: float = 0.0) -> KeyRecord:
    """The record of a claim that is made at a time and lasts for ten seconds."""
    mine = claimed(None, CHARGE, owner, now=now, length=10.0)
    assert mine is not None
    return mine


async def execute(service: Told, operation: Operation = CHARGE, **how: Any) -> Outcome:
    """One call on a shop of its own."""
    return await Shop(how.pop("policy", POLICY)).execute(service, operation, **how)


def statuses(service: Told, **how: Any) -> tuple[str, int, int]:
    """Status, requests and effects of one call."""
    outcome = virtually(execute(service, **how))
    return outcome.status, len(service.requests), len(service.effects)
