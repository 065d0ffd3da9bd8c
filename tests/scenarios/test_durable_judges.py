"""The judges of durable runs, each on a trace that has its flaw and on one that has not."""

from __future__ import annotations

from typing import Any

import pytest

from labkit.scenarios.durable_judges import (
    DURABLE_JUDGES,
    memory_of_unfinished,
    steps_redone,
    unapproved_effect,
    zombie_checkpoint,
)
from labkit.scenarios.lease_judges import LEASE_JUDGES
from labkit.simulation import Judge
from tests.simulation.kit import trace

Told = tuple[Any, ...]


def claimed(by: str, fence: int, run: str = "r") -> Told:
    about = {"run": run, "by": by, "fence": fence, "status": "running", "until": 10.0}
    return 0.0, "store", "claimed", about


def put(by: str, step: int, thread: str = "r/1", kind: str = "checkpoint") -> Told:
    return 0.0, "checkpoints", kind, {"thread": thread, "step": step, "by": by}


def kept(by: str, run: str = "r") -> Told:
    return 0.0, "store", "step", {"run": run, "by": by, "node": "n"}


def wrote(status: str, run: str) -> Told:
    return 0.0, "store", "wrote", {"run": run, "by": "a", "fence": 1, "status": status}


def recalled(runs: str) -> Told:
    return 0.0, "memories", "recalled", {"runs": runs}


def approved(name: str, arguments: str) -> Told:
    return 0.0, "ann", "approved", {"name": name, "arguments": arguments}


def effect(name: str, **arguments: Any) -> Told:
    return 0.0, "ledger", "effect", {"name": name, "order": "k", **arguments}


A, B = claimed("a", 1), claimed("b", 2)

RIGHT: dict[str, tuple[Judge, tuple[Told, ...]]] = {
    "one after the other": (steps_redone, (A, put("a", 0), kept("a"), put("a", 1), kept("a"))),
    "taken over with a copy": (
        steps_redone,
        (A, put("a", 0), kept("a"), B, put("b", 0, "r/2", "copied"), put("b", 1, "r/2"), kept("b")),
    ),
    "the row did not know of it": (
        steps_redone,
        (A, put("a", 0), kept("a"), put("a", 1), B, put("b", 0, "r/2", "copied"), put("b", 1)),
    ),
    "put by who holds it no more": (
        steps_redone,
        (A, put("a", 0), kept("a"), B, put("b", 1, "r/2"), kept("b"), put("a", 1)),
    ),
    "another run": (
        steps_redone,
        (A, put("a", 1), kept("a"), claimed("b", 1, "s"), put("b", 0, "s/1")),
    ),
    "a thread of its own": (
        zombie_checkpoint,
        (A, put("a", 0), B, put("b", 0, "r/2"), put("a", 1)),
    ),
    "before it was taken over": (zombie_checkpoint, (A, put("a", 0, "r"), B, put("b", 1, "r"))),
    "exactly that": (
        unapproved_effect,
        (approved("mail", '{"to": "ann"}'), effect("mail", to="ann")),
    ),
    "of a run that is completed": (
        memory_of_unfinished,
        (recalled(""), wrote("completed", "r"), wrote("completed", "s"), recalled("r,s")),
    ),
}

WRONG: dict[str, tuple[Judge, tuple[Told, ...], int]] = {
    "from the beginning": (
        steps_redone,
        (A, put("a", 0), kept("a"), put("a", 1), kept("a"), B, put("b", 0, "r/2"), put("b", 1)),
        6,
    ),
    "one step back": (
        steps_redone,
        (A, put("a", 0), kept("a"), put("a", 1), kept("a"), B, put("b", 1, "r/2")),
        6,
    ),
    "into the holder's thread": (
        zombie_checkpoint,
        (A, put("a", 0, "r"), B, put("b", 1, "r"), put("a", 1, "r")),
        4,
    ),
    "into a thread that its holder has copied into": (
        zombie_checkpoint,
        (A, B, put("b", 1, "r", "copied"), put("a", 1, "r")),
        3,
    ),
    "nobody was asked": (unapproved_effect, (effect("mail", to="ann"),), 0),
    "another tool": (
        unapproved_effect,
        (approved("call", '{"to": "ann"}'), effect("mail", to="ann")),
        1,
    ),
    "other arguments": (
        unapproved_effect,
        (approved("mail", '{"to": "ann"}'), effect("mail", to="bob")),
        1,
    ),
    "too late": (unapproved_effect, (effect("mail", to="a"), approved("mail", '{"to": "a"}')), 0),
    "of one that was cancelled": (
        memory_of_unfinished,
        (wrote("completed", "r"), wrote("cancelled", "s"), recalled("r,s")),
        2,
    ),
    "of one that was not done yet": (
        memory_of_unfinished,
        (recalled("r"), wrote("completed", "r")),
        0,
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_what_is_right_is_no_finding(case: str) -> None:
    judge, told = RIGHT[case]
    assert list(judge(trace(*told))) == []


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found_where_it_happens(case: str) -> None:
    judge, told, index = WRONG[case]
    (found,) = judge(trace(*told))
    assert (found.name, found.event) == (judge.__name__, index)
    assert found.cure


def test_the_steps_that_are_redone_are_one_finding() -> None:
    told = (A, put("a", 0), kept("a"), put("a", 1), kept("a"), B, put("b", 0), put("b", 1))
    assert len(list(steps_redone(trace(*told)))) == 1


def test_leases_are_judged_too() -> None:
    assert {*LEASE_JUDGES} < {*DURABLE_JUDGES}
