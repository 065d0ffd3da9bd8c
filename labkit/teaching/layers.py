"""The two layers of a durable run side by side: its checkpoints, and its row.

    labkit.layers("durable.killed")

A checkpoint is what the framework goes on from; the row is what everybody else is told. Each line
is what one of the two databases was told, in order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from labkit.simulation import Event, Run, Scenario, SimulationError

from .said import as_run

_MOVES: Final = {  # the event of a move -> what was done
    "run_created": "asked for",
    "run_started": "claimed",
    "awaiting_input": "asks a person",
    "input_received": "is answered",
    "run_completed": "completed",
    "run_failed": "failed",
    "run_cancelled": "cancelled",
}


def layers(run: Run | Scenario | str) -> pd.DataFrame:
    """What was put where, by whom, in order. Raises `SimulationError` without checkpoints."""
    told = as_run(run)
    rows = list(_rows(told))
    if not any(row["checkpoint"] for row in rows):
        raise SimulationError(f"{told.scenario.name} has no checkpoints: try 'durable.killed'")
    return pd.DataFrame(rows)


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    steps = {e.index - 1: e["node"] for e in run.trace if (e.actor, e.kind) == ("store", "step")}
    runs = {e["run"] for e in run.trace if e.kind == "claimed" and e.actor == "store"}
    for event in run.trace:
        told = {"seconds": round(event.time, 2), "by": event.get("by", "")}
        if event.kind in ("checkpoint", "copied"):
            where = f"{event['thread']} step {event['step']}"
            yield {**told, "what": event.kind, "checkpoint": where, "row": ""}
        elif event.actor == "store" and event.kind in ("claimed", "wrote"):
            whose = f"{event['run']}: " if len(runs) > 1 else ""
            row = f"{whose}{event['status']}, fence {event['fence']}, event {event['seq']}"
            yield {**told, "what": _what(event, steps), "checkpoint": "", "row": row}


def _what(event: Event, steps: Mapping[int, str]) -> str:
    """What the store has done, in a word."""
    if event.index in steps:
        return f"{steps[event.index]} kept"
    return _MOVES.get(event["event"]) or ("retried" if event["by"] == "ann" else "handed back")
