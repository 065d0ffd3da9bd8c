"""Scenarios of one turn with four tool calls: stopped anywhere, and by naive code."""

from functools import partial
from typing import Any

from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import Session
from labkit.simulation import STREAM_JUDGES, Observer, Scenario

from . import naive_turns
from .clients import as_task
from .office import QUESTION, Office
from .rows import TURNS, rows, scenario
from .session_judges import SESSION_JUDGES

SCRIPT = "refund-with-four-calls"


async def one_turn(
    office: Office,
    policy: RetryPolicy,
    observe: Observer,
    *,
    stop_at: float | None = None,
    swallow: bool = False,
) -> Session:
    """The turn as a task of its own, stopped at `stop_at` where that is given; the session."""
    observe.of("user")("sends", session="ann", text=QUESTION)
    work = naive_turns.swallows(office, policy) if swallow else office.turn(QUESTION, policy)
    task = await as_task(work, "turn", observe, stop_at=stop_at)
    if not task.cancelled():
        task.result()
    return office.store.load("ann")


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"turn.{name}", row) for name, row in rows("turn").items()]


def _scenario(name: str, row: dict[str, Any]) -> Scenario:
    naive = row.get("naive", "")
    how: dict[str, Any] = {"writing": row.get("writing", 0.0), "trusting": naive == "trusting"}
    if naive[:1].isupper():
        how["memory"] = getattr(naive_turns, naive)
    return scenario(
        name,
        {"script": SCRIPT, **row},
        make=partial(Office, **how),
        client=partial(one_turn, stop_at=row.get("stop_at"), swallow=naive == "swallows"),
        judges=STREAM_JUDGES + SESSION_JUDGES,
        source=(*TURNS, naive_turns) if naive else TURNS,
    )
