"""What the tables of all stores have in common.

make_tables(engine, RUNS, CHUNKS)
now = clock_of(engine)                     # an expression: seconds by the database's clock
"""

import json
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

# Seconds since 1970 by the database's clock, of this moment and not of a transaction's beginning.
_CLOCK: Final = {
    "sqlite": "(julianday('now') - 2440587.5) * 86400.0",  # any SQLite has it, to the millisecond
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) AS double precision)",
}


class AsJSON(sa.TypeDecorator[Any]):
    """Any plain value, and any text: a database may refuse NUL or half a pair. None is NULL."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else json.dumps(value, allow_nan=False)

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> Any:
        return None if value is None else json.loads(value)


def clock_of(engine: sa.Engine) -> sa.ColumnElement[float]:
    """The database's time."""
    return sa.literal_column(_CLOCK[engine.dialect.name], sa.Double)


def insert_into(engine: sa.Engine, table: sa.Table) -> Any:
    """An insert that has `on_conflict_do_nothing`."""
    return (sqlite if engine.dialect.name == "sqlite" else postgresql).insert(table)


def make_tables(engine: sa.Engine, *tables: sa.Table) -> None:
    """Make each that is not there; another process may make the same one at this moment."""
    for table in tables:
        try:
            with engine.begin() as connection:
                connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    connection.execute(sa.schema.CreateIndex(index, if_not_exists=True))
        except DBAPIError:  # PostgreSQL says in several ways that another was quicker
            if not sa.inspect(engine).has_table(table.name):
                raise
