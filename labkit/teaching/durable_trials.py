"""How the exercises of durable runs are tried.

    wrong, run = DURABLE_TRIALS["10.may_run"](may_run, {"call": {...}, "word": {...}, "now": 5.0})

What is right in a case is what labkit's own discussion makes of it.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from labkit.recovery.run_states import COMPLETED
from labkit.scenarios.durable import allowed, digest

from .tried import Tried, same


def _go_on(go_on: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what the row names, the checkpoints in order of arrival, and the fence."""
    named, fence = case["named"], case["fence"]
    got = go_on(named, list(case["checkpoints"]), fence)
    return same(got, (named, f"run-1/{fence}"))


def _may_run(may_run: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: a call, a person's word and what they saw of the call, and the time."""
    call, now = case["call"], case["now"]
    word = {"answer": case["word"]["answer"], "digest": digest(case["word"]["digest_of"])}
    return same(may_run(deepcopy(call), dict(word), now, digest), allowed(call, word, now))


def _counts(counts: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: the thread in which a fact was kept, and the row of its run."""
    thread, row = case["thread"], case["row"]
    own = row["status"] == COMPLETED and thread == row["thread"]
    return same(counts(thread, dict(row)), own)


DURABLE_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "10.go_on": _go_on,
    "10.may_run": _may_run,
    "10.counts": _counts,
}
