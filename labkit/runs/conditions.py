"""The conditions that the statements of the run store are made of.

owned("run-7", Owner("ann", "acme")) & RUNS.c.status.in_(["queued"])
"""

from typing import Any

import sqlalchemy as sa

from labkit.recovery.run_states import CANCELLED, RUNNING, LeaseLost, UnknownRun
from labkit.recovery.stream.record import Owner

from .record import Held, wants
from .tables import RUNS

Condition = sa.ColumnElement[bool]


def first_of(wanted: Condition, by: sa.ColumnElement[Any]) -> Any:
    """The first such run, of those that nobody is claiming at this moment."""
    first = sa.select(RUNS.c.run_id).where(wanted).order_by(by, RUNS.c.run_id).limit(1)
    return first.with_for_update(skip_locked=True).scalar_subquery()


def is_run(held: Held) -> Condition:
    """That it is this run."""
    return RUNS.c.run_id == held.run.run_id


def owned(run_id: str, owner: Owner) -> Condition:
    """That it is this run, and its owner's. Raises `BadRun`."""
    wants(str, run_id=run_id)
    wants(Owner, owner=owner)
    theirs = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
    return (RUNS.c.run_id == run_id) & theirs


def lost(move: str, held: Held, row: sa.Row[Any] | None) -> LeaseLost:
    """The error for a write that changes nothing; it says what became of the run."""
    told = "is not there any more"
    if row is not None:
        told = f"is {row.status}, held by {row.worker or 'nobody'} with fence {row.fence}"
        own = row.fence == held.lease.fence
        if own and row.status != CANCELLED and row.seq > held.run.seq:
            told = f"has gone on, and is {row.status}: use the Held that the last write gave"
        elif (own, row.status, row.worker) == (True, RUNNING, held.lease.owner):
            told = "is nobody's: your lease on it is over"
    return LeaseLost(f"{move}: run {held.run.run_id!r} {told}")


def unknown(run_id: str) -> UnknownRun:
    """The one answer for an id that is not there and for one that is somebody else's."""
    return UnknownRun(f"there is no run {run_id!r} for this owner")
