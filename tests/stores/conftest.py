"""A store of each kind."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labkit.stores import open_stream_store

from .postgres import new_schema

KINDS = ["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.socket)]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of the kind that the test asks for."""
    if request.param == "postgresql":
        return new_schema(request.getfixturevalue("postgresql"))
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
