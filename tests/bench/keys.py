"""How many operations a second go through a key store, and what a storm of kills leaves behind."""

import asyncio
import math
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import sqlalchemy as sa

from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import Operation
from labkit.recovery.outcomes import REUSED, SUCCEEDED
from labkit.recovery.service import Known, Request
from labkit.stores import open_key_store
from labkit.stores.sql_keys import KEYS, SQLKeyStore
from tests.stores.hammer import POLICY, TENANT, budget
from tests.stores.hammer_ledger import ASKABLE, MUTE
from tests.stores.hammering import Hammering
from tests.stores.postgres import new_schema, serving

from .table import Measure, Row

OPERATIONS: Final = 200
REPEATS: Final = 5
LEASE: Final = 30.0  # long enough for no renewal to fall into the measure
BARE: Final = KEYS.to_metadata(sa.MetaData(), name="bare_inserts")


class Free:
    """A service that costs nothing."""

    atomic = True
    cancels = False
    remembers = math.inf

    async def perform(self, request: Request) -> str:
        """Do nothing."""
        return "receipt"

    async def look_up(self, request: Request) -> Known:
        """Never asked."""
        raise NotImplementedError

    call_off = look_up


def executing() -> Iterator[Row]:
    """New operations and repeats, beside the insert of such a row on the same connections."""
    for name, new_url in _databases():
        keys = open_key_store(new_url())
        assert isinstance(keys, SQLKeyStore)
        bare, new, again = asyncio.run(_measured(keys))
        keys.close()
        peer = "bare inserts"
        yield Row(what=f"operations on {name}", value=new, unit="/s", peer=peer, beside=bare)
        yield Row(what=f"repeats on {name}", value=again, unit="/s", peer=peer, beside=bare)


def hammering() -> Iterator[Row]:
    """Eight programs on the same keys, of which some are killed again and again."""
    for name, new_url in _databases():
        kills = duplicates = stuck = 0
        for service in (ASKABLE, MUTE):
            with tempfile.TemporaryDirectory() as folder:
                ledger = Path(folder, "ledger.db")
                storm = Hammering(new_url(), ledger, service, seed=1, keys=20, kills=3, anywhere=8)
                told = asyncio.run(storm.run())
            kills += told.killed.total()
            duplicates, stuck = duplicates + told.duplicates, stuck + len(told.stuck)
        yield Row(what=f"kills survived on {name}", value=kills, unit="", least=40)
        yield Row(what=f"duplicate effects on {name}", value=duplicates, unit="", most=0.5)
        yield Row(what=f"keys left stuck on {name}", value=stuck, unit="", most=0.5)


MEASURES: Final[tuple[Measure, ...]] = (executing, hammering)


def _databases() -> Iterator[tuple[str, Callable[[], str]]]:
    """Each kind with a function that gives the URL of an empty one."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()
        yield "SQLite", lambda: f"sqlite:///{Path(folder, f'{next(numbers)}.db')}"
    with serving() as url:
        yield "PostgreSQL", lambda: new_schema(url)


async def _measured(keys: SQLKeyStore) -> tuple[float, float, float]:
    """Bare inserts, new operations and repeats in a second: the best of several rounds."""
    policy = replace(POLICY, lease=LEASE)
    executor = Executor(keys, owner="bench", policy=policy, random=Random(0))
    BARE.create(keys._engine)

    async def execute(number: int, status: str) -> None:
        operation = Operation(tenant=TENANT, name="charge", resource=f"order-{number}")
        outcome = await executor.execute(operation, Free(), budget(), tenant=TENANT)
        if outcome.status != status:
            raise AssertionError(f"{outcome.status}: {outcome.how}")

    await execute(-1, SUCCEEDED)
    with keys._engine.begin() as connection:
        record = dict(connection.execute(sa.select(KEYS)).mappings().one())

    def insert(number: int) -> None:
        with keys._engine.begin() as connection:
            connection.execute(sa.insert(BARE).values({**record, "key": f"order-{number}"}))

    works: tuple[Callable[[int], Awaitable[None]], ...] = (
        lambda number: asyncio.to_thread(insert, number),
        lambda number: execute(number, SUCCEEDED),
        lambda number: execute(number, REUSED),
    )
    rounds = [range(n * OPERATIONS, (n + 1) * OPERATIONS) for n in range(REPEATS)]
    # Side by side in each round: what else the machine does hits them alike.
    speeds = [[await _speed(work, numbers) for work in works] for numbers in rounds]
    bare, new, again = map(max, zip(*speeds, strict=True))
    return bare, new, again


async def _speed(work: Callable[[int], Awaitable[None]], numbers: range) -> float:
    started = time.perf_counter()
    for number in numbers:
        await work(number)
    return len(numbers) / (time.perf_counter() - started)
