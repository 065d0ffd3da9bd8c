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
    UnknownRun,
    refused,
)
from labkit.recovery.stream.record import Owner
from labkit.stores.tables import insert_into

from .database import Database
from .record import AgentRun, Held, RunEvent
from .tables import EVENTS, RUNS, run_of

Condition = sa.ColumnElement[bool]
FREE: Final = {"worker": None, "until": None}
MOST: Final = 50  # runs in a list
PAGE: Final = 500  # events in one answer


class RunStore(Database):
    """Keeps runs in the database behind `engine`. Its calls raise `StoreDown` or `NotJSON`."""

    # For whoever has a run done

    async def submit(
        self, job: str, given: Any = None, *, owner: Owner, model: str = "", run_id: str = ""
    ) -> AgentRun:
        """Accept a run: from now on it is not lost. Raises `RunExists`."""
        told = {"job": job, "model": model}
        new = {
            **told,
            "run_id": run_id or uuid.uuid4().hex,
            "tenant": owner.tenant,
            "user": owner.user,
            "given": given,
            "status": QUEUED,
            "fence": 0,
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
        query = sa.select(RUNS).where(_owned(run_id, owner))
        row = await self._asked(lambda connection: connection.execute(query).first())
        if row is None:
            raise _unknown(run_id)
        return run_of(row)

    async def runs(self, owner: Owner, *, most: int = MOST) -> list[AgentRun]:
        """The newest runs of an owner, the newest first."""
        mine = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
        query = sa.select(RUNS).where(mine).order_by(RUNS.c.created.desc()).limit(most)
        return [run_of(row) for row in await self._asked(lambda it: it.execute(query).all())]

    async def left(self) -> int:
        """How many runs wait or are being done, whoever's they are."""
        waiting = RUNS.c.status.in_((QUEUED, RUNNING))
        query = sa.select(sa.func.count()).select_from(RUNS).where(waiting)
        return int(await self._asked(lambda it: it.execute(query).scalar_one()))

    async def events(
        self, run_id: str, owner: Owner, *, after: int = 0, most: int = PAGE
    ) -> list[RunEvent]:
        """The events after number `after`, in their order; for a wrong owner there are none."""
        columns = (EVENTS.c.seq, EVENTS.c.type, EVENTS.c.data, EVENTS.c.at)
        mine = (EVENTS.c.run_id == run_id) & sa.exists().where(_owned(run_id, owner))
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

    async def answer(self, run_id: str, owner: Owner, text: str) -> AgentRun:
        """Answer its question, which is possible once."""
        return await self._moved("answer", run_id, owner, {"answer": text}, answer=text)

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
            seq=RUNS.c.seq + 1,
            status=MOVES["claim"].target,
            updated=self._now,
        )
        if run_id is None:  # two picks, since each has an index to walk
            next_one = _first(over & known, RUNS.c.until), _first(queued & known, RUNS.c.created)
            chosen: sa.ColumnElement[Any] = sa.func.coalesce(*next_one)
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
        return await self._written(lambda it: it.execute(longer).first()) is not None

    async def step(self, held: Held, data: dict[str, Any], *, checkpoint: Any) -> Held:
        """Keep what a step has done, and where to go on; the run as it is then."""
        return await self._write(held, "step", data, checkpoint=checkpoint, answer=None)

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
        seq = held.run.seq + bool(event)
        mine = self._mine(held) & (RUNS.c.seq == held.run.seq)  # breakpoint: fence in the update
        change = sa.update(RUNS).where(mine).values(**changed, status=target, seq=seq)

        def write(connection: sa.Connection) -> Held:
            row = connection.execute(change.values(updated=self._now).returning(RUNS)).first()
            if row is not None:
                return held._replace(run=self._told(connection, row, event, data))
            row = connection.execute(sa.select(RUNS).where(_is(held))).first()
            if row is None or (row.fence, row.seq, row.status) != (held.lease.fence, seq, target):
                raise LeaseLost(f"{move}: run {held.run.run_id!r} is {_whose(row)}")
            return held._replace(run=run_of(row))  # written already: only the answer was lost

        return await self._changed(write)

    def _mine(self, held: Held) -> Condition:
        """That the run is still the worker's: its newest claim, and not over."""
        lease = held.lease
        newest = (RUNS.c.worker == lease.owner) & (RUNS.c.fence == lease.fence)
        running = RUNS.c.status.in_(MOVES["step"].sources)
        return _is(held) & running & newest & (RUNS.c.until > self._now)

    async def _moved(
        self, move: str, run_id: str, owner: Owner, data: dict[str, Any], /, **changed: Any
    ) -> AgentRun:
        """A move of the run's owner. Raises `UnknownRun` or `IllegalMove`."""
        sources, target, _, event = MOVES[move]
        seq = RUNS.c.seq + int(bool(event))  # PostgreSQL adds no boolean
        legal = _owned(run_id, owner) & RUNS.c.status.in_(sources)  # breakpoint: legal move
        change = sa.update(RUNS).where(legal).values(**changed, status=target, seq=seq)

        def write(connection: sa.Connection) -> AgentRun:
            row = connection.execute(change.values(updated=self._now).returning(RUNS)).first()
            if row is not None:
                return self._told(connection, row, event, data)
            row = connection.execute(sa.select(RUNS).where(_owned(run_id, owner))).first()
            raise _unknown(run_id) if row is None else refused(run_id, row.status, move)

        return await self._changed(write)

    def _told(
        self, connection: sa.Connection, row: sa.Row[Any], event: str, data: dict[str, Any]
    ) -> AgentRun:
        """Write the event of a move, in its transaction; the run as it is then."""
        if event:
            new = {"run_id": row.run_id, "seq": row.seq, "type": event, "data": data}
            connection.execute(sa.insert(EVENTS).values(**new, at=self._now))
        self.news.send(connection)
        return run_of(row)


def _first(wanted: Condition, by: sa.ColumnElement[Any]) -> Any:
    """The first such run, of those that nobody is claiming at this moment."""
    first = sa.select(RUNS.c.run_id).where(wanted).order_by(by, RUNS.c.run_id).limit(1)
    return first.with_for_update(skip_locked=True).scalar_subquery()


def _is(held: Held) -> Condition:
    return RUNS.c.run_id == held.run.run_id


def _owned(run_id: str, owner: Owner) -> Condition:
    theirs = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
    return (RUNS.c.run_id == run_id) & theirs


def _whose(row: sa.Row[Any] | None) -> str:
    if row is None:
        return "not there any more"
    return f"{row.status}, held by {row.worker or 'nobody'} with fence {row.fence}"


def _unknown(run_id: str) -> UnknownRun:
    return UnknownRun(f"there is no run {run_id!r} for this owner")
