"""The shop's person, and what a shop leaves behind when it is closed early."""

from __future__ import annotations

import pytest

from labkit.recovery import outcomes
from labkit.scenarios.catalogue import find
from labkit.simulation import Fault, simulate


@pytest.mark.parametrize(
    ("cue", "again"),
    [("lose_request", outcomes.SUCCEEDED), ("lose_answer", outcomes.REUSED)],
)
def test_a_person_who_looks_into_the_books_finds_out_whether_the_mail_went_out(
    cue: str, again: str
) -> None:
    run = simulate(find("effects.manual").but(script=(cue,)))
    assert list(run.result.values()) == [outcomes.MANUAL, again]
    assert (len(run.ledger), run.findings) == (1, ())


@pytest.mark.parametrize("name", ["reference", "happened", "at_once", "called_off"])
def test_a_client_that_is_cancelled_waits_for_its_calls_to_end(name: str) -> None:
    run = simulate(find(f"effects.{name}"), faults=[Fault("cancel", 0, "client")])
    assert run.struck
    assert run.findings == ()
