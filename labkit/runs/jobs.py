"""The jobs of `python -m labkit worker`: copy `order` to write one of your own.

Rules of a job: it begins where the checkpoint says; each effect has a key made of the run and the
step, so that a step that is done again after a crash has its effect once; it yields a step when
that is done; what is not done is never passed over.

    once = Once(open_key_store(url), service, worker="worker-1", lease=30.0)
    RunManager(store, jobs(once), worker="worker-1", policy=RunPolicy(lease=30.0))
"""

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from random import Random
from typing import Any, Final

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.execution import ClockJumped, Executor
from labkit.recovery.idempotency import FAILED, KeyStore, Operation
from labkit.recovery.outcomes import DEDUPLICATED, DONE, OPEN, UNKNOWN, Outcome
from labkit.recovery.policy import MOST, ExecutionPolicy, RetryPolicy
from labkit.recovery.retry import Observe
from labkit.recovery.run_states import RunError
from labkit.recovery.service import Service
from labkit.stores.errors import StoreDown

from .job import Done, Job, Step, Work
from .record import AgentRun

STEPS: Final = ("reserve", "send_mail", "ship")
AGAIN: Final = 0.2  # seconds before something that is not settled yet is asked for again
PATIENCE: Final = 60.0  # seconds that a step's effect may take, beside a dead worker's lease
KEPT: Final = MOST  # seconds that a result is kept: longer than a run lies, or a clock is set
JUMPS: Final = 100  # of the store's clock, one right after the other


class Unsettled(RunError):
    """A step may have had its effect, and no program can say: look, note it, then retry the run."""


def jobs(once: "Once", *, pause: float = 0.5) -> dict[str, Job]:
    """Each job by its name; a step takes `pause` seconds before its effect."""
    return {"order": partial(order, once, pause)}


async def order(once: "Once", pause: float, work: Work) -> AsyncGenerator[Step | Done, None]:
    """Reserve the goods, tell the customer, ship them."""
    run = work.run
    for number in range(run.checkpoint or 0, len(STEPS)):
        step = STEPS[number]
        await asyncio.sleep(pause)
        receipt = await once(run, step)
        yield Step(step, {"receipt": receipt}, checkpoint=number + 1)
    yield Done("shipped")


class Once:
    """Has the effect of a run's step once, whoever does the step, and however often.

    `worker`: a name that no other process has; `lease`: that of the run, so that the key of a
    worker that died is free about when its run is. `observe`: as that of an `Executor`.

    A store's clock that was set ends no run: it is told, trusted as it is now, and the step is
    looked up again. That is safe: a result does not expire, and a claim that is over only by such a
    clock makes nobody act. The service is asked first, its "not done" is a promise that holds for
    the other's tries too, and the other's late write has an older fence.
    """

    def __init__(
        self,
        keys: KeyStore,
        service: Service,
        *,
        worker: str,
        lease: float,
        random: Random | None = None,
        observe: Observe = lambda kind, **details: None,
    ) -> None:
        retry = RetryPolicy(retry_on=TRANSIENT)
        policy = ExecutionPolicy(retry=retry, lease=lease, ttl=KEPT)
        self._executor = Executor(
            keys, owner=worker, policy=policy, random=random or Random(), observe=observe
        )
        self._limits = BudgetLimits(seconds=min(PATIENCE + lease, MOST))
        self._service = service
        self._keys = keys

    async def __call__(
        self, run: AgentRun, step: str, *, thing: str = "", given: Any = None
    ) -> str:
        """The step's receipt. Raises `Unsettled` or the error of the service.

        `thing`: what tells two effects of one step apart, which are `given` what differs.
        """
        outcome = await self._settled(_operation(run, step, thing, given))
        if outcome.status in DONE:
            return outcome.result
        if outcome.error is not None and outcome.status not in OPEN:
            raise outcome.error
        cure = f"look whether it was done, note that under key {outcome.digest}, retry the run"
        raise Unsettled(f"{step}: {outcome.how}; {cure}")

    async def begun(self, run: AgentRun, step: str, *, thing: str = "") -> bool:
        """Whether some worker may have had it already. Raises `StoreDown`."""
        operation = _operation(run, step, thing, None)
        seen = await self._keys.read(operation.tenant, operation.sent)
        return seen.record is not None and seen.record.state != FAILED

    async def _settled(self, operation: Operation) -> Outcome:
        """How it ended, asked again while that is open: the executor looks first, and then acts.

        An earlier worker's claim on the key may still last, and the store may be gone for a while.
        """
        budget = Budget(self._limits, clock=asyncio.get_running_loop().time)
        execute, jumps = self._executor.execute, 0
        while True:
            try:
                outcome = await execute(operation, self._service, budget, tenant=operation.tenant)
                jumps = jumps + 1 if isinstance(outcome.error, ClockJumped) else 0
                if 0 < jumps <= JUMPS:
                    self._executor.observe("clock_jumped", told=outcome.how)
                    self._executor.trust_clock()
                elif outcome.status not in (UNKNOWN, DEDUPLICATED) or not budget.remaining:
                    return outcome
            except StoreDown:
                if not budget.remaining:
                    raise
            await asyncio.sleep(AGAIN)


def _operation(run: AgentRun, step: str, thing: str, given: Any) -> Operation:
    return Operation(
        tenant=run.owner.tenant,
        name=step,
        resource=f"{run.run_id}/{thing}" if thing else run.run_id,
        payload={"step": step, "given": run.given if given is None else given},
    )
