"""Scenarios of the retry boundary: what may be tried again, and what must not."""

from functools import partial
from typing import Any, Final

from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.simulation import Scenario

from . import clients
from .rows import POLICY, rows, scenario

RISING: Final = RetryPolicy(retry_on=TRANSIENT, attempts=5, first_wait=2.0, factor=1.0, jitter=0)


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [
        scenario(
            f"retry.{name}",
            row,
            client=_client(row),
            policy=RISING if name == "rising" else POLICY,
        )
        for name, row in rows("retry").items()
    ]


def _client(row: dict[str, Any]) -> clients.Client:
    client: clients.Client = getattr(clients, row["client"])
    if "stop_at" in row:
        return partial(clients.stopped, client=client, seconds=row["stop_at"])
    return client
