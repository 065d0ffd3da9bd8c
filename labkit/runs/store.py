"""Agent runs and their events on SQLAlchemy Core, for SQLite and PostgreSQL alike.

Rules: a claim is one conditional UPDATE, and its row count says whether it was granted; whatever a
worker writes names its claim, so that after a take-over it changes nothing. The time is the
database's, read in the statement; no worker's clock is compared with it. What the owner of a run
may ask stands in `front`.

    store = open_run_store("sqlite:///runs.db")
    run = await store.submit("order", {"order": 7}, owner=Owner("ann", "acme"))
    held = await store.claim("worker-1", length=30.0)      # None where there is nothing to do
    held = await store.step(held, {"node": "reserve"}, checkpoint=1)
    await store.finish(held, "shipped")
"""

from collections.abc import Collection
from functools import partial
from typing import Any

import sqlalchemy as sa

from labkit.recovery.errors import PolicyError
from labkit.recovery.lease import Lease
from labkit.recovery.policy import MOST as LONGEST
from labkit.recovery.policy import is_amount
from labkit.recovery.run_states import MOVES, RUNNING

from .conditions import Condition, first_of, is_run, lost
from .front import FREE, Front
from .record import Held, jobs_wanted, must_name, wants
from .tables import EVENTS, RUNS, run_of


class RunStore(Front):
    """Keeps runs in the database behind `engine`. Its calls raise `StoreDown` or `NotJSON`."""

    async def claim(
        self,
        worker: str,
        *,
        length: float,
        run_id: str | None = None,
        jobs: Collection[str] | None = None,
    ) -> Held | None:
        """The lease on a run for `length` seconds: on this one, or on one that waits.

        Those whose lease is over come first, then the oldest. `jobs`: only runs of these. A run
        that the worker itself holds is the same claim once more: its fence stays, and no start is
        told. Raises `PolicyError`.
        """
        if not (is_amount(length) and length > 0):
            raise PolicyError(f"length is {length!r}, and must be above 0, at most {LONGEST:g}")
        must_name(worker)
        jobs_wanted(jobs)
        queued = RUNS.c.status.in_(MOVES["claim"].sources)
        set_back = RUNS.c.until > self._now + 2 * RUNS.c.length  # the clock was, and by a lot
        ends = (RUNS.c.until <= self._now) | set_back
        over = RUNS.c.status.in_(MOVES["expire"].sources) & ends
        known = sa.true() if jobs is None else RUNS.c.job.in_(jobs)
        free = (queued | over) & known  # breakpoint: free to claim
        change = sa.update(RUNS).values(
            worker=worker,
            until=self._now + length,
            length=length,
            fence=RUNS.c.fence + 1,
            starts=RUNS.c.starts + 1,
            seq=RUNS.c.seq + 1,
            status=MOVES["claim"].target,
            updated=self._now,
        )
        if run_id is None:  # two picks, since each has an index to walk
            late = first_of(over & known, RUNS.c.until)
            new = first_of(queued & known, RUNS.c.created)
            chosen: sa.ColumnElement[Any] = sa.func.coalesce(late, new)
        else:
            wants(str, run_id=run_id)
            chosen = sa.literal(run_id, RUNS.c.run_id.type)

        def write(connection: sa.Connection) -> Held | None:
            one = change.where((RUNS.c.run_id == chosen) & free).returning(RUNS)
            row = connection.execute(one).first()  # breakpoint: conditional update
            if row is not None:
                about = {"worker": worker, "fence": row.fence, "model": row.model}
                run = self._told(connection, row, MOVES["claim"].event, about)
                return Held(run, Lease(worker, run.fence, row.until, length))
            return None if run_id is None else self._again(connection, worker, length, run_id)

        return await self._changed(write)

    def _again(
        self, connection: sa.Connection, worker: str, length: float, run_id: str
    ) -> Held | None:
        mine = (RUNS.c.run_id == run_id) & (RUNS.c.worker == worker) & (RUNS.c.until > self._now)
        longer = {"until": self._now + length, "length": length}
        change = sa.update(RUNS).where(mine).values(longer).returning(RUNS)
        row = connection.execute(change).first()
        return Held(run_of(row), Lease(worker, row.fence, row.until, length)) if row else None

    async def renew(self, held: Held) -> bool:
        """Give the lease its whole length again; False where it is lost."""
        wants(Held, held=held)
        mine = self._mine(held)
        return await self._urgent(partial(self._longer, held, mine)) is not None

    def _longer(
        self, held: Held, mine: Condition, connection: sa.Connection
    ) -> sa.Row[tuple[float]] | None:
        length = held.lease.length  # a claim of its own that is newer may have had another
        longer = sa.update(RUNS).where(mine).values(until=self._now + length, length=length)
        return connection.execute(longer.returning(RUNS.c.until)).first()

    async def step(self, held: Held, data: dict[str, Any], *, checkpoint: Any) -> Held:
        """Keep what a step has done, and where to go on; the run as it is then."""
        wants(dict, data=data)
        return await self._write(held, "step", data, checkpoint=checkpoint, answer=None, starts=0)

    async def ask(
        self, held: Held, question: str, *, checkpoint: Any, data: dict[str, Any] | None = None
    ) -> Held:
        """Wait for a person's answer; the lease ends. `data`: what else the event tells."""
        kept = {"checkpoint": checkpoint, "question": question, "answer": None}
        return await self._write(
            held, "ask", {"question": question, **(data or {})}, **kept, **FREE
        )

    async def finish(self, held: Held, result: Any, *, reason: str = "") -> Held:
        """The run is done; the lease ends."""
        told = {"result": result, "end_reason": reason}
        return await self._write(held, "finish", told, **told, question=None, answer=None, **FREE)

    async def fail(self, held: Held, code: str, message: str) -> Held:
        """The run has failed, and can be retried from its checkpoint; the lease ends."""
        told = {"error_code": code, "error_message": message}
        return await self._write(held, "fail", told, **told, **FREE)

    async def hand_back(self, held: Held) -> Held:
        """Let another worker go on at once; a claim without a step still counts as one."""
        return await self._write(held, "hand back", {}, worker=None, until=None)

    async def _write(self, held: Held, move: str, data: dict[str, Any], /, **changed: Any) -> Held:
        """One write of the owner. Raises `LeaseLost`.

        It names the number of events that the worker knows. So it can be asked for again after an
        answer that was lost: what is there by then is its own, if it is the very same.
        """
        wants(Held, held=held)
        _, target, _, event = MOVES[move]
        seq = held.run.seq + 1
        mine = self._mine(held)  # breakpoint: fence in the update
        if event:
            mine, changed = mine & (RUNS.c.seq == held.run.seq), {**changed, "seq": seq}
        kept = {**changed, "status": target}
        change = sa.update(RUNS).where(mine).values(kept)

        def write(connection: sa.Connection) -> Held:
            row = connection.execute(change.values(updated=self._now).returning(RUNS)).first()
            if row is not None:
                return held._replace(run=self._told(connection, row, event, data))
            row = connection.execute(sa.select(RUNS).where(is_run(held))).first()
            done = sa.select(RUNS.c.seq).where(is_run(held) & _same(held, event, data, kept))
            if row is None or connection.execute(done).first() is None:
                raise lost(move, held, row)
            return held._replace(run=run_of(row))  # written already: only the answer was lost

        return await self._changed(write)

    def _mine(self, held: Held) -> Condition:
        """That the run is still the worker's: its newest claim, and not over."""
        lease = held.lease
        newest = (RUNS.c.worker == lease.owner) & (RUNS.c.fence == lease.fence)
        running = RUNS.c.status.in_(MOVES["step"].sources)
        return is_run(held) & running & newest & (RUNS.c.until > self._now)


def _same(held: Held, event: str, data: dict[str, Any], kept: dict[str, Any]) -> Condition:
    """That the run and its newest event are what this write would make of them."""
    there = [RUNS.c.fence == held.lease.fence, *(RUNS.c[name] == kept[name] for name in kept)]
    if not event:  # a step before it may be one whose answer was lost, too
        known = (held.run.seq, held.run.seq + 1) if held.run.status == RUNNING else ()
        return sa.and_(*there, RUNS.c.seq.in_(known))
    told = sa.exists().where(EVENTS.c.run_id == RUNS.c.run_id, EVENTS.c.seq == RUNS.c.seq)
    return sa.and_(*there, told.where(EVENTS.c.type == event, EVENTS.c.data == data))
