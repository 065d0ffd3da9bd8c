"""The diagnosis table, as a tool: a symptom, where to look first, and what not to do first.

    labkit.diagnose()                 # the whole table
    labkit.diagnose("silent wait")    # one row
    labkit.diagnose(run)              # the symptoms that a run shows, each with its event

The words stand in `data/exercises/diagnosis.toml`; here is how each symptom shows in a trace.
"""

from collections.abc import Sequence

from labkit.simulation import Event, Run
from labkit.simulation.judge import cancel_swallowed, duplicate_text, left_over_task

from .said import Told, pick, texts


def diagnose(what: str | Run | None = None) -> Told:
    """All symptoms, the one named, or those of a run; raises `Unknown` with what there is."""
    table = texts("diagnosis")
    if isinstance(what, Run):
        found = symptoms(what.trace)
        chosen = {name: f"\n   here:      {what.trace[i]!r}" for name, i in found.items()}
    elif what is None:
        chosen = dict.fromkeys(table, "")
    else:
        chosen = {pick("symptom", what, {name: row["words"] for name, row in table.items()}): ""}
    form = "{words}\n   look:      {look}\n   not first: {not_first}"
    lines = [form.format(**table[name]) + here for name, here in chosen.items()]
    return Told("\n".join(lines or ["The trace shows none of the four symptoms."]))


def symptoms(events: Sequence[Event]) -> dict[str, int]:
    """The symptoms that a trace shows, each with the index of the event to look at first."""
    stopped = max((event.index for event in events if event.kind == "cancel"), default=0)
    doubled = [finding.event for finding in duplicate_text(events)]
    lost = [finding.event for finding in (*cancel_swallowed(events), *left_over_task(events))]
    found = {
        "silent_wait": [e.index for e in events if e.kind == "stall" or e.get("seconds", 0) >= 1],
        "restart": [e.index for e in events if e.kind == "segment_end"] + doubled,
        "tools_after_stop": [e.index for e in events[:stopped] if e.get("step") == "tool"],
        "backend_goes_on": lost + _written_for_nobody(events),
    }
    return {name: min(indexes) for name, indexes in found.items() if indexes}


def _written_for_nobody(events: Sequence[Event]) -> list[int]:
    """What a provider said while its reader's connection was lost."""
    found, lost = list[int](), False
    for event in events:
        if event.kind in ("open", "request"):
            lost = False
        elif event.actor == "record":
            lost = lost or event["status"] == "interrupted"
        elif lost and event.actor == "provider" and event.kind == "say":
            found.append(event.index)
    return found
