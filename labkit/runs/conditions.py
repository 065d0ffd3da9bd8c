"""The conditions that the statements of the run store are made of.

owned("run-7", Owner("ann", "acme")) & RUNS.c.status.in_(["queued"])
"""

from typing import Any

import sqlalchemy as sa

from labkit.recovery.run_states import UnknownRun
from labkit.recovery.stream.record import Owner

from .record import Held
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
    """That it is this run, and its owner's."""
    theirs = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
    return (RUNS.c.run_id == run_id) & theirs


def whose(row: sa.Row[Any] | None) -> str:
    """What became of a run, in words."""
    if row is None:
        return "not there any more"
    return f"{row.status}, held by {row.worker or 'nobody'} with fence {row.fence}"


def unknown(run_id: str) -> UnknownRun:
    """The one answer for an id that is not there and for one that is somebody else's."""
    return UnknownRun(f"there is no run {run_id!r} for this owner")
