"""The prediction table of leases is graded from traces, by the events that decided it."""

from __future__ import annotations

from typing import Any

import pytest

import labkit
from labkit.runs.manager import RunPolicy
from labkit.scenarios import lease_facts as facts
from labkit.scenarios.facts import Fact
from tests.simulation.kit import trace

TAKEN = "worker-2, with fence 2"
OVER, REFUSED, NEVER = "when the lease is over", "it is refused", "it never comes"

# row -> the answers, and the kinds of the events that decided them
KEY: dict[str, list[tuple[str, str]]] = {
    "leases.long_step": [
        ("worker-1, with fence 1", "wrote"),
        ("never", "end"),
        ("it is kept", "wrote"),
    ],
    "leases.killed": [(TAKEN, "wrote"), (OVER, "claimed"), (NEVER, "end")],
    "leases.shut_down": [(TAKEN, "wrote"), ("at once", "claimed"), ("it is kept", "wrote")],
    "leases.frozen": [(TAKEN, "wrote"), (OVER, "claimed"), (REFUSED, "refused")],
    "leases.cut_off": [(TAKEN, "wrote"), (OVER, "claimed"), (NEVER, "claim_lost")],
    "leases.nobody_looks": [("nobody", "end"), ("never", "end"), (NEVER, "end")],
    "leases.read_then_write": [(TAKEN, "wrote"), ("at once", "claimed"), (REFUSED, "refused")],
}


@pytest.mark.parametrize("row", KEY)
def test_the_answers_of_a_row_and_the_events_that_decided_them(row: str) -> None:
    events = labkit.simulate(row).trace
    found = [facts.LEASE_FACTS[column](events) for column in labkit.predict("leases").columns]
    assert [(fact.answer, events[fact.event].kind) for fact in found] == KEY[row]


def test_no_row_is_left_out_of_the_key() -> None:
    assert list(labkit.predict("leases").rows) == list(KEY)


def test_a_longer_lease_gives_other_answers() -> None:
    run = labkit.simulate("leases.frozen", policy=RunPolicy(lease=60.0))
    found = [fact(run.trace).answer for fact in facts.LEASE_FACTS.values()]
    assert found == ["worker-1, with fence 1", "never", "it is kept"]


@pytest.mark.parametrize("column", ["next_claim", "finished_by"])
def test_a_wrong_answer_leads_to_the_place_behind_the_event_that_decided(column: str) -> None:
    table = labkit.predict("leases")
    table.answer("leases.killed", column, table.columns[column]["choices"][0])
    view = table.grade().view("leases.killed", column)
    assert view.place.file.endswith(".py")


CLAIMED = (1, "store", "claimed", {"by": "worker-1", "fence": 1, "until": 11.0})


def then(*after: tuple[Any, ...]) -> Any:
    """A trace with the first claim, what came after it, and the end."""
    return trace(CLAIMED, *after, (99, "lab", "end"))


def claim(at: float, by: str) -> tuple[Any, ...]:
    return (at, "store", "claimed", {"by": by, "fence": 2, "until": at + 10})


def word(at: float, kind: str, **told: Any) -> tuple[Any, ...]:
    return (at, "store", kind, {"by": "worker-1", "fence": 1, **told})


KILLED = (5, "worker-1", "killed")
RENEWED = word(4, "renewed", until=14.0)
LATE = word(6, "refused", move="renew")


@pytest.mark.parametrize(
    ("after", "answer"),
    [
        ([claim(10.9, "worker-2")], Fact("at once", 1)),
        ([claim(11, "worker-2")], Fact(OVER, 1)),
        ([claim(12, "worker-1"), claim(22, "worker-2")], Fact(OVER, 2)),
        ([claim(12, "worker-1")], Fact("never", 2)),
        ([RENEWED, KILLED, claim(13, "w")], Fact("at once", 3)),
        ([RENEWED, KILLED, claim(14, "w")], Fact(OVER, 3)),
    ],
)
def test_a_claim_is_measured_by_the_lease_that_lasted_at_the_blow(
    after: list[tuple[Any, ...]], answer: Fact
) -> None:
    assert facts.next_claim(then(*after)) == answer


@pytest.mark.parametrize(
    ("after", "answer"),
    [
        ([word(4, "wrote", status="running"), KILLED], Fact(NEVER, 3)),
        ([(5, "worker-1", "frozen"), LATE], Fact(NEVER, 3)),
        (
            [(5, "worker-1", "cut"), LATE, word(7, "refused", move="step")],
            Fact(REFUSED, 3),
        ),
        ([(5, "worker-1", "frozen"), word(6, "renewed", until=16.0)], Fact(NEVER, 3)),
        ([word(4, "wrote", status="running")], Fact("it is kept", 1)),
        ([word(4, "wrote", status="queued"), KILLED], Fact("it is kept", 1)),
    ],
)
def test_the_next_write_is_the_first_from_the_blow_on_and_no_renewal(
    after: list[tuple[Any, ...]], answer: Fact
) -> None:
    assert facts.next_write(then(*after)) == answer


def test_who_finishes_is_read_from_the_write_of_the_end_and_its_fence() -> None:
    done = word(7, "wrote", status="completed")
    assert facts.finished_by(then(done)) == Fact("worker-1, with fence 1", 1)
    assert facts.finished_by(then(word(7, "wrote", status="failed"))) == Fact("nobody", 2)
