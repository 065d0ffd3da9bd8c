"""The shop of the lessons on repeats: a model's calls, a service with effects, a store of keys.

    shop = Shop(("lose_answer",), observe)
    outcome = await shop.at([0.0, "c1", "order-7", 5], policy)

A call names the order that it is for. Two calls for one order are repeats, whatever made them; a
second order is meant, whatever its amount.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.cancel import stop
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import KeyRecord, Operation, claimed, resolved
from labkit.recovery.outcomes import Outcome
from labkit.recovery.policy import ExecutionPolicy
from labkit.recovery.service import Request
from labkit.services.effects import KINDS, MEMORY, EffectService
from labkit.simulation import Observer
from labkit.stores.memory import MemoryKeyStore

TENANT: Final = "acme"
Call = Sequence[Any]  # seconds, the model's id of it, order, amount
LIMITS: Final = BudgetLimits(requests=20, retries=12, per_tool=12, seconds=120.0)


class Shop:
    """One service of a `kind`, which meets `cues`; the rest are those of `EffectService`.

    `executor` is the class in use, careful or naive. `keyed`: what keys are made from: the order,
    or, which is wrong, the amount or the id of the call.
    """

    def __init__(
        self,
        cues: Sequence[str],
        observe: Observer,
        *,
        kind: str = "payment",
        look_ups: Sequence[str] = (),
        forgets_after: float = MEMORY,
        remembers: float = MEMORY,
        service: type[EffectService] = EffectService,
        executor: type[Executor] = Executor,
        keyed: str = "order",
        limits: BudgetLimits = LIMITS,
    ) -> None:
        self.observe = observe
        self.clock = asyncio.get_running_loop().time
        self.keys = MemoryKeyStore(self.clock)
        self.service = service(
            kind,
            observe,
            cues=cues,
            look_ups=look_ups,
            forgets_after=forgets_after,
            remembers=remembers,
        )
        self._executor, self._limits, self._keyed = executor, limits, keyed

    def executor(self, policy: ExecutionPolicy, owner: str) -> Executor:
        """An executor of this shop."""
        return self._executor(
            self.keys,
            owner=owner,
            policy=policy,
            random=self.observe.random,
            observe=self.observe.of(owner),
            now=self.observe.now,
        )

    def operation(self, call: Call) -> Operation:
        """What a call means."""
        _, name, order, amount = call
        made_from = {"order": order, "amount": f"amount-{amount}", "call": name}
        return Operation(
            tenant=TENANT,
            name=KINDS[self.service.kind],
            resource=made_from[self._keyed],
            payload={"order": order, "amount": amount},
        )

    async def at(self, call: Call, policy: ExecutionPolicy) -> Outcome:
        """One call of the model at its time: what came of it is told to the model."""
        await asyncio.sleep(call[0] - self.clock())
        operation, tell = self.operation(call), self.observe.of("model")
        about = {"name": operation.name, **operation.payload}
        tell("calls", call=call[1], digest=operation.digest, **about)
        budget = Budget(self._limits, clock=self.clock)
        executor = self.executor(policy, f"worker of {call[1]}")
        outcome = await executor.execute(operation, self.service, budget, tenant=TENANT)
        tell("told", call=call[1], status=outcome.status, text=outcome.told, **about)
        return outcome

    async def worker_dies(self, call: Call, policy: ExecutionPolicy) -> None:
        """A worker claims the call's key, sends its request, and is no more."""
        operation, now = self.operation(call), self.clock()
        mine = claimed(None, operation, "worker-0", now=now, length=policy.lease)
        assert mine is not None
        await self.keys.swap(None, mine)
        request = Request(operation.sent, operation.payload, mine.lease.fence, 1, operation.tenant)
        sent = asyncio.create_task(self.service.perform(request), name="worker-0")
        try:
            await asyncio.sleep(1.0)
        finally:
            await stop(sent)
        self.observe.of("worker-0")("dies", digest=operation.digest)

    async def resolve(self, said: bool | Mapping[str, bool] | None = None) -> None:
        """A person says of what waits whether it happened: of all of it, by digest, or as it is.

        Who says nothing here looks into the service's books.
        """
        for record in await self.keys.waiting(TENANT):
            happened = self.service.booked(record.tenant, record.key)
            if said is not None:
                word = said if isinstance(said, bool) else said.get(record.digest)
                if word is None:
                    continue
                happened = word
            now = self.clock()
            told = resolved(record, happened, "found by a person", now=now, ttl=MEMORY)
            if await self.keys.swap(record, told):
                self.observe.of("person")("resolves", digest=record.digest, happened=happened)

    def left(self) -> dict[str, Any]:
        """The keys as they are stored, by digest."""
        return {record.digest: plain(record) for record in self.keys.kept.values()}


def plain(record: KeyRecord) -> dict[str, Any]:
    """A record for the trace, without its key."""
    return {
        "state": record.state,
        "result": record.result,
        "until": record.lease.until,
        "handed_over": record.handed_over,
    }
