"""Stores on SQLAlchemy Core, for SQLite and PostgreSQL alike.

A record is one row, and its text one row for each piece, so that an event writes what is new and
not the whole answer again.
"""

import json
from dataclasses import fields, replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from labkit.recovery.stream.record import (
    Executed,
    Owner,
    Refused,
    StreamRequest,
    StreamRun,
    ToolCall,
)
from labkit.recovery.stream.store import StreamExists, stale, unknown

from .tables import make_tables

_tables: Final = sa.MetaData()

RUNS: Final = sa.Table(
    "stream_runs",
    _tables,
    sa.Column("run_id", sa.String(200), primary_key=True),
    sa.Column("tenant", sa.String(200), nullable=False),
    sa.Column("user", sa.String(200), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("record", sa.Text, nullable=False),  # JSON: the other fields, but for the chunks
)

CHUNKS: Final = sa.Table(
    "stream_chunks",
    _tables,
    sa.Column("run_id", sa.String(200), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    # JSON too: a database may refuse NUL or half a pair.
    sa.Column("text", sa.Text, nullable=False),
)

_OWN_COLUMNS: Final = frozenset({"run_id", "owner", "version", "chunks"})
_FIELDS: Final = [field.name for field in fields(StreamRun) if field.name not in _OWN_COLUMNS]


class SQLStreamStore:
    """Keeps records in two tables of the database behind `engine`."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        make_tables(engine, RUNS, CHUNKS)

    def create(self, run: StreamRun) -> StreamRun:
        """Keep a new record, as version 1. Raises `StreamExists`."""
        owner = run.owner
        row = {"run_id": run.run_id, "tenant": owner.tenant, "user": owner.user}
        try:
            with self._engine.begin() as connection:
                connection.execute(sa.insert(RUNS).values(**row, version=1, record=_as_json(run)))
                return _keep_chunks(connection, run, 1)
        except IntegrityError:
            raise StreamExists(f"there is a stream {run.run_id!r} already") from None

    def save(self, run: StreamRun) -> StreamRun:
        """Keep a changed record; raises `StaleRecord` or `UnknownStream`."""
        version = run.version + 1
        mine = _owned(run.run_id, run.owner) & (RUNS.c.version == run.version)
        changed = sa.update(RUNS).where(mine).values(version=version, record=_as_json(run))
        with self._engine.begin() as connection:
            if connection.execute(changed).rowcount == 1:
                return _keep_chunks(connection, run, version)
        self.load(run.run_id, run.owner)  # unknown, if it is not there
        raise stale(run)

    def load(self, run_id: str, owner: Owner) -> StreamRun:
        """The record as it was saved last; raises `UnknownStream`, also for a wrong owner."""
        record = sa.select(RUNS).where(_owned(run_id, owner))
        pieces = (
            sa.select(CHUNKS.c.text).where(CHUNKS.c.run_id == run_id).order_by(CHUNKS.c.position)
        )
        with self._engine.begin() as connection:
            row = connection.execute(record).first()
            if row is None:
                raise unknown(run_id)
            kept = json.loads(row.record)
            # A writer may have come in between: only what belongs to this version counts.
            until = pieces.where(CHUNKS.c.position < kept["stored_chunks"])
            chunks = connection.execute(until).scalars().all()
        return _from_row(row, kept, owner, tuple(json.loads(chunk) for chunk in chunks))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _owned(run_id: str, owner: Owner) -> sa.ColumnElement[bool]:
    theirs = (RUNS.c.tenant == owner.tenant) & (RUNS.c.user == owner.user)
    return (RUNS.c.run_id == run_id) & theirs


def _keep_chunks(connection: sa.Connection, run: StreamRun, version: int) -> StreamRun:
    new = [
        {"run_id": run.run_id, "position": position, "text": json.dumps(text)}
        for position, text in enumerate(run.chunks[run.stored_chunks :], run.stored_chunks)
    ]
    if new:
        connection.execute(sa.insert(CHUNKS), new)
    return replace(run, version=version, stored_chunks=len(run.chunks))


def _as_json(run: StreamRun) -> str:
    told = {name: getattr(run, name) for name in _FIELDS}
    return json.dumps({**told, "stored_chunks": len(run.chunks)}, default=_plain)


def _plain(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _from_row(
    row: sa.Row[Any], kept: dict[str, Any], owner: Owner, chunks: tuple[str, ...]
) -> StreamRun:
    kept["request"] = StreamRequest(**{**kept["request"], "tools": (*kept["request"]["tools"],)})
    kept["calls"] = tuple(ToolCall(**call) for call in kept["calls"])
    kept["executed"] = tuple(Executed(**done) for done in kept["executed"])
    kept["refused"] = tuple(Refused(**call) for call in kept["refused"])
    return StreamRun(row.run_id, owner, **kept, chunks=chunks, version=row.version)
