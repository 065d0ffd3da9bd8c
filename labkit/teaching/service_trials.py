"""How the exercises of the service are tried.

    wrong, run = SERVICE_TRIALS["11.box"](box_opens, {"run": {...}, "event": {...}})

What is right in a case is what the table of states makes of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from labkit.recovery.run_states import AWAITING, ENDED, MOVES

from .tried import Tried, same


def _box(box_opens: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: the run as it is, and an event out of its replay."""
    run, event = case["run"], case["event"]
    newest = (event["seq"], event["type"]) == (run["seq"], MOVES["ask"].event)
    return same(box_opens(dict(run), dict(event)), run["status"] == AWAITING and newest)


def _goes_on(goes_on: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: the state of a run, the numbers of its events, and a reader's cursor."""
    status, events, cursor = case["status"], case["events"], case["cursor"]
    own = ([number for number in events if number > cursor], status in ENDED)
    got = goes_on(status, list(events), cursor)
    return same(tuple(got) if isinstance(got, list) else got, own)


SERVICE_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "11.box": _box,
    "11.goes_on": _goes_on,
}
