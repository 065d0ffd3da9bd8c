"""The worker's command, with windows where a test may stop it, or with one of its safeguards gone.

python -m tests.runs.storm_worker ARGUMENTS OF THE COMMAND

LABKIT_STORM names what is changed, by commas. "meeting": before an effect and before a step is
written it says where it is, and goes on when a line comes in; whatever is refused then is told.
"naive": it writes with whatever claim the table has, its own or not. "clock+3600": its clock is
an hour ahead.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, ClassVar

CHANGES = os.environ.get("LABKIT_STORM", "").split(",")
if AHEAD := sum(float(change[5:]) for change in CHANGES if change.startswith("clock")):
    REAL = time.time
    time.time = lambda: REAL() + AHEAD  # before anything has got hold of it

from labkit.commands import worker  # noqa: E402  # after the clock is set
from labkit.recovery.cancel import to_the_end  # noqa: E402
from labkit.recovery.errors import ProviderError  # noqa: E402
from labkit.recovery.run_states import LeaseLost  # noqa: E402
from labkit.recovery.service import Request  # noqa: E402
from labkit.runs import opening  # noqa: E402
from labkit.runs.manager import RunManager  # noqa: E402
from labkit.runs.record import Held  # noqa: E402
from labkit.runs.store import RunStore  # noqa: E402
from labkit.services.ledger import LedgerService  # noqa: E402

EFFECT, WRITE = WINDOWS = ("effect", "write")


def meet(window: str, run: str) -> None:
    """Say where it is, and wait for a line."""
    worker._say("at", window=window, run=run)
    sys.stdin.readline()


class Meeting(LedgerService):
    """What has the effects, with a window before each; who comes late tries it all the same."""

    async def perform(self, request: Request) -> str:
        """Enter the effect after the window, whatever cancels come."""
        return await to_the_end(self._late(request))

    async def _late(self, request: Request) -> str:
        run = request.key.rpartition("/")[2]
        await asyncio.to_thread(meet, EFFECT, run)
        try:
            return await super().perform(request)
        except ProviderError:
            worker._say("refused", window=EFFECT, run=run)
            raise


class MeetingStore(RunStore):
    """The store, with a window before each step is written, and runs that are kept for this one."""

    kept: ClassVar = [
        change.removeprefix("run:") for change in CHANGES if change.startswith("run:")
    ]

    async def claim(self, worker: str, **how: Any) -> Held | None:
        """The next that is kept, else as it is."""
        if self.kept:
            how |= {"run_id": self.kept.pop(0)}
        return await super().claim(worker, **how)

    async def step(self, held: Held, data: dict[str, Any], *, checkpoint: Any) -> Held:
        """Write it after the window."""
        run = held.run
        if "meeting" in CHANGES:
            await asyncio.to_thread(meet, WRITE, run.run_id)
        if "naive" in CHANGES:
            now = await self.get(run.run_id, run.owner)
            lease = replace(held.lease, owner=now.worker or "", fence=now.fence)
            held = Held(now, lease)
        try:
            return await super().step(held, data, checkpoint=checkpoint)
        except LeaseLost:
            worker._say("refused", window=WRITE, run=run.run_id)
            raise


class OneThread(RunManager):
    """All calls of the databases share one thread: at a window no other one is under way.

    Else whoever is stopped there might hold a lock, on SQLite that of all writers.
    """

    async def serve(self) -> None:
        """Serve so."""
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        await super().serve()


def main() -> int:
    """Run the command."""
    parts: list[tuple[Any, type[Any]]] = [(opening, MeetingStore)]
    if "meeting" in CHANGES:
        parts += [(worker, OneThread), (worker, Meeting)]
    for module, part in parts:
        setattr(module, part.__mro__[1].__name__, part)
    return worker.main(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
