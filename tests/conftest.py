"""What all tests share."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from hypothesis import settings

# The same examples each time: a test that needs luck is a bug, and a slow machine is no failure.
settings.register_profile("labkit", derandomize=True, deadline=None, database=None)
settings.load_profile("labkit")


@pytest.fixture(scope="session")
def root() -> pathlib.Path:
    """The checkout."""
    return pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server that ends with the tests."""
    from tests.stores.postgres import hasty, serving  # which load SQLAlchemy

    with serving() as url:
        hasty(url)
        yield url
