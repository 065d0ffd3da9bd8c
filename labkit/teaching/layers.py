"""The two layers of a durable run side by side: its checkpoints, and its row.

    labkit.layers("durable.killed")

A checkpoint is what the framework goes on from; the row is what everybody else is told, and names
the checkpoint that counts. Each line is what one of the two databases was told or has refused,
what struck a worker, or an effect, in order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pandas as pd

from labkit.simulation import Event, Run, Scenario, SimulationError

from .phrases import seconds
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
_STRUCK: Final = {  # what happens to a worker
    "killed": "killed",
    "frozen": "frozen",
    "thawed": "wakes",
    "cut": "cut off from the store",
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
        if told := _line(event, steps, several=len(runs) > 1):
            line = {"seconds": round(event.time, 2), "by": event.get("by", event.actor)}
            yield {**line, "what": "", "checkpoint": "", "row": "", "row names": "", **told}


def _line(event: Event, steps: Mapping[int, str], *, several: bool) -> dict[str, str] | None:
    """What a line says of an event beside time and name, or None where it has none."""
    if event.kind in ("checkpoint", "copied"):
        where = f"{event['thread']} step {event['step']}"
        return {"what": event.kind, "checkpoint": where}
    if event.actor == "ledger":
        return {"by": "service", "what": f"effect: {event['name']}"}
    if event.kind in _STRUCK:
        lasts = event.get("seconds")
        return {"what": _STRUCK[event.kind] + (f" for {seconds(lasts)}" if lasts else "")}
    if event.actor != "store" or event.kind not in ("claimed", "wrote", "refused"):
        return None
    whose = f"{event['run']}: " if several else ""
    if event.kind == "refused":
        row = f"{whose}fence {event['fence']}: not written"
        return {"what": f"{event['move']} refused", "row": row}
    row = f"{whose}{event['status']}, fence {event['fence']}, event {event['seq']}"
    return {"what": _what(event, steps), "row": row, "row names": event.get("names", "")}


def _what(event: Event, steps: Mapping[int, str]) -> str:
    """What the store has done, in a word."""
    if event.index in steps:
        return f"{steps[event.index]} kept"
    return _MOVES.get(event["event"]) or ("retried" if event["by"] == "ann" else "handed back")
