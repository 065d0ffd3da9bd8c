"""What the owner of agent runs may ask of their store: submit, look, cancel, answer, retry.

Rules: each move is one UPDATE that names what must be so, and its row count says whether it was;
the event is written in the same transaction, with the next number of the run, under the row's lock.
An id of somebody else's run is as unknown as one that is not there.

    run = await store.submit("order", {"order": 7}, owner=Owner("ann", "acme"))
    run = await store.cancel(run.run_id, owner)        # raises UnknownRun or IllegalMove
"""

import uuid
from collections.abc import Collection
from typing import Any, Final

import sqlalchemy as sa

from labkit.recovery.run_states import MOVES, QUEUED, RUNNING, RunExists, refused
from labkit.recovery.stream.record import Owner
from labkit.stores.tables import insert_into

from .codes import short
from .conditions import Condition, owned, unknown
from .database import Database
from .record import AgentRun, BadRun, RunEvent, jobs_wanted, named, wants
from .tables import EVENTS, RUNS, run_of

FREE: Final = {"worker": None, "until": None, "starts": 0}
MOST: Final = 50  # runs in a list
PAGE: Final = 500  # events in one answer


class Front(Database):
    """For whoever has a run done. Its calls raise `StoreDown`, `NotJSON` or `BadRun`."""

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

    async def runs(
        self, owner: Owner, *, job: str | None = None, before: str | None = None, most: int = MOST
    ) -> list[AgentRun]:
        """The newest runs of an owner, or those older than `before`, the newest first.

        `job`: only runs of this.
        Raises `UnknownRun` for a `before` that is none of the owner's.
        """
        wants(Owner, owner=owner)
        wants(int, most=most)
        mine = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
        if job is not None:
            mine &= RUNS.c.job == job
        age = RUNS.c.created, RUNS.c.run_id  # some were made at the same moment
        if before is not None:
            mark = await self.get(before, owner)
            marks = (sa.literal(getattr(mark, each.name), each.type) for each in age)
            mine &= sa.tuple_(*age) < sa.tuple_(*marks)
        query = sa.select(RUNS).where(mine).order_by(*(c.desc() for c in age)).limit(most)
        return [run_of(row) for row in await self._asked(lambda it: it.execute(query).all())]

    async def left(self, jobs: Collection[str] | None = None) -> int:
        """How many runs wait or are being done, whoever's they are; `jobs`: only runs of these."""
        jobs_wanted(jobs)
        waiting: Condition = RUNS.c.status.in_((QUEUED, RUNNING))
        if jobs is not None:
            waiting &= RUNS.c.job.in_(jobs)
        query = sa.select(sa.func.count()).select_from(RUNS).where(waiting)
        return int(await self._asked(lambda it: it.execute(query).scalar_one()))

    async def events(
        self, run_id: str, owner: Owner, *, after: int = 0, most: int = PAGE
    ) -> list[RunEvent]:
        """The events after number `after`, in their order; for a wrong owner there are none."""
        wants(int, after=after, most=most)
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
        self, run_id: str, owner: Owner, said: Any, *, seq: int | None = None
    ) -> AgentRun:
        """Answer its question, once: with a text, or whatever its job takes.

        `seq`: the number of the event that asked. An answer that is sent again is none to the next.
        """
        if said is None:
            raise BadRun("said is None, which is no answer: give a text, or what its job takes")
        wants(int, seq=0 if seq is None else seq)
        asked = None if seq is None else RUNS.c.seq == seq
        told = short(said if isinstance(said, dict) else {"answer": said})
        return await self._moved("answer", run_id, owner, told, asked, answer=said)

    async def retry(self, run_id: str, owner: Owner, *, model: str | None = None) -> AgentRun:
        """Go on from where it failed, with another model where one is named."""
        changed = {} if model is None else {"model": model}
        wants(str, **changed)
        return await self._moved(
            "retry", run_id, owner, {}, **changed, error_code=None, error_message=None
        )

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
