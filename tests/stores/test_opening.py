"""What a URL must be, and what an error about it never tells."""

import asyncio
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from labkit.stores import StoreDown, StoreError, open_key_store, open_stream_store, opening

from .postgres import new_schema

each_kind = pytest.mark.parametrize("opened", [open_stream_store, open_key_store])


@each_kind
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "Could not parse"),
        ("answers.db", "Could not parse"),
        ("mysql://localhost/x", "no store on mysql|No module named"),
        ("sqlite://", "no file"),
        ("sqlite:///:memory:", "no file"),
        ("sqlite:////nowhere/at/all/answers.db", "unable to open"),
        ("postgresql+psycopg://ann:hunter2@127.0.0.1:1/x?connect_timeout=2", "127.0.0.1"),
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_with_what_is_possible(
    url: str, told: str, opened: Callable[[str], Any]
) -> None:
    with pytest.raises(StoreError, match=told) as caught:
        opened(url)
    assert "sqlite:///FILE" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@each_kind
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    tmp_path: Path, opened: Callable[[str], Any]
) -> None:
    file = tmp_path / "answers.db"
    file.write_text("my notes, not a database " * 100)
    with pytest.raises(StoreError, match="not a database"):
        opened(f"sqlite:///{file}")
    assert file.read_text() == "my notes, not a database " * 100


# --- connections


@each_kind
def test_each_connection_to_sqlite_waits_for_its_turn_as_long_as_is_said(
    tmp_path: Path, opened: Callable[[str], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    with closing(opened(url)) as store, store._engine.connect() as connection:
        busy = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    assert busy == opening.BUSY * 1_000


@each_kind
def test_a_file_whose_readers_keep_it_from_its_other_journal_is_opened_all_the_same(
    tmp_path: Path, opened: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "answers.db"
    opened(f"sqlite:///{file}").close()
    monkeypatch.setattr(opening, "BUSY", 0.01)
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        assert reader.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        opened(f"sqlite:///{file}").close()
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        reader.execute("COMMIT")
    with closing(opened(f"sqlite:///{file}")) as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


@each_kind
def test_what_was_written_to_sqlite_is_on_the_disk(
    tmp_path: Path, opened: Callable[[str], Any]
) -> None:
    url = f"sqlite:///{tmp_path / 'answers.db'}"
    with closing(opened(url)) as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # full


END = "SELECT pg_terminate_backend(%s, 10000)"  # and waits for it, so many milliseconds


@pytest.mark.socket
def test_a_connection_that_the_server_has_ended_meanwhile_is_made_anew(postgresql: str) -> None:
    url = new_schema(postgresql)
    engine = sa.create_engine(url)
    with closing(open_key_store(url)) as keys, engine.connect() as other:
        with keys._engine.connect() as pooled:
            ended = pooled.exec_driver_sql("SELECT pg_backend_pid()").scalar()
        assert other.exec_driver_sql(END, (ended,)).scalar() is True
        assert asyncio.run(keys.read("acme", "k")).record is None
    engine.dispose()


# --- a server that says nothing any more


class Way:
    """The way to a server, on a port of its own; it can forget the flows that go through it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.silent = False
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                near, _ = self._door.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._path)
                self._ends += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if not self.silent:
                    target.sendall(data)

    def close(self) -> None:
        """End all that goes through it."""
        for end in (self._door, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def way(postgresql: str) -> Iterator[Way]:
    """A way to the server of the tests."""
    host = sa.make_url(postgresql).query["host"]
    with closing(Way(f"{host}/.s.PGSQL.5432")) as made:
        yield made


def through(way: Way, url: str) -> str:
    """The URL that goes this way."""
    query = {name: told for name, told in sa.make_url(url).query.items() if name != "host"}
    new = sa.make_url(url).set(host="127.0.0.1", port=way.port, query=query)
    return new.render_as_string(hide_password=False)


@pytest.mark.socket
def test_a_call_to_a_server_that_has_gone_silent_ends(
    postgresql: str, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "SILENCE", 0.5)
    url = f"{through(way, new_schema(postgresql))}&connect_timeout=2"
    with closing(open_key_store(url)) as keys:
        assert asyncio.run(keys.read("acme", "k")).record is None
        way.silent = True
        began, end = time.monotonic(), threading.Timer(8, way.close)  # else it would hang for ever
        end.start()
        with pytest.raises(StoreDown):
            asyncio.run(keys.read("acme", "k"))
        end.cancel()
        assert time.monotonic() - began < 7
        way.silent = False
        assert asyncio.run(keys.read("acme", "k")).record is None


@pytest.mark.socket
def test_the_network_is_asked_to_notice_a_host_that_is_gone(postgresql: str, way: Way) -> None:
    url = through(way, new_schema(postgresql))
    for more, wanted in (("", 5), ("&connect_timeout=7", 7)):
        with closing(open_key_store(url + more)) as keys, keys._engine.connect() as connection:
            driver: Any = connection.connection.driver_connection
            options = driver.info.get_parameters()
        expected = {**opening.GONE, "connect_timeout": wanted}
        assert {name: int(options[name]) for name in expected} == expected
    beats = opening.GONE["keepalives_idle"]
    beats += opening.GONE["keepalives_interval"] * opening.GONE["keepalives_count"]
    assert beats * 1000 == opening.GONE["tcp_user_timeout"]


@pytest.mark.parametrize("answered", [True, False])
def test_an_answer_that_is_there_counts_however_late_it_is_looked_at(
    answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process may have stood still: that is no silence of the server."""
    closed, times = [], iter([0.0, 1e6])
    monkeypatch.setattr(opening, "monotonic", lambda: next(times))

    def asks() -> Generator[str, bool, bool]:
        return (yield "wants to read")

    connection = SimpleNamespace(close=lambda: closed.append("closed"))
    work = opening._connection()._ended(connection, asks())
    assert next(work) == "wants to read"
    if answered:
        with pytest.raises(StopIteration) as done:
            work.send(True)
        assert (done.value.value, closed) == (True, [])
    else:
        with pytest.raises(psycopg.OperationalError, match="no answer for 15 s"):
            work.send(False)
        assert closed == ["closed"]


@pytest.mark.socket
def test_a_transaction_that_is_taken_back_leaves_the_bound_on_a_frozen_one(postgresql: str) -> None:
    with closing(open_stream_store(new_schema(postgresql))) as store:
        store._engine.dispose()  # else it is the connection that has made the tables
        with store._engine.connect() as connection:
            connection.exec_driver_sql("SELECT 1")
            connection.rollback()
            shown = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
    assert shown == f"{opening.BUSY:g}s"
