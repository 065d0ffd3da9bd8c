"""A run store on each database."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from labkit.runs import news
from labkit.runs.opening import open_run_store
from labkit.runs.store import RunStore
from tests.stores.postgres import new_schema

KINDS = ["sqlite", pytest.param("postgresql", marks=pytest.mark.socket)]
every_database = pytest.mark.parametrize("url", KINDS, indirect=True)
on_postgresql = pytest.mark.parametrize("url", KINDS[1:], indirect=True)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who listens sees soon that it is closed, and soon connects anew."""
    monkeypatch.setattr(news, "LOOK", 0.02)
    monkeypatch.setattr(news, "PAUSE", 0.02)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of the kind that the test asks for."""
    if request.param == "postgresql":
        return new_schema(request.getfixturevalue("postgresql"))
    return f"sqlite:///{tmp_path / 'runs.db'}"


@pytest.fixture
def opened(url: str) -> Iterator[Callable[[], RunStore]]:
    """Opens the store anew, as another process would."""
    stores: list[RunStore] = []

    def again() -> RunStore:
        stores.append(open_run_store(url))
        return stores[-1]

    yield again
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], RunStore]) -> RunStore:
    """An empty store."""
    return opened()
