"""The figures of one recovered answer, read from its trace: what it cost, and what was repeated.

    figures(simulate("stream.cut"))["appended"]     # characters that came after the cut
    cursors(run.trace)["saved"]                     # [(time, characters), ...]

A token is counted as 4 characters, of requests and of answers; a provider bills what it has
generated, whether it arrived or not.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from labkit.simulation import Event, Run

from .stream_judges import effect_repeated

TOKEN: Final = 4  # characters
BREAKS: Final = ("http_error", "error", "drop", "stall", "end")
Steps = list[tuple[float, int]]


def figures(run: Run) -> dict[str, Any]:
    """One row: where it was cut, what was done, what came of it, and what that cost.

    `cut s`: the virtual second of the cut; `shown then`: characters on the page by then;
    `appended`: those that came later; `extra s`: seconds from the cut to the next text, or to the
    end where none came; `total s`: of the whole run; `twice`: effects that were repeated.
    """
    events = run.trace
    at = next((e for e in events if _breaks(e)), None)
    rest = events[at.index :] if at else ()
    after = [event for event in rest if event.kind == "shown"]
    until = (after[0] if after else events[-1]).time
    choices = [e["action"] for e in events if e.kind == "choice" and _recovers(e["action"])]
    for event in events:
        if event.kind == "gave_up":  # what was chosen last was not done any more
            choices[-1:] = [f"gave up: {event['reason']}"]
    actions = [f"{len(same)} × {name}" if same[1:] else name for name, same in _runs(choices)]
    said = _length(events, "say")
    asked = sum(event["characters"] for event in events if event.kind == "asked")
    return {
        "cut by": (at.get("fault") or at.kind) if at else "nothing struck" * bool(run.missed),
        "cut s": at.time if at else "",
        "shown then": _shown(events[: at.index]) if at else "",
        "action": ", ".join(actions) or "none",
        "appended": _shown(rest),
        "tool calls": sum(event.actor == "ledger" for event in events),
        "state": next((e["state"] for e in reversed(events) if e.kind == "status"), ""),
        "extra s": round(until - at.time, 3) if at else 0.0,
        "total s": run.time,
        "tokens": (asked + said + _length(events, "call")) // TOKEN,
        "thrown away": max(0, said - len(run.text)) // TOKEN,
        "twice": sum(1 for _ in effect_repeated(events)),
    }


def cursors(events: Sequence[Event]) -> dict[str, Steps]:
    """The four cursors of an answer: generated, sent, seen and saved, each (time, characters).

    `sent` is what a service between provider and reader has put on the wire, each event once; it is
    empty where there is no such service.
    """
    found: dict[str, Steps] = {"generated": [], "sent": [], "seen": [], "saved": []}
    far = -1
    for event in events:
        if event.actor == "provider" and event.kind == "say":
            _add(found["generated"], event)
        elif event.actor == "wire" and event.kind == "sent" and event["sequence"] > far:
            far = event["sequence"]
            _add(found["sent"], event)
        elif event.kind == "shown":
            _add(found["seen"], event)
        elif event.actor == "record":
            found["saved"].append((event.time, event["characters"]))
    return found


def _add(steps: Steps, event: Event) -> None:
    before = steps[-1][1] if steps else 0
    steps.append((event.time, before + len(event.get("text", ""))))


def _runs(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    return [(name, list(same)) for name, same in groupby(names)]


def _breaks(event: Event) -> bool:
    told = event.actor == "lab" and event.kind == "fault"
    stopped = event.actor == "user" and event.kind == "cancel"
    cut = event.get("reason") == "length"
    return told or stopped or cut or (event.actor == "provider" and event.kind in BREAKS)


def _recovers(action: str) -> bool:
    return action not in ("show_result", "run_tools")


def _shown(events: Sequence[Event]) -> int:
    return sum(len(event["text"]) for event in events if event.kind == "shown")


def _length(events: Sequence[Event], kind: str) -> int:
    own = [event for event in events if event.actor == "provider" and event.kind == kind]
    return sum(len(event.get("text", "")) for event in own)
