"""The records of keys on SQLAlchemy Core, for SQLite and PostgreSQL alike.

Rules: one row a key, and whose it is belongs to the key; each write is one statement, which names
the version that it replaces; the time is the database's and is read with the record.

    keys = open_key_store("sqlite:///keys.db")
    record, now = await keys.read("acme", "acme/charge/order-7")
    await keys.swap(record, changed)       # False: somebody was quicker
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from labkit.recovery.idempotency import FAILED, SUCCEEDED, KeyRecord, Seen
from labkit.recovery.lease import Lease

from .errors import StoreDown, told
from .tables import AsJSON, clock_of, insert_into, make_tables

Answer = TypeVar("Answer")


# The columns are the fields of a record and of its lease.
KEYS: Final = sa.Table(
    "idempotency_keys",
    sa.MetaData(),
    sa.Column("tenant", AsJSON, primary_key=True),
    sa.Column("key", AsJSON, primary_key=True),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("owner", AsJSON, nullable=False),
    sa.Column("fence", sa.Integer, nullable=False),
    sa.Column("until", sa.Double, nullable=False),
    sa.Column("length", sa.Double, nullable=False),
    sa.Column("since", sa.Double, nullable=False),
    sa.Column("result", AsJSON, nullable=False),
    sa.Column("expires", sa.Double, nullable=False),
    sa.Column("handed_over", sa.Boolean, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
)

_COUNTED: Final = {"preserve_rowcount": True}  # else no insert on PostgreSQL says what it did


class SQLKeyStore:
    """Keeps records in one table of the database behind `engine`.

    Its calls work in threads, and a cancel does not stop what was begun there: the write may still
    be done. They raise `StoreDown`.
    """

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._insert = insert_into(engine, KEYS)
        self._now = clock_of(engine)
        make_tables(engine, KEYS)

    async def read(self, tenant: str, key: str) -> Seen:
        """The record as it is now."""
        clock = sa.select(self._now.label("now")).subquery()
        query = sa.select(clock.c.now, KEYS).select_from(clock.outerjoin(KEYS, _named(tenant, key)))
        ((now, *row),) = await self._asked(lambda connection: connection.execute(query).all())
        return Seen(_record(row) if row[0] is not None else None, now)

    async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
        """Write `new` if `old` is still what is kept, or if nothing is; whether it was written."""
        kept = _named(new.tenant, new.key)
        if old is None:  # no error where it is there: a database's log would quote the key
            return await self._written(self._insert.values(_row(new)).on_conflict_do_nothing()) == 1
        # A record that was forgotten and made anew may have the same version.
        same = (KEYS.c.version == old.version) & (KEYS.c.since == old.since)
        return await self._written(sa.update(KEYS).where(kept & same).values(_row(new))) == 1

    async def waiting(self, tenant: str) -> list[KeyRecord]:
        """Those that are handed over, the oldest first."""
        mine = (KEYS.c.tenant == tenant) & KEYS.c.handed_over
        query = sa.select(KEYS).where(mine).order_by(KEYS.c.until)
        rows = await self._asked(lambda connection: connection.execute(query).all())
        return [_record(row) for row in rows]

    async def forget(self) -> int:
        """Delete the final records that have expired, which may run anew; how many there were."""
        final = KEYS.c.state.in_([SUCCEEDED, FAILED]) & ~KEYS.c.handed_over
        return await self._written(sa.delete(KEYS).where(final & (KEYS.c.expires <= self._now)))

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    async def _written(self, change: sa.Insert | sa.Update | sa.Delete) -> int:
        """How many rows were written: none where the key is there already."""

        def write(connection: sa.Connection) -> int:
            return connection.execute(change, execution_options=_COUNTED).rowcount

        return await self._asked(write)

    async def _asked(self, work: Callable[[sa.Connection], Answer]) -> Answer:
        def ask() -> Answer:
            with self._engine.begin() as connection:
                return work(connection)

        try:
            return await asyncio.to_thread(ask)
        except SQLAlchemyError as error:
            cure = "nothing is half written: free it, make room or bring it back, then ask again"
            raise StoreDown(f"the key store failed ({told(error)}); {cure}") from None


def _named(tenant: str, key: str) -> sa.ColumnElement[bool]:
    return (KEYS.c.tenant == tenant) & (KEYS.c.key == key)


def _row(record: KeyRecord) -> dict[str, Any]:
    row = asdict(record)
    lease = row.pop("lease")
    return {**row, **lease}


def _record(row: Any) -> KeyRecord:
    kept = dict(zip(KEYS.c.keys(), row, strict=True))
    lease = Lease(**{name: kept.pop(name) for name in ("owner", "fence", "until", "length")})
    return KeyRecord(**kept, lease=lease)
