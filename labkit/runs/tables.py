"""The tables of agent runs, `runs` and `events`, and the version of their schema.

The columns are the fields of the records. An event's number counts within its run.
"""

from dataclasses import fields
from typing import Any, Final

import sqlalchemy as sa

from labkit.recovery.stream.record import Owner
from labkit.stores.errors import StoreError
from labkit.stores.tables import AsJSON, insert_into, make_tables

from .record import AgentRun

SCHEMA: Final = 1
_tables: Final = sa.MetaData()

VERSIONS: Final = sa.Table(
    "schema_versions",
    _tables,
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

RUNS: Final = sa.Table(
    "runs",
    _tables,
    sa.Column("run_id", AsJSON, primary_key=True),
    sa.Column("tenant", AsJSON, nullable=False),
    sa.Column("user", AsJSON, nullable=False),
    sa.Column("job", AsJSON, nullable=False),
    sa.Column("given", AsJSON),
    sa.Column("model", AsJSON, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("checkpoint", AsJSON),
    sa.Column("question", AsJSON),
    sa.Column("answer", AsJSON),
    sa.Column("result", AsJSON),
    sa.Column("end_reason", AsJSON),
    sa.Column("error_code", AsJSON),
    sa.Column("error_message", AsJSON),
    sa.Column("worker", AsJSON),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("starts", sa.Integer, nullable=False),
    sa.Column("until", sa.Double),
    sa.Column("length", sa.Double),
    sa.Column("seq", sa.Integer, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
    sa.Column("updated", sa.Double, nullable=False),
    sa.Index("runs_by_status", "status", "created"),
    sa.Index("runs_by_lease", "status", "until"),
    sa.Index("runs_by_owner", "tenant", "user", "created"),
)

EVENTS: Final = sa.Table(
    "events",
    _tables,
    sa.Column("run_id", AsJSON, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("data", AsJSON, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)

_FIELDS: Final = [field.name for field in fields(AgentRun) if field.name != "owner"]


def set_up(engine: sa.Engine) -> None:
    """Make the tables that are missing. Raises `StoreError` for those of another version."""
    make_tables(engine, VERSIONS)
    mine = insert_into(engine, VERSIONS).values(part="runs", version=SCHEMA)
    with engine.begin() as connection:
        if not sa.inspect(connection).has_table(RUNS.name):  # else they are another program's
            connection.execute(mine.on_conflict_do_nothing())
        found = connection.execute(
            sa.select(VERSIONS.c.version).where(VERSIONS.c.part == "runs")
        ).scalar()
    if found != SCHEMA:
        cure = "use the labkit that made them, or name another database"
        raise StoreError(f"its runs have schema version {found}, and this is {SCHEMA}: {cure}")
    make_tables(engine, RUNS, EVENTS)


def run_of(row: sa.Row[Any]) -> AgentRun:
    """A row of `RUNS` as its record."""
    kept = row._mapping
    owner = Owner(user=kept["user"], tenant=kept["tenant"])
    return AgentRun(owner=owner, **{name: kept[name] for name in _FIELDS})
