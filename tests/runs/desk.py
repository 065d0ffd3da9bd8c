"""An order of three steps, each with an effect at a service that keeps no repeats apart.

desk = Desk(floor.clock)
floor.jobs["order"] = ordering(floor, desk)
...
desk.steps                                  # ['reserve', 'send_mail', 'ship']
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, Callable
from random import Random

from labkit.recovery import outcomes
from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import Operation
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.recovery.service import DONE, IN_FLIGHT, NOT_DONE, Known, Request
from labkit.runs.job import Ask, Done, Job, Step, Work
from labkit.stores.memory import MemoryKeyStore

from .kit import Floor

Steps = AsyncGenerator[Step | Ask | Done, None]
LIMITS = BudgetLimits(requests=50, retries=50, per_tool=50, seconds=600.0, cost=100.0)
RETRY = RetryPolicy(
    retry_on=TRANSIENT, attempts=3, first_wait=1.0, jitter=0.0, stall=5.0, total=60.0
)
EXECUTION = ExecutionPolicy(retry=RETRY, limit=10.0, lease=5.0, ttl=1e6)
ORDER = ("reserve", "send_mail", "ship")


class Desk:
    """A service elsewhere, which goes on whoever dies here; it keeps no repeats apart.

    Once it has said that a request was not done, that of an older claim is refused.
    """

    atomic = False
    cancels = False
    remembers = 86_400.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self.effects: list[tuple[float, str]] = []
        self._clock = clock
        self._working: dict[str, asyncio.Task[None]] = {}
        self._newest: dict[str, int] = {}

    async def perform(self, request: Request) -> str:
        """The effect after 0.2 s, the answer after 0.4 s."""
        if request.fence < self._newest.get(request.key, 0):
            raise ProviderError("an older claim", kind="permission")
        work = self._effect(request.payload["step"])
        nobodys = contextvars.Context()
        self._working[request.key] = asyncio.create_task(work, name="far side", context=nobodys)
        await asyncio.sleep(0.4)
        return "receipt"

    async def _effect(self, step: str) -> None:
        await asyncio.sleep(0.2)
        self.effects.append((self._clock(), step))

    async def look_up(self, request: Request) -> Known:
        """What became of it."""
        await asyncio.sleep(0.1)
        work = self._working.get(request.key)
        if work is None:
            self._newest[request.key] = request.fence
            return Known(NOT_DONE)
        return Known(DONE if work.done() else IN_FLIGHT, "receipt")

    async def call_off(self, request: Request) -> Known:
        """The same."""
        return await self.look_up(request)

    @property
    def steps(self) -> list[str]:
        """The effects in their order."""
        return [step for _, step in self.effects]


def ordering(floor: Floor, desk: Desk) -> Job:
    """Three steps, each with an effect whose key is made of the run and the step."""
    keys = MemoryKeyStore(floor.clock)

    async def order(work: Work) -> Steps:
        run = work.run
        executor = Executor(keys, owner=run.worker or "", policy=EXECUTION, random=Random(0))
        for number in range(run.checkpoint or 0, 3):
            name = ORDER[number]
            operation = Operation(
                tenant=run.owner.tenant, name=name, resource=run.run_id, payload={"step": name}
            )
            budget = Budget(LIMITS, clock=floor.clock)
            outcome = await executor.execute(operation, desk, budget, tenant=run.owner.tenant)
            if outcome.status not in outcomes.DONE:
                raise RuntimeError(outcome.told)
            yield Step(name, {}, number + 1)
        yield Done(f"shipped by {run.worker}")

    return order
