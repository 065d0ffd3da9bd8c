"""The service on a store of its own."""

from collections.abc import Iterator

import pytest

from tests.runs.api.kit import Desk, in_memory


@pytest.fixture
def desk() -> Iterator[Desk]:
    """The service, in process."""
    with in_memory() as store:
        yield Desk(store)
