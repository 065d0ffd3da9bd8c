"""Scenarios of a streamed answer that breaks, and of how it is brought back.

The policy under study is `RecoveryLimits`: how far the program goes by itself.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from labkit.recovery import retry
from labkit.recovery.stream import RecoveryLimits, StreamRun
from labkit.simulation import STREAM_JUDGES, Observer, Scenario

from .desk import QUESTION, Desk, KeptDesk
from .rows import STREAMS, rows, scenario
from .stream_judges import RECOVERY_JUDGES


async def recovering(
    desk: Desk,
    limits: RecoveryLimits,
    observe: Observer,
    *,
    offers: tuple[str, ...] = (),
    structured: bool = False,
    **how: Any,
) -> StreamRun:
    """labkit's recovering client: `offers` tools, or wants the answer as one JSON value."""
    request = replace(QUESTION, tools=offers, structured=structured)
    return await desk.answer(limits, request=request, **how)


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"stream.{name}", row) for name, row in rows("stream").items()]


def _scenario(name: str, row: dict[str, Any]) -> Scenario:
    taken = ("can_continue", "structured", "stop_at")
    how: dict[str, Any] = {key: row[key] for key in taken if key in row}
    if row.get("tools"):
        how["offers"] = ("create_ticket",)
    return scenario(
        name,
        row,
        make=KeptDesk if row.get("kept") else Desk,
        client=partial(recovering, **how),
        policy=RecoveryLimits(),
        judges=STREAM_JUDGES + RECOVERY_JUDGES,
        source=(*STREAMS, retry),
    )
