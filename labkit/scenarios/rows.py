"""Scenarios of one streamed answer, from the tables in `data/scenarios`: one table a topic."""

import tomllib
from pathlib import Path
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.recovery import (
    attempts,
    budget,
    calls,
    cancel,
    checkpoint,
    claims,
    event_log,
    execution,
    idempotency,
    lease,
    renewal,
    retry,
    retry_after,
    session,
    tools,
    turn,
)
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.stream import client, continuation, ending, receiving, record
from labkit.simulation import STREAM_JUDGES, Scenario
from labkit.stores import memory

from .scripts import load

TABLES: Final = Path(__file__).parents[2] / "data" / "scenarios"
STREAMS: Final = (client, receiving, record, ending, continuation, tools, event_log)
EFFECTS: Final = (execution, attempts, claims, renewal, idempotency, lease, budget, memory)
TURNS: Final = (turn, calls, checkpoint, session, cancel, tools, retry, retry_after)
POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0)


def rows(topic: str) -> dict[str, dict[str, Any]]:
    """Name -> the row of that name: claim, script and breakpoints, and what its topic adds."""
    return tomllib.loads((TABLES / f"{topic}.toml").read_text(encoding="utf-8"))


def scenario(name: str, row: dict[str, Any], **fields: Any) -> Scenario:
    """The scenario of a row; `fields` add to what all have in common, or change it."""
    common: dict[str, Any] = {
        "make": FakeProvider,
        "policy": POLICY,
        "judges": STREAM_JUDGES,
        "refusals": ("RecoveryError", "OpenAIError"),  # an unmodified client says no in its own way
        "source": (retry, retry_after),
        "breakpoints": tuple(row.get("breakpoints", ())),
    }
    script = load(row["script"]) if "script" in row else None
    return Scenario(name=name, claim=row["claim"], script=script, **{**common, **fields})
