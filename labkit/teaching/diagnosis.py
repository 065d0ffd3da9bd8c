"""The diagnosis table, as a tool: a symptom, where to look first, and what not to do first.

    labkit.diagnose()                 # the whole table
    labkit.diagnose("silent wait")    # one row
    labkit.diagnose(run)              # the symptoms that a run shows, each with its event

The words stand in `data/exercises/diagnosis.toml`; here is how each symptom shows in a trace.
"""

from collections.abc import Sequence

from labkit.scenarios.budget_judges import deadline_overrun, retries_in_step
from labkit.scenarios.effect_judges import effect_repeated, failure_told, key_stuck, meant
from labkit.simulation import Event, Judge, Run
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
    return Told("\n".join(lines or ["The trace shows none of these symptoms."]))


def symptoms(events: Sequence[Event]) -> dict[str, int]:
    """The symptoms that a trace shows, each with the index of the event to look at first."""
    stopped = max((event.index for event in events if event.kind == "cancel"), default=0)
    lost = _at(cancel_swallowed, events) + _at(left_over_task, events)
    wanted = {meant(event) for event in events if event.kind == "calls"}
    found = {
        "silent_wait": [e.index for e in events if e.kind == "stall" or e.get("seconds", 0) >= 1],
        "restart": [e.index for e in events if e.kind == "segment_end"]
        + _at(duplicate_text, events),
        "tools_after_stop": [e.index for e in events[:stopped] if e.get("step") == "tool"],
        "backend_goes_on": lost + _written_for_nobody(events),
        "charged_twice": [i for i in _at(effect_repeated, events) if meant(events[i]) in wanted],
        "told_as_failed": _at(failure_told, events),
        "key_in_progress": _at(key_stuck, events),
        "request_storm": _at(retries_in_step, events),
        "silent_minutes": _at(deadline_overrun, events),
    }
    return {name: min(indexes) for name, indexes in found.items() if indexes}


def _at(judge: Judge, events: Sequence[Event]) -> list[int]:
    return [finding.event for finding in judge(events)]


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
