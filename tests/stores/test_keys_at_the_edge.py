"""Key stores at the edge: the very second of an end, and a table that two make at once."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from labkit.recovery.idempotency import SUCCEEDED
from labkit.stores import open_key_store
from labkit.stores.memory import MemoryKeyStore
from labkit.stores.sql_keys import KEYS, SQLKeyStore
from tests.services.processes import until

from .postgres import new_schema
from .test_keys import Store, kept, record


def stopped(kind: str, folder: Path) -> Store:
    """A store whose clock says 100."""
    if kind == "memory":
        return MemoryKeyStore(lambda: 100.0)
    keys = open_key_store(f"sqlite:///{folder / 'keys.db'}")
    assert isinstance(keys, SQLKeyStore)
    keys._now = sa.literal_column("100.0", sa.Double)
    return keys


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize(("expires", "gone"), [(99.0, 1), (100.0, 1), (101.0, 0)])
def test_a_record_is_forgotten_from_the_very_second_of_its_end(
    kind: str, expires: float, gone: int, tmp_path: Path
) -> None:
    async def program() -> None:
        with closing(stopped(kind, tmp_path)) as keys:
            await kept(keys, record(state=SUCCEEDED, expires=expires))
            assert await keys.forget() == gone

    asyncio.run(program())


WAITS = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"


@pytest.mark.socket
def test_a_table_that_another_process_makes_at_the_same_moment_is_taken_as_it_is(
    postgresql: str,
) -> None:
    url = new_schema(postgresql)
    engine = sa.create_engine(url)

    async def program() -> None:
        with engine.begin() as other, engine.connect() as looking:
            looking.execution_options(isolation_level="AUTOCOMMIT")  # else it sees no change
            other.execute(sa.schema.CreateTable(KEYS))
            opening = asyncio.create_task(asyncio.to_thread(open_key_store, url))
            await until(lambda: opening.done() or looking.exec_driver_sql(WAITS).scalar())
            other.commit()
            with closing(await opening) as keys:
                new = await kept(keys, record())
                assert (await keys.read(new.tenant, new.key)).record == new

    try:
        asyncio.run(program())
    finally:
        engine.dispose()
