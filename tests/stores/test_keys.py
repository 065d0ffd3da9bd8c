"""The contract of a key store, and the executor over each: one key, one effect."""

from __future__ import annotations

import asyncio
import math
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery import outcomes, service
from labkit.recovery.attempts import ExecutionPolicy
from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.errors import ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import (
    FAILED,
    PENDING,
    SUCCEEDED,
    UNKNOWN,
    KeyRecord,
    Operation,
    claimed,
    ended,
    resolved,
)
from labkit.recovery.lease import Lease
from labkit.recovery.outcomes import Outcome
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.service import Known, Request
from labkit.stores import StoreDown, open_key_store
from labkit.stores.memory import MemoryKeyStore
from labkit.stores.sql_keys import KEYS, SQLKeyStore
from tests.services.processes import until
from tests.simulation.kit import virtually

from .conftest import KINDS

Store = MemoryKeyStore | SQLKeyStore
SQL = KINDS[1:]
every_store = pytest.mark.parametrize("url", KINDS, indirect=True)
every_database = pytest.mark.parametrize("url", SQL, indirect=True)


@pytest.fixture
def keys(url: str) -> Iterator[Store]:
    """An empty store."""
    store = open_key_store(url)
    yield store
    store.close()


async def later(keys: Store, seconds: float) -> None:
    """As if so many seconds had passed: what is kept moves back, since the clock is the store's."""
    if isinstance(keys, MemoryKeyStore):
        for at, kept in keys.kept.items():
            lease = replace(kept.lease, until=kept.lease.until - seconds)
            keys.kept[at] = replace(kept, lease=lease, expires=kept.expires - seconds)
        return
    back = {"until": KEYS.c.until - seconds, "expires": KEYS.c.expires - seconds}
    with keys._engine.begin() as connection:
        await asyncio.to_thread(connection.execute, sa.update(KEYS).values(back))


def record(now: float = 0.0, **fields: Any) -> KeyRecord:
    """A record of a claim that has just been made."""
    lease = Lease("worker-1", 1, now + 10, 10.0)
    plain = {"tenant": "acme", "key": "acme/charge/order-7", "fingerprint": "f", "state": PENDING}
    return KeyRecord(**{**plain, "lease": lease, "since": now, **fields})


async def kept(keys: Store, new: KeyRecord) -> KeyRecord:
    """The record, once it is in the store."""
    assert await keys.swap(None, new)
    return new


def run(program: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(program, 60))


# --- the contract


@every_store
def test_a_key_that_is_not_kept_is_none_and_the_time_is_told_all_the_same(keys: Store) -> None:
    async def program() -> None:
        before = time.time()
        seen = await keys.read("acme", "k")
        assert seen.record is None
        assert before - 1 < seen.now < time.time() + 1

    run(program())


@every_store
@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud83d", "квитанция 🙂", "\u2028\r\n", '"\\u0000"', "x" * 100_000],
    ids=["nothing", "NUL", "half a pair", "letters", "line ends", "an escape", "a lot"],
)
def test_a_record_comes_back_as_it_was_written_with_text_of_any_kind(
    keys: Store, text: str
) -> None:
    new = record(1e9 + 0.123456, result=text, expires=2e9 + 0.25, handed_over=True, version=7)
    new = replace(new, lease=replace(new.lease, owner=text, fence=3), state=UNKNOWN)

    async def program() -> None:
        await kept(keys, new)
        assert (await keys.read(new.tenant, new.key)).record == new

    run(program())


@every_store
@pytest.mark.parametrize(
    "text",
    ["", "\0", "\ud83d", "%", "'; --", "é", "É"],
    ids=["nothing", "NUL", "half a pair", "a wildcard", "a quote", "lower", "upper"],
)
def test_keys_and_tenants_of_any_text_are_told_apart(keys: Store, text: str) -> None:
    mine = [record(tenant=text), record(key=text), record(tenant=text, key=text), record()]

    async def program() -> None:
        for new in mine:
            await kept(keys, new)
        for new in mine:
            assert (await keys.read(new.tenant, new.key)).record == new

    run(program())


@every_store
def test_the_longest_key_that_there_may_be_is_kept(keys: Store) -> None:
    draw = Random(0)
    long = record(key="".join(chr(draw.randrange(0x1F000, 0x2FFFF)) for _ in range(255)))

    async def program() -> None:
        await kept(keys, long)
        assert (await keys.read(long.tenant, long.key)).record == long

    run(program())


@every_store
def test_a_key_is_inserted_once_whatever_its_second_owner_wants(keys: Store) -> None:
    async def program() -> None:
        first = await kept(keys, record())
        assert not await keys.swap(None, record(lease=Lease("worker-2", 1, 99.0, 10.0)))
        assert (await keys.read(first.tenant, first.key)).record == first

    run(program())


@every_store
def test_who_writes_over_an_old_version_is_refused(keys: Store) -> None:
    async def program() -> None:
        first = await kept(keys, record())
        second = replace(first, result="second", version=2)
        assert await keys.swap(first, second)
        assert not await keys.swap(first, replace(first, result="late", version=2))
        assert (await keys.read(first.tenant, first.key)).record == second

    run(program())


@every_store
def test_who_has_seen_a_record_that_was_forgotten_and_made_anew_is_refused(keys: Store) -> None:
    async def program() -> None:
        now = (await keys.read("acme", "k")).now
        old = await kept(keys, record(now - 50.0, state=SUCCEEDED, expires=now - 1.0))
        assert await keys.forget() == 1
        anew = await kept(keys, record(now))
        assert anew.version == old.version
        assert not await keys.swap(old, replace(old, state=PENDING, version=old.version + 1))
        assert (await keys.read(anew.tenant, anew.key)).record == anew

    run(program())


@every_store
def test_what_is_not_kept_any_more_is_not_written_over(keys: Store) -> None:
    async def program() -> None:
        assert not await keys.swap(record(), record(version=2))
        assert (await keys.read("acme", record().key)).record is None

    run(program())


@every_store
def test_the_same_key_of_another_tenant_is_another_key(keys: Store) -> None:
    async def program() -> None:
        ours = await kept(keys, record())
        theirs = await kept(keys, record(tenant="other"))
        changed = replace(theirs, state=SUCCEEDED, version=2)
        assert await keys.swap(theirs, changed)
        assert (await keys.read("acme", ours.key)).record == ours
        assert (await keys.read("other", ours.key)).record == changed

    run(program())


@every_store
def test_those_that_wait_for_a_person_are_listed_for_their_tenant_the_oldest_first(
    keys: Store,
) -> None:
    async def program() -> None:
        for name, at, fields in (
            ("b", 30.0, {"handed_over": True}),
            ("a", 40.0, {"handed_over": True}),
            ("c", 20.0, {"handed_over": True}),
            ("d", 10.0, {}),
            ("e", 10.0, {"handed_over": True, "tenant": "other"}),
        ):
            lease = Lease("worker-1", 1, at, 10.0)
            await kept(keys, record(key=name, state=UNKNOWN, lease=lease, **fields))
        assert [found.key for found in await keys.waiting("acme")] == ["c", "b", "a"]
        assert await keys.waiting("nobody") == []

    run(program())


@every_store
def test_only_final_records_that_have_expired_are_forgotten(keys: Store) -> None:
    async def program() -> None:
        now = (await keys.read("acme", "")).now
        kinds: dict[str, dict[str, Any]] = {
            "done and old": {"state": SUCCEEDED},
            "failed and old": {"state": FAILED},
            "done": {"state": SUCCEEDED, "expires": now + 60},
            "pending": {"lease": Lease("worker-1", 1, now - 60, 10.0)},
            "unknown": {"state": UNKNOWN},
            "for a person": {"state": UNKNOWN, "handed_over": True},
            "failed, for a person": {"state": FAILED, "handed_over": True},
        }
        for name, fields in kinds.items():
            await kept(keys, record(key=name, **{"expires": now - 60, **fields}))
        assert (await keys.forget(), await keys.forget()) == (2, 0)
        gone = [(await keys.read("acme", name)).record for name in ("done and old", "done")]
        assert gone[0] is None
        assert gone[1] is not None
        await later(keys, 120)
        assert await keys.forget() == 1
        left = ["failed, for a person", "for a person", "pending", "unknown"]
        assert all([(await keys.read("acme", name)).record for name in left])

    run(program())


@every_store
def test_of_many_who_write_at_once_one_wins(keys: Store) -> None:
    def mine(number: int, version: int) -> KeyRecord:
        return record(lease=Lease(f"worker-{number}", version, 0.0, 10.0), version=version)

    async def program() -> None:
        seen: KeyRecord | None = None
        for version in range(1, 6):
            writes = (keys.swap(seen, mine(number, version)) for number in range(40))
            won = await asyncio.gather(*writes)
            seen = (await keys.read("acme", record().key)).record
            assert [mine(n, version) for n, one in enumerate(won) if one] == [seen]

    run(program())


# --- databases


@every_database
def test_records_outlive_their_store(url: str, keys: Store) -> None:
    async def program() -> None:
        first = await kept(keys, record(result="receipt 7"))
        again = open_key_store(url)
        assert (await again.read(first.tenant, first.key)).record == first
        again.close()

    run(program())


@every_database
def test_the_time_is_the_databases_and_never_the_workers(
    keys: SQLKeyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def program() -> None:
        before = time.time()
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert before - 1 < (await keys.read("acme", "k")).now < before + 60
        await kept(keys, record(state=SUCCEEDED, expires=before - 60))
        assert (await keys.read("acme", record().key)).now > before - 1
        assert await keys.forget() == 1

    run(program())


@every_database
def test_time_goes_on_between_two_looks(keys: SQLKeyStore) -> None:
    async def program() -> None:
        first = (await keys.read("acme", "k")).now
        end = time.monotonic() + 5
        while (await keys.read("acme", "k")).now <= first:
            assert time.monotonic() < end

    run(program())


@every_database
def test_programs_that_open_a_new_database_at_once_all_find_its_table(url: str) -> None:
    def opened(_: int) -> None:
        open_key_store(url).close()

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(opened, range(8))) == [None] * 8


@every_database
def test_a_refused_insert_leaves_its_connection_as_good_as_new(keys: SQLKeyStore) -> None:
    async def program() -> None:
        first = await kept(keys, record())
        for _ in range(20):
            assert not await keys.swap(None, first)
        assert keys._engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        assert await keys.swap(first, replace(first, version=2))

    run(program())


@every_database
def test_a_program_that_is_stopped_after_a_write_holds_no_lock(keys: SQLKeyStore) -> None:
    async def program() -> None:
        first = await kept(keys, record())
        with keys._engine.connect() as stopped:
            stopped.execute(sa.update(KEYS).values(result="written"))
            second = replace(first, result="quicker", version=2)
            assert await asyncio.wait_for(keys.swap(first, second), 20)

    run(program())


def holding(file: Path) -> sqlite3.Connection:
    """Another writer in the middle of its work."""
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    return other


def test_a_writer_waits_for_its_turn_while_the_loop_goes_on(tmp_path: Path) -> None:
    async def program() -> None:
        keys = open_key_store(f"sqlite:///{tmp_path / 'keys.db'}")
        other = holding(tmp_path / "keys.db")
        writing = asyncio.create_task(keys.swap(None, record()))
        await until(keys._engine.pool.checkedout)
        assert (await keys.read("acme", "k")).record is None  # who reads does not wait
        assert not writing.done()
        other.execute("ROLLBACK")
        assert await writing
        other.close()
        keys.close()

    run(program())


def impatient(file: Path) -> SQLKeyStore:
    return SQLKeyStore(
        sa.create_engine(
            f"sqlite:///{file}", connect_args={"timeout": 0.01}, isolation_level="AUTOCOMMIT"
        )
    )


def test_a_database_that_stays_locked_is_told_by_name_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    async def program() -> None:
        keys = impatient(tmp_path / "keys.db")
        other = holding(tmp_path / "keys.db")
        with pytest.raises(StoreDown, match=r"locked.*ask again") as caught:
            await keys.swap(None, record())
        assert "order-7" not in str(caught.value)
        other.execute("ROLLBACK")
        other.close()
        assert (await keys.read("acme", record().key)).record is None
        assert await keys.swap(None, record())
        keys.close()

    run(program())


def test_a_full_disk_is_told_by_name_and_what_was_kept_is_whole(tmp_path: Path) -> None:
    async def program() -> None:
        keys = impatient(tmp_path / "keys.db")
        first = await kept(keys, record())
        sa.event.listen(keys._engine, "begin", _leave_no_room)
        with pytest.raises(StoreDown, match=r"full.*make room"):
            await keys.swap(first, replace(first, result="x" * 1_000_000, version=2))
        sa.event.remove(keys._engine, "begin", _leave_no_room)
        assert (await keys.read(first.tenant, first.key)).record == first
        keys.close()

    run(program())


def _leave_no_room(connection: sa.Connection) -> None:
    connection.exec_driver_sql("PRAGMA max_page_count = 1")


@every_database
def test_a_table_that_is_gone_is_told_by_name(keys: SQLKeyStore) -> None:
    async def program() -> None:
        await kept(keys, record())
        with keys._engine.begin() as connection:
            KEYS.drop(connection)
        for asked in (
            keys.read("acme", "k"),
            keys.swap(None, record()),
            keys.swap(record(), record(version=2)),
            keys.waiting("acme"),
            keys.forget(),
        ):
            with pytest.raises(StoreDown, match="idempotency_keys") as caught:
                await asked
            assert caught.value.__suppress_context__

    run(program())


@pytest.mark.parametrize("url", SQL[1:], indirect=True)
def test_a_connection_that_breaks_in_a_write_is_told_and_the_next_call_has_a_new_one(
    url: str, keys: SQLKeyStore
) -> None:
    waiting = "wait_event_type = 'Lock' AND starts_with(query, 'UPDATE idempotency_keys')"
    waits = f"SELECT pid FROM pg_stat_activity WHERE {waiting}"

    async def program() -> None:
        first = await kept(keys, record())
        other = sa.create_engine(url, isolation_level="AUTOCOMMIT")
        with other.connect() as watcher, other.connect() as holder:
            holder.execution_options(isolation_level="READ COMMITTED")
            holder.execute(sa.update(KEYS).values(result="never committed"))
            writing = asyncio.create_task(keys.swap(first, replace(first, version=2)))
            await until(lambda: watcher.exec_driver_sql(waits).scalar())
            watcher.exec_driver_sql(waits.replace("pid", "pg_terminate_backend(pid)", 1))
            with pytest.raises(StoreDown, match="ask again"):
                await writing
            holder.rollback()
        other.dispose()
        assert (await keys.read(first.tenant, first.key)).record == first
        assert await keys.swap(first, replace(first, version=2))

    run(program())


# --- the executor over each store

ORDER = Operation(tenant="acme", name="charge", resource="order-7", payload={"amount": 5})
POLICY = ExecutionPolicy(
    retry=RetryPolicy(retry_on=frozenset({"timeout"}), attempts=3, first_wait=0.0),
    look_up_wait=0.001,
    lease=10.0,
    ttl=100.0,
)
Step = Callable[[Request], Coroutine[Any, Any, str]]


@dataclass
class Desk:
    """A service in this process: `steps` are what its tries do, `known` what it says of them."""

    steps: list[Any] = field(default_factory=list)
    known: list[Any] = field(default_factory=list)
    atomic: bool = False
    cancels: bool = False
    remembers: float = math.inf
    effects: list[str] = field(default_factory=list)
    asked: int = 0

    async def perform(self, request: Request) -> str:
        """The next step: "done", "lost" (its answer), "dropped", "refused", or a function."""
        step = self.steps.pop(0) if self.steps else "done"
        if callable(step):
            await step()
        if step == "refused":
            raise ProviderError("no connection", kind="connect")
        if step != "dropped":
            self.effects.append(request.key)
        if step in ("dropped", "lost"):
            raise ProviderError("no answer", kind="timeout")
        return f"receipt {len(self.effects)}"

    async def look_up(self, request: Request) -> Known:
        """What was said it would say; then what is so, where nothing was said."""
        self.asked += 1
        said = self.known.pop(0) if len(self.known) > 1 else [*self.known, "honest"][0]
        if said == "down":
            raise ProviderError("the look-up is down", kind="server")
        if said == "honest":
            count = len(self.effects)
            return Known(service.DONE, f"receipt {count}") if count else Known(service.NOT_DONE)
        return Known(said)

    async def call_off(self, request: Request) -> Known:
        """It cannot."""
        raise AssertionError


def executor(keys: Store, owner: str = "worker-1", **policy: Any) -> Executor:
    return Executor(keys, owner=owner, policy=replace(POLICY, **policy), random=Random(0))


async def execute(keys: Store, desk: Desk, owner: str = "worker-1", **policy: Any) -> Outcome:
    """One call, by an executor of its own."""
    budget = Budget(BudgetLimits(), clock=asyncio.get_running_loop().time)
    return await executor(keys, owner, **policy).execute(ORDER, desk, budget, tenant="acme")


async def crashed_executor(keys: Store) -> None:
    """One that has claimed the key, and that nobody hears of again."""
    mine = claimed(None, ORDER, "crashed", now=(await keys.read("acme", "")).now, length=10.0)
    assert mine is not None
    await kept(keys, mine)


@dataclass
class World:
    """A store and its time: virtual in memory, and stored times that are moved in a database."""

    keys: Store
    run: Callable[[Coroutine[Any, Any, None]], None]
    later: Callable[[float], Coroutine[Any, Any, None]]


@pytest.fixture
def world(url: str, keys: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    """The store with its time."""
    if url == "memory:":
        virtual = MemoryKeyStore(lambda: asyncio.get_running_loop().time())
        return World(virtual, virtually, asyncio.sleep)
    # Renewals that do not have to be waited for.
    monkeypatch.setattr("labkit.recovery.claims.SHARE", 1000)

    async def passes(seconds: float) -> None:
        """In steps that a claim outlives if it is renewed between them."""
        whole, rest = divmod(seconds, 5)
        for step in [5.0] * int(whole) + [rest]:
            await later(keys, step)
            await _renewed(keys)

    return World(keys, run, passes)


async def _renewed(keys: Store) -> None:
    """Give whoever is alive the time for a renewal; who is not renews nothing."""
    alive = any(task.get_name().startswith("renew") for task in asyncio.all_tasks())
    while alive:
        seen, now = await keys.read("acme", ORDER.sent)
        assert seen is not None
        if seen.lease.until > now + 5.5:
            return
        await asyncio.sleep(0.002)


@every_store
def test_case_57a_a_retry_soon_after_a_crash_is_told_that_it_is_in_progress(world: World) -> None:
    async def program() -> None:
        desk = Desk()
        await crashed_executor(world.keys)
        await world.later(1)
        outcome = await execute(world.keys, desk)
        assert (outcome.status, desk.effects) == (outcomes.DEDUPLICATED, [])
        assert outcome.how.startswith("in_progress")

    world.run(program())


@every_store
@pytest.mark.parametrize(
    ("known", "status", "effects"),
    [
        ([service.DONE], outcomes.RECONCILED, 0),
        ([service.NOT_DONE], outcomes.SUCCEEDED, 1),
        ([service.IN_FLIGHT], outcomes.UNKNOWN, 0),
        (["down"], outcomes.MANUAL, 0),
    ],
)
def test_case_57b_after_the_lease_the_service_is_asked_before_anything_is_done_again(
    world: World, known: list[str], status: str, effects: int
) -> None:
    async def program() -> None:
        desk = Desk(known=known)
        await crashed_executor(world.keys)
        await world.later(11)
        outcome = await execute(world.keys, desk)
        assert (outcome.status, len(desk.effects)) == (status, effects)
        assert desk.asked >= 1

    world.run(program())


@every_store
def test_case_57c_a_slow_call_that_lives_is_executed_once(world: World) -> None:
    async def program() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow() -> None:
            begun.set()
            await may_end.wait()

        desk = Desk(steps=[slow])
        policy = {"limit": 90.0}
        slow_one = asyncio.create_task(execute(world.keys, desk, "slow", **policy))
        await begun.wait()
        await world.later(50)
        second = await execute(world.keys, desk, "quick")
        assert second.how.startswith("in_progress")
        may_end.set()
        assert (await slow_one).status == outcomes.SUCCEEDED
        assert len(desk.effects) == 1
        assert (await execute(world.keys, desk, "quick")).status == outcomes.REUSED

    world.run(program())


@every_store
def test_case_57d_what_failed_before_its_effect_may_be_executed_again(world: World) -> None:
    async def program() -> None:
        desk = Desk(steps=["refused"])
        assert (await execute(world.keys, desk)).status == outcomes.FAILED
        await world.later(1)
        assert (await execute(world.keys, desk, "worker-2")).status == outcomes.SUCCEEDED
        assert len(desk.effects) == 1
        assert desk.asked == 0

    world.run(program())


@every_store
def test_case_57e_what_failed_after_its_effect_is_not_executed_again(world: World) -> None:
    async def program() -> None:
        desk = Desk(steps=["lost"], known=[service.IN_FLIGHT])
        assert (await execute(world.keys, desk)).status == outcomes.UNKNOWN
        await world.later(1)
        assert (await execute(world.keys, desk, "worker-2")).status == outcomes.UNKNOWN
        assert len(desk.effects) == 1

    world.run(program())


@every_store
@pytest.mark.parametrize("forgotten", [False, True])
def test_case_57f_a_result_is_given_again_until_it_expires_and_then_it_runs_anew(
    world: World, forgotten: bool
) -> None:
    async def program() -> None:
        desk = Desk()
        first = await execute(world.keys, desk)
        await world.later(98)
        again = await execute(world.keys, desk, "worker-2")
        assert (again.status, again.result) == (outcomes.REUSED, first.result)
        await world.later(3)
        if forgotten:
            assert await world.keys.forget() == 1
        anew = await execute(world.keys, desk, "worker-2")
        assert (anew.status, len(desk.effects)) == (outcomes.SUCCEEDED, 2)

    world.run(program())


@every_store
@pytest.mark.parametrize(
    ("step", "known", "status", "tries", "sends"),
    [
        ("lost", [], outcomes.RECONCILED, 1, 1),
        ("dropped", [], outcomes.SUCCEEDED, 2, 1),
        ("lost", ["down"], outcomes.MANUAL, 1, 1),
        ("refused", [], outcomes.FAILED, 1, 0),
        ("lost", [service.IN_FLIGHT, service.IN_FLIGHT, "honest"], outcomes.RECONCILED, 1, 1),
    ],
    ids=["reply_lost", "request_lost", "lookup_down", "refused", "eventual"],
)
def test_case_58_what_is_not_known_is_asked_and_never_sent_again_blindly(
    world: World, step: str, known: list[str], status: str, tries: int, sends: int
) -> None:
    async def program() -> None:
        desk = Desk(steps=[step], known=known)
        outcome = await execute(world.keys, desk)
        assert (outcome.status, len(outcome.attempts)) == (status, tries)
        assert len(desk.effects) == sends
        seen, _ = await world.keys.read("acme", ORDER.sent)
        assert seen is not None
        assert seen.handed_over == (status == outcomes.MANUAL)
        await world.later(50)
        again = await execute(world.keys, desk, "worker-2")
        assert len(desk.effects) == 1
        if status != outcomes.FAILED:
            assert again.status == (status if seen.handed_over else outcomes.REUSED)

    world.run(program())


@every_store
@pytest.mark.parametrize("happened", [True, False])
def test_what_a_person_found_out_is_the_answer_from_then_on(world: World, happened: bool) -> None:
    async def program() -> None:
        keys = world.keys
        desk = Desk(steps=["lost"], known=["down"])
        await execute(keys, desk)
        await world.later(200)
        assert await keys.forget() == 0
        (waiting,) = await keys.waiting("acme")
        now = (await keys.read("acme", "")).now
        told = resolved(waiting, happened, "receipt 1", now=now, ttl=100.0)
        assert await keys.swap(waiting, told)
        assert not await keys.swap(waiting, told)  # of two persons one is quicker
        assert await keys.waiting("acme") == []
        outcome = await execute(keys, desk, "worker-2")
        expected = outcomes.REUSED if happened else outcomes.SUCCEEDED
        assert (outcome.status, len(desk.effects)) == (expected, 1 if happened else 2)

    world.run(program())


@every_store
def test_200_tasks_on_one_key_have_one_effect(keys: Store) -> None:
    async def program() -> None:
        answered, all_answered = 0, asyncio.Event()
        desk = Desk(steps=[all_answered.wait])

        async def one(number: int) -> str:
            nonlocal answered
            outcome = await execute(keys, desk, f"worker-{number}")
            answered += 1
            if answered == 199:
                all_answered.set()
            return outcome.status

        told = await asyncio.gather(*map(one, range(200)))
        assert sorted(told) == [outcomes.DEDUPLICATED] * 199 + [outcomes.SUCCEEDED]
        assert desk.effects == [ORDER.sent]
        assert (await execute(keys, desk)).status == outcomes.REUSED

    run(program())


@every_store
def test_a_claim_that_was_taken_over_meanwhile_keeps_the_newer_ones_result(keys: Store) -> None:
    async def program() -> None:
        await crashed_executor(keys)
        old, now = await keys.read("acme", ORDER.sent)
        assert old is not None
        await later(keys, 11)
        desk = Desk(known=[service.NOT_DONE])
        assert (await execute(keys, desk)).status == outcomes.SUCCEEDED
        late = ended(old, SUCCEEDED, "late", now=now, ttl=100.0)
        assert not await keys.swap(old, late)
        seen, _ = await keys.read("acme", ORDER.sent)
        assert seen is not None
        assert (seen.result, seen.lease.fence) == ("receipt 1", 2)

    run(program())


# --- a store that does not compare


class MeetingKeyStore(SQLKeyStore):
    """The store as it is, in which two meet before they claim a key that nobody holds."""

    meet: asyncio.Barrier

    async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
        seen, _ = await self.read(new.tenant, new.key)
        if old is None or old.lease.owner != new.lease.owner:
            await self.meet.wait()
        return await self.write(seen, old, new)

    async def write(self, seen: KeyRecord | None, old: KeyRecord | None, new: KeyRecord) -> bool:
        return await super().swap(old, new)


class NaiveKeyStore(MeetingKeyStore):
    """Compares with what it has read, and then writes over whatever is there."""

    async def write(self, seen: KeyRecord | None, old: KeyRecord | None, new: KeyRecord) -> bool:
        if seen != old:
            return False
        while not await SQLKeyStore.swap(self, seen, new):
            seen, _ = await self.read(new.tenant, new.key)
        return True


@pytest.mark.parametrize(
    ("kind", "effects"), [(NaiveKeyStore, 2), (MeetingKeyStore, 1)], ids=["naive", "as it is"]
)
@pytest.mark.parametrize("dead", [False, True], ids=["a new key", "a dead executor's"])
@every_database
def test_a_store_that_looks_and_then_writes_lets_two_have_the_effect(
    keys: SQLKeyStore, dead: bool, kind: type[MeetingKeyStore], effects: int
) -> None:
    async def program() -> None:
        store = kind(keys._engine)
        store.meet = asyncio.Barrier(2)
        desk = Desk(known=[service.NOT_DONE])
        if dead:
            await crashed_executor(keys)
            await later(keys, 11)
        told = await asyncio.gather(
            execute(store, desk, "worker-1"), execute(store, desk, "worker-2")
        )
        assert len(desk.effects) == effects
        assert [outcome.status for outcome in told].count(outcomes.SUCCEEDED) == effects

    run(program())
