"""One run in the hands of one worker: each step of its job is kept before the next one begins.

Rules: a claim that is lost ends the work, and nothing is written any more; a cancel that is no
loss hands the run back; whatever else the job raises becomes a state with a code. A store that is
gone is asked again until it is back, or until the claim is lost.

    driving = Driving(store, held, renewal, observe)
    state = await driving.work(job)          # "completed", "awaiting_input", ... or "lost"
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final

from labkit.recovery.cancel import to_the_end
from labkit.recovery.renewal import AGAIN, RUSH, Renewal
from labkit.recovery.retry import Observe
from labkit.recovery.run_states import RUNNING, LeaseLost
from labkit.stores.errors import StoreDown

from .codes import MOST, error_code, message, short
from .job import Ask, Done, Job, Step, Work
from .record import Held
from .store import RunStore

LOST: Final = "lost"
_NO_MORE: Final = object()
Write = Callable[[Held], Awaitable[Held]]


class Driving:
    """`held` is what the worker knows of its run; `observe(kind, **details)` is told of it all.

    `ending()`: whether this worker has to let go of it.
    """

    def __init__(
        self,
        store: RunStore,
        held: Held,
        renewal: Renewal,
        observe: Observe,
        *,
        ending: Callable[[], bool],
    ) -> None:
        self.held = held
        self._store = store
        self._renewal = renewal
        self._observe = observe
        self._ending = ending
        self._refused = False  # by the store, since the run is another's

    async def work(self, job: Job) -> str:
        """Every step that is left; the state that the run has then, or "lost"."""
        work = Work(self.held.run, self.held.lease.fence, self._renewal)
        try:
            if not isinstance(steps := job(work), AsyncGenerator):
                raise TypeError(f"a job is an async generator of its steps, not {steps!r:.60}")
            async with aclosing(steps):
                await self._follow(steps)
            if self.held.run.status == RUNNING:
                if self._stopped():  # whatever the job has made of that
                    raise asyncio.CancelledError
                await self._keep(Done())  # a job that ends without a word
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a job may raise anything, also what would end the worker
            if self._lost(error):
                return LOST
            if self._stopped():  # and the job has made another error of it
                await self._hand_back()
                raise asyncio.CancelledError from error
            return await self._fail(error)
        return self.held.run.status

    async def _follow(self, steps: AsyncGenerator[Step | Ask | Done, None]) -> None:
        """Keep each step before the job goes on with the next."""
        step: Any = await anext(steps, _NO_MORE)
        while step is not _NO_MORE:
            try:
                await self._keep(step)  # breakpoint: step kept
            except asyncio.CancelledError as cancel:
                if self._stopped():
                    raise
                step = await steps.athrow(cancel)  # a deadline of the job's own: it may say so
                continue
            if self.held.run.status != RUNNING or self._stopped():
                break
            step = await anext(steps, _NO_MORE)

    def _stopped(self) -> bool:
        """Whether the worker has to let go of the run, and not only the job of itself."""
        return self._ending() or bool(self._renewal.lost)

    def _lost(self, error: BaseException) -> bool:
        """Whether it says that the run is another's: a job may say so, and be wrong."""
        return isinstance(error, LeaseLost) and (self._refused or bool(self._renewal.lost))

    async def _keep(self, step: Step | Ask | Done) -> None:
        """Keep what the job has yielded, before it goes on."""
        store = self._store
        if isinstance(step, Step):
            told = {"node": step.node, **step.data}
            await self._write(
                partial(store.step, data=short(told), checkpoint=step.checkpoint), step=step.node
            )
        elif isinstance(step, Ask):
            asked = {"data": short(step.data), "checkpoint": step.checkpoint}
            await self._write(partial(store.ask, question=step.question[:MOST], **asked))
        elif isinstance(step, Done):
            await self._write(partial(store.finish, result=step.result, reason=step.reason))
        else:
            raise TypeError(f"a job yields Step, Ask or Done, not {step!r:.60}")

    async def _fail(self, error: BaseException) -> str:
        """Keep what ended it, so that nobody waits for a run that nobody does."""
        code = error_code(error)
        try:
            await self._write(partial(self._store.fail, code=code, message=message(error)))
        except LeaseLost:
            return LOST
        return self.held.run.status

    async def _write(self, write: Write, **told: Any) -> None:
        """Write, whatever cancels come meanwhile, and again while the store is gone."""
        while True:
            if self._renewal.lost:
                raise LeaseLost(self._renewal.lost)
            try:
                await to_the_end(self._written(write), name="write")
                break
            except StoreDown as error:
                self._observe("not_written", error=type(error).__name__)
                await asyncio.sleep(min(self.held.lease.length / RUSH, AGAIN))
        self._observe("kept", status=self.held.run.status, seq=self.held.run.seq, **told)

    async def _written(self, write: Write) -> None:
        try:
            self.held = await write(self.held)
        except LeaseLost as lost:  # breakpoint: late write
            self._refused = True
            self._observe("late_write", told=str(lost))
            raise

    async def _hand_back(self) -> None:
        """Let others go on at once; they will, when the lease ends, if this fails."""
        if self._renewal.lost or self.held.run.status != RUNNING:
            return
        with suppress(LeaseLost, StoreDown):
            await to_the_end(  # breakpoint: handed back
                self._written(self._store.hand_back), name="hand back"
            )
            self._observe("handed_back")
