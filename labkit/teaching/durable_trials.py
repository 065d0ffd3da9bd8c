"""How the exercises of durable runs are tried.

    wrong, run = DURABLE_TRIALS["10.may_run"](may_run, {"call": {...}, "word": {...}, "now": 5.0})

What is right in a case is what labkit's own discussion makes of it.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from labkit.recovery.run_states import COMPLETED
from labkit.scenarios.durable import allowed, digest

from .tried import Tried, same


def _go_on(go_on: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what the row names, the checkpoints in order of arrival, and the fence."""
    named, fence = case.get("named"), case["fence"]
    got = go_on(named, list(case["checkpoints"]), fence)
    return same(got, (named, f"run-1/{fence}"))


def _may_run(may_run: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: a call, what the person saw of it, their word, and the time."""
    call = {"tool": "refund", "until": 100.0, "arguments": case["call"]}
    seen = {**call, "arguments": case.get("seen", case["call"])}
    word = {"answer": case["answer"], "digest": digest(seen)}
    got = may_run(SimpleNamespace(**call), word, case["now"], digest)
    return same(got, allowed(call, word, case["now"]))


def _counts(counts: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: the thread in which a fact was kept, and the row of its run."""
    row = SimpleNamespace(**case["row"])
    own = row.status == COMPLETED and case["thread"] == row.thread
    return same(counts(case["thread"], row), own)


DURABLE_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "10.go_on": _go_on,
    "10.may_run": _may_run,
    "10.counts": _counts,
}
