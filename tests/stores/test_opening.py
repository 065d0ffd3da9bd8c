"""What a URL must be, and what an error about it never tells."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from labkit.stores import StoreError, open_key_store, open_stream_store, opening

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
