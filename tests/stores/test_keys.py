"""The contract of a key store, and the executor over each: one key, one effect."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery import outcomes
from labkit.recovery.errors import ProviderError
from labkit.recovery.idempotency import (
    FAILED,
    PENDING,
    SUCCEEDED,
    UNKNOWN,
    KeyRecord,
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
from tests.recovery import executing
from tests.recovery.executing import (
    CHARGE,
    DOWN,
    FOUND,
    NOT_THERE,
    NOT_YET,
    REFUSED,
    Shop,
    Step,
    Told,
    claim,
)
from tests.services.processes import until

from .conftest import KINDS
from .postgres import new_schema

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
        run(program())
    finally:
        engine.dispose()


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


# --- the executor over each database; that in memory is what tests/recovery and tests/cases have

QUICK = replace(
    executing.POLICY,
    retry=RetryPolicy(retry_on=frozenset({"timeout"}), attempts=3, first_wait=0.0),
    look_up_wait=0.001,
)
AT_ONCE: Any = {"seconds": 0.0, "effect": 0.0}
DONE = Step(**AT_ONCE)
LOST = Step(ProviderError("no answer", kind="timeout"), **AT_ONCE)
DROPPED = replace(LOST, effect=None)
NOT_CONNECTED = replace(REFUSED, seconds=0.0)


class Service(Told):
    """A service that takes no time; a request waits for `may_end` where there is one."""

    may_end: asyncio.Event | None = None

    async def perform(self, request: Request) -> str:
        """Wait, and do as the step says."""
        if self.may_end:
            await self.may_end.wait()
        return await super().perform(request)


def service(*steps: Step, known: Sequence[Known | Exception] = (NOT_THERE,)) -> Service:
    """What each request meets, the last step for ever, and what each look-up says."""
    return Service(steps or [DONE], known, look_up_takes=0.0)


async def execute(keys: Store, asked: Told, owner: str = "worker-1", **policy: Any) -> Outcome:
    """One call, by an executor of its own."""
    shop = Shop(replace(QUICK, **policy), keys)
    return await shop.execute(asked, by=shop.executor(owner))


async def crashed_executor(keys: Store) -> None:
    """One that has claimed the key, and that nobody hears of again."""
    await kept(keys, claim(now=(await keys.read("acme", "")).now))


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Renewals that do not have to be waited for."""
    monkeypatch.setattr("labkit.recovery.renewal.SHARE", 1000)
    monkeypatch.setattr("labkit.recovery.renewal.RUSH", 1000)


async def passes(keys: Store, seconds: float) -> None:
    """So much time, in steps that a claim outlives if it is renewed between them."""
    whole, rest = divmod(seconds, 5)
    for step in [5.0] * int(whole) + [rest]:
        await later(keys, step)
        await _renewed(keys)


async def _renewed(keys: Store) -> None:
    """Give whoever is alive the time for a renewal; who is not renews nothing."""
    alive = any(task.get_name().startswith("renew") for task in asyncio.all_tasks())
    while alive:
        seen, now = await keys.read("acme", CHARGE.sent)
        assert seen is not None
        if seen.lease.until > now + 5.5:
            return
        await asyncio.sleep(0.002)


@every_database
def test_case_57a_a_retry_soon_after_a_crash_is_told_that_it_is_in_progress(keys: Store) -> None:
    async def program() -> None:
        asked = service()
        await crashed_executor(keys)
        await passes(keys, 1)
        outcome = await execute(keys, asked)
        assert (outcome.status, asked.effects) == (outcomes.DEDUPLICATED, [])
        assert outcome.how.startswith("in_progress")

    run(program())


@every_database
@pytest.mark.parametrize(
    ("known", "status", "effects"),
    [
        (FOUND, outcomes.RECONCILED, 0),
        (NOT_THERE, outcomes.SUCCEEDED, 1),
        (NOT_YET, outcomes.UNKNOWN, 0),
        (DOWN, outcomes.MANUAL, 0),
    ],
    ids=["done", "not done", "in flight", "down"],
)
def test_case_57b_after_the_lease_the_service_is_asked_before_anything_is_done_again(
    keys: Store, known: Known | Exception, status: str, effects: int
) -> None:
    async def program() -> None:
        asked = service(known=[known])
        await crashed_executor(keys)
        await passes(keys, 11)
        outcome = await execute(keys, asked)
        assert (outcome.status, len(asked.effects)) == (status, effects)
        assert asked.asked

    run(program())


@every_database
@pytest.mark.usefixtures("often")
def test_case_57c_a_slow_call_that_lives_is_executed_once(keys: Store) -> None:
    async def program() -> None:
        asked = service()
        asked.may_end = asyncio.Event()
        slow_one = asyncio.create_task(execute(keys, asked, "slow", limit=90.0))
        await until(
            lambda: any(task.get_name().startswith("renew") for task in asyncio.all_tasks())
        )
        await passes(keys, 50)
        second = await execute(keys, asked, "quick")
        assert second.how.startswith("in_progress")
        asked.may_end.set()
        assert (await slow_one).status == outcomes.SUCCEEDED
        assert len(asked.effects) == 1
        assert (await execute(keys, asked, "quick")).status == outcomes.REUSED

    run(program())


@every_database
def test_case_57d_what_failed_before_its_effect_may_be_executed_again(keys: Store) -> None:
    async def program() -> None:
        asked = service(NOT_CONNECTED, DONE)
        assert (await execute(keys, asked)).status == outcomes.FAILED
        await passes(keys, 1)
        assert (await execute(keys, asked, "worker-2")).status == outcomes.SUCCEEDED
        assert (len(asked.effects), asked.asked) == (1, [])

    run(program())


@every_database
def test_case_57e_what_failed_after_its_effect_is_not_executed_again(keys: Store) -> None:
    async def program() -> None:
        asked = service(LOST, known=[NOT_YET])
        assert (await execute(keys, asked)).status == outcomes.UNKNOWN
        await passes(keys, 1)
        assert (await execute(keys, asked, "worker-2")).status == outcomes.UNKNOWN
        assert len(asked.effects) == 1

    run(program())


@every_database
@pytest.mark.parametrize("forgotten", [False, True])
def test_case_57f_a_result_is_given_again_until_it_expires_and_then_it_runs_anew(
    keys: Store, forgotten: bool
) -> None:
    async def program() -> None:
        asked = service()
        first = await execute(keys, asked)
        await passes(keys, 98)
        again = await execute(keys, asked, "worker-2")
        assert (again.status, again.result) == (outcomes.REUSED, first.result)
        await passes(keys, 3)
        if forgotten:
            assert await keys.forget() == 1
        anew = await execute(keys, asked, "worker-2")
        assert (anew.status, len(asked.effects)) == (outcomes.SUCCEEDED, 2)

    run(program())


@every_database
@pytest.mark.parametrize(
    ("steps", "known", "status", "tries", "again"),
    [
        ([LOST], [FOUND], outcomes.RECONCILED, 1, outcomes.REUSED),
        ([DROPPED, DONE], [NOT_THERE], outcomes.SUCCEEDED, 2, outcomes.REUSED),
        ([LOST], [DOWN], outcomes.MANUAL, 1, outcomes.MANUAL),
        ([NOT_CONNECTED, DONE], [], outcomes.FAILED, 1, outcomes.SUCCEEDED),
        ([LOST], [NOT_YET, NOT_YET, FOUND], outcomes.RECONCILED, 1, outcomes.REUSED),
    ],
    ids=["reply_lost", "request_lost", "lookup_down", "refused", "eventual"],
)
def test_case_58_what_is_not_known_is_asked_and_never_sent_again_blindly(
    keys: Store, steps: list[Step], known: list[Any], status: str, tries: int, again: str
) -> None:
    async def program() -> None:
        asked = service(*steps, known=known)
        outcome = await execute(keys, asked)
        assert (outcome.status, len(outcome.attempts)) == (status, tries)
        assert len(asked.effects) == (0 if status == outcomes.FAILED else 1)
        seen, _ = await keys.read("acme", CHARGE.sent)
        assert seen is not None
        assert seen.handed_over == (status == outcomes.MANUAL)
        await passes(keys, 50)
        assert (await execute(keys, asked, "worker-2")).status == again
        assert len(asked.effects) == 1

    run(program())


@every_database
@pytest.mark.parametrize("happened", [True, False])
def test_what_a_person_found_out_is_the_answer_from_then_on(keys: Store, happened: bool) -> None:
    async def program() -> None:
        asked = service(LOST, DONE, known=[DOWN])
        await execute(keys, asked)
        await passes(keys, 200)
        assert await keys.forget() == 0
        (waiting,) = await keys.waiting("acme")
        now = (await keys.read("acme", "")).now
        told = resolved(waiting, happened, "receipt 1", now=now, ttl=100.0)
        assert await keys.swap(waiting, told)
        assert not await keys.swap(waiting, told)  # of two persons one is quicker
        assert await keys.waiting("acme") == []
        outcome = await execute(keys, asked, "worker-2")
        expected = outcomes.REUSED if happened else outcomes.SUCCEEDED
        assert (outcome.status, len(asked.effects)) == (expected, 1 if happened else 2)

    run(program())


@every_database
def test_200_tasks_on_one_key_have_one_effect(keys: Store) -> None:
    async def program() -> None:
        answered, asked = 0, service()
        all_answered = asked.may_end = asyncio.Event()

        async def one(number: int) -> str:
            nonlocal answered
            outcome = await execute(keys, asked, f"worker-{number}")
            answered += 1
            if answered == 199:
                all_answered.set()
            return outcome.status

        told = await asyncio.gather(*map(one, range(200)))
        assert sorted(told) == [outcomes.DEDUPLICATED] * 199 + [outcomes.SUCCEEDED]
        assert len(asked.effects) == 1
        assert (await execute(keys, asked)).status == outcomes.REUSED

    run(program())


@every_database
def test_a_claim_that_was_taken_over_meanwhile_keeps_the_newer_ones_result(keys: Store) -> None:
    async def program() -> None:
        await crashed_executor(keys)
        old, now = await keys.read("acme", CHARGE.sent)
        assert old is not None
        await later(keys, 11)
        assert (await execute(keys, service())).status == outcomes.SUCCEEDED
        late = ended(old, SUCCEEDED, "late", now=now, ttl=100.0)
        assert not await keys.swap(old, late)
        seen, _ = await keys.read("acme", CHARGE.sent)
        assert seen is not None
        assert (seen.result, seen.lease.fence) == ("receipt", 2)

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
        asked = service()
        if dead:
            await crashed_executor(keys)
            await later(keys, 11)
        told = await asyncio.gather(
            execute(store, asked, "worker-1"), execute(store, asked, "worker-2")
        )
        assert len(asked.effects) == effects
        assert [outcome.status for outcome in told].count(outcomes.SUCCEEDED) == effects

    run(program())
