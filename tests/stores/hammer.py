"""One of the programs that hammer the same keys; `hammering.py` starts, stops and kills them.

python -m tests.stores.hammer URL LEDGER SERVICE OWNER KEYS SEED

It executes every operation, twice, in an order of its own, and tells each outcome. Between claim
and effect, between effect and answer, and around the write that keeps the answer, it says where it
is and goes on when a line comes in; at its end too, so that whoever is to be killed is there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.cancel import to_the_end
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import SUCCEEDED, KeyRecord, KeyStore, Operation, Seen
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.stores import open_key_store

from .hammer_ledger import Ledger, LedgerService

ROUNDS = 2
LEASE = 1.0
WINDOWS = ("claimed", "done", "answered", "kept")
END = "end"
TENANT = "acme"
POLICY = ExecutionPolicy(
    retry=RetryPolicy(retry_on=TRANSIENT, first_wait=0.05),
    look_ups=1,
    lease=LEASE,
    join=60.0,
)


def operations(count: int) -> list[Operation]:
    """The same for every program."""
    return [
        Operation(tenant=TENANT, name="charge", resource=f"order-{n}", payload={"amount": n})
        for n in range(count)
    ]


def budget() -> Budget:
    """A new one for each operation."""
    limits = BudgetLimits(seconds=100.0)
    return Budget(limits, clock=asyncio.get_running_loop().time)


def tell(**told: Any) -> None:
    """One line to whoever started this."""
    print(json.dumps(told), flush=True)


async def meet(window: str, key: str) -> None:
    """Say where it is, and wait for a line, which is this window's whatever cancels come."""
    tell(at=window, key=key)
    await to_the_end(asyncio.to_thread(sys.stdin.readline))


class MeetingStore:
    """The store, with the two windows around the write that keeps a result."""

    def __init__(self, keys: KeyStore) -> None:
        self._keys = keys

    async def read(self, tenant: str, key: str) -> Seen:
        """As it is."""
        return await self._keys.read(tenant, key)

    async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
        """As it is, between two windows where a result is kept."""
        if new.state != SUCCEEDED:
            return await self._keys.swap(old, new)
        await meet("answered", new.key)
        kept = await self._keys.swap(old, new)
        await meet("kept", new.key)
        return kept

    async def waiting(self, tenant: str) -> list[KeyRecord]:
        """As it is."""
        return await self._keys.waiting(tenant)


async def hammer(url: str, ledger: str, kind: str, owner: str, count: str, seed: str) -> None:
    """Execute them all."""
    random = Random(seed)
    keys = open_key_store(url)
    service = LedgerService(kind, Ledger(Path(ledger)), owner, meet)
    executor = Executor(MeetingStore(keys), owner=owner, policy=POLICY, random=random)
    for _ in range(ROUNDS):
        mine = operations(int(count))
        random.shuffle(mine)
        for operation in mine:
            outcome = await executor.execute(operation, service, budget(), tenant=TENANT)
            tell(key=operation.sent, status=outcome.status, result=outcome.result, how=outcome.how)
    await meet(END, "")
    keys.close()


if __name__ == "__main__":
    asyncio.run(hammer(*sys.argv[1:]))
