"""Agent runs and their events on SQLAlchemy Core, for SQLite and PostgreSQL alike.

Rules: each move is one UPDATE that names what must be so, and its row count says whether it was;
the event is written in the same transaction, with the next number of the run, under the row's lock.
Whatever a worker writes names its claim: after a take-over it changes nothing. The time is the
database's, read in the statement; no worker's clock is compared with it.

    store = open_run_store("sqlite:///runs.db")
    run = await store.submit("order", {"order": 7}, owner=Owner("ann", "acme"))
    held = await store.claim("worker-1", length=30.0)      # None where there is nothing to do
    held = await store.step(held, {"node": "reserve"}, checkpoint=1)
    await store.finish(held, "shipped")
"""

import uuid
from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa

from labkit.recovery.errors import PolicyError
from labkit.recovery.lease import Lease
from labkit.recovery.policy import MOST as LONGEST
from labkit.recovery.policy import is_amount
from labkit.recovery.run_states import (
    MOVES,
    QUEUED,
    RUNNING,
    LeaseLost,
    RunExists,
    refused,
)
from labkit.recovery.stream.record import Owner
from labkit.stores.tables import insert_into

from .conditions import Condition, first_of, is_run, owned, unknown, whose
from .database import Database
from .record import AgentRun, Held, RunEvent, named
from .tables import EVENTS, RUNS, run_of

FREE: Final = {"worker": None, "until": None, "starts": 0}
MOST: Final = 50  # runs in a list
PAGE: Final = 500  # events in one answer


class RunStore(Database):
    """Keeps runs in the database behind `engine`. Its calls raise `StoreDown` or `NotJSON`."""

    # For whoever has a run done

    async def submit(
        self, job: str, given: Any = None, *, owner: Owner, model: str = "", run_id: str = ""
    ) -> AgentRun:
        """Accept a run: from now on it is not lost. Raises `RunExists` or `BadRun`."""
        told = {"job": job, "model": model}
        new = {
            **named(run_id or uuid.uuid4().hex, owner, **told),
            "given": given,
            "status": QUEUED,
            "fence": 0,
            "starts": 0,
            "seq": 1,
            "created": self._now,
            "updated": self._now,
        }
        # No error where it is there: a database's log would quote it.
        insert = insert_into(self._engine, RUNS).values(new).on_conflict_do_nothing()

        def write(connection: sa.Connection) -> AgentRun:
            row = connection.execute(insert.returning(RUNS)).first()
            if row is None:
                raise RunExists(f"there is a run {new['run_id']!r} already")
            return self._told(connection, row, MOVES["submit"].event, told)

        return await self._changed(write)

    async def get(self, run_id: str, owner: Owner) -> AgentRun:
        """The run as it is now. Raises `UnknownRun`, also for a wrong owner."""
        query = sa.select(RUNS).where(owned(run_id, owner))
        row = await self._asked(lambda connection: connection.execute(query).first())
        if row is None:
            raise unknown(run_id)
        return run_of(row)

    async def runs(self, owner: Owner, *, most: int = MOST) -> list[AgentRun]:
        """The newest runs of an owner, the newest first."""
        mine = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
        query = sa.select(RUNS).where(mine).order_by(RUNS.c.created.desc()).limit(most)
        return [run_of(row) for row in await self._asked(lambda it: it.execute(query).all())]

    async def left(self, jobs: Collection[str] | None = None) -> int:
        """How many runs wait or are being done, whoever's they are; `jobs`: only runs of these."""
        waiting: Condition = RUNS.c.status.in_((QUEUED, RUNNING))
        if jobs is not None:
            waiting &= RUNS.c.job.in_(jobs)
        query = sa.select(sa.func.count()).select_from(RUNS).where(waiting)
        return int(await self._asked(lambda it: it.execute(query).scalar_one()))

    async def events(
        self, run_id: str, owner: Owner, *, after: int = 0, most: int = PAGE
    ) -> list[RunEvent]:
        """The events after number `after`, in their order; for a wrong owner there are none."""
        columns = (EVENTS.c.seq, EVENTS.c.type, EVENTS.c.data, EVENTS.c.at)
        mine = (EVENTS.c.run_id == run_id) & sa.exists().where(owned(run_id, owner))
        query = (
            sa.select(*columns)
            .where(mine & (EVENTS.c.seq > after))
            .order_by(EVENTS.c.seq)
            .limit(most)
        )
        return [RunEvent(*row) for row in await self._asked(lambda it: it.execute(query).all())]

    async def cancel(self, run_id: str, owner: Owner) -> AgentRun:
        """End it for good; its worker finds out at its next write or renewal."""
        return await self._moved("cancel", run_id, owner, {}, **FREE)

    async def answer(
        self, run_id: str, owner: Owner, text: str, *, seq: int | None = None
    ) -> AgentRun:
        """Answer its question, which is possible once.

        `seq`: the number of the event that asked. With it an answer that is sent again can never
        be taken for one to the next question.
        """
        asked = None if seq is None else RUNS.c.seq == seq
        return await self._moved("answer", run_id, owner, {"answer": text}, asked, answer=text)

    async def retry(self, run_id: str, owner: Owner, *, model: str | None = None) -> AgentRun:
        """Go on from where it failed, with another model where one is named."""
        changed = {} if model is None else {"model": model}
        return await self._moved(
            "retry", run_id, owner, {}, **changed, error_code=None, error_message=None
        )

    # For a worker

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
        if not worker:
            raise PolicyError("worker is empty: give each worker a name that no other has")
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
        change = sa.update(RUNS).where(self._mine(held)).returning(RUNS.c.run_id)
        length = held.lease.length  # a claim of its own that is newer may have had another
        longer = change.values(until=self._now + length, length=length)
        return await self._urgent(lambda it: it.execute(longer).first()) is not None

    async def step(self, held: Held, data: dict[str, Any], *, checkpoint: Any) -> Held:
        """Keep what a step has done, and where to go on; the run as it is then."""
        return await self._write(held, "step", data, checkpoint=checkpoint, answer=None, starts=0)

    async def ask(self, held: Held, question: str, *, checkpoint: Any) -> Held:
        """Wait for a person's answer; the lease ends."""
        kept = {"checkpoint": checkpoint, "question": question, "answer": None}
        return await self._write(held, "ask", {"question": question}, **kept, **FREE)

    async def finish(self, held: Held, result: Any, *, reason: str = "") -> Held:
        """The run is done; the lease ends."""
        told = {"result": result, "end_reason": reason}
        return await self._write(held, "finish", told, **told, question=None, answer=None, **FREE)

    async def fail(self, held: Held, code: str, message: str) -> Held:
        """The run has failed, and can be retried from its checkpoint; the lease ends."""
        told = {"error_code": code, "error_message": message}
        return await self._write(held, "fail", told, **told, **FREE)

    async def hand_back(self, held: Held) -> Held:
        """Let another worker go on at once."""
        return await self._write(held, "hand back", {}, **FREE)

    async def _write(self, held: Held, move: str, data: dict[str, Any], /, **changed: Any) -> Held:
        """One write of the owner. Raises `LeaseLost`.

        It names the number of events that the worker knows. So it can be asked for again after an
        answer that was lost: only the owner writes, and what is there by then is its own.
        """
        _, target, _, event = MOVES[move]
        seq = held.run.seq + 1
        mine = self._mine(held)  # breakpoint: fence in the update
        if event:
            mine, changed = mine & (RUNS.c.seq == held.run.seq), {**changed, "seq": seq}
        change = sa.update(RUNS).where(mine).values(**changed, status=target)

        def write(connection: sa.Connection) -> Held:
            row = connection.execute(change.values(updated=self._now).returning(RUNS)).first()
            if row is not None:
                return held._replace(run=self._told(connection, row, event, data))
            row = connection.execute(sa.select(RUNS).where(is_run(held))).first()
            if row is None or (row.fence, row.status) != (held.lease.fence, target):
                raise LeaseLost(f"{move}: run {held.run.run_id!r} is {whose(row)}")
            known = (seq,) if event else (seq, seq - 1)
            if row.seq not in known or held.run.status != RUNNING:
                raise LeaseLost(f"{move}: run {held.run.run_id!r} has gone on")
            return held._replace(run=run_of(row))  # written already: only the answer was lost

        return await self._changed(write)

    def _mine(self, held: Held) -> Condition:
        """That the run is still the worker's: its newest claim, and not over."""
        lease = held.lease
        newest = (RUNS.c.worker == lease.owner) & (RUNS.c.fence == lease.fence)
        running = RUNS.c.status.in_(MOVES["step"].sources)
        return is_run(held) & running & newest & (RUNS.c.until > self._now)

    async def _moved(
        self,
        move: str,
        run_id: str,
        owner: Owner,
        data: dict[str, Any],
        more: Condition | None = None,
        /,
        **changed: Any,
    ) -> AgentRun:
        """A move of the run's owner. Raises `UnknownRun` or `IllegalMove`."""
        sources, target, _, event = MOVES[move]
        seq = RUNS.c.seq + int(bool(event))  # PostgreSQL adds no boolean
        legal = owned(run_id, owner) & RUNS.c.status.in_(sources)  # breakpoint: legal move
        legal = legal if more is None else legal & more
        change = sa.update(RUNS).where(legal).values(**changed, status=target, seq=seq)

        def write(connection: sa.Connection) -> AgentRun:
            row = connection.execute(change.values(updated=self._now).returning(RUNS)).first()
            if row is not None:
                return self._told(connection, row, event, data)
            row = connection.execute(sa.select(RUNS).where(owned(run_id, owner))).first()
            raise unknown(run_id) if row is None else refused(run_id, row.status, move)

        return await self._changed(write)

    def _told(
        self, connection: sa.Connection, row: sa.Row[Any], event: str, data: dict[str, Any]
    ) -> AgentRun:
        """Write the event of a move, in its transaction; the run as it is then."""
        if event:
            new = {"run_id": row.run_id, "seq": row.seq, "type": event, "data": data}
            connection.execute(sa.insert(EVENTS).values(**new, at=self._now))
        run = run_of(row)
        self.news.send(connection, run)
        return run
