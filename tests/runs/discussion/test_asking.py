"""What a run waits for: nothing, unless its state says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from labkit.recovery.run_states import AWAITING, STATES
from labkit.runs.discussion.asking import asked
from tests.runs.storing import Clock, claimed, in_memory, now

ASKS = [{"id": "ask-2", "kind": "approval"}, {"id": "ask-1", "kind": "approval"}]


def test_only_a_run_that_waits_for_a_person_waits_for_anything_in_the_order_of_asking() -> None:
    with in_memory(Clock()) as store:
        run = replace(now(claimed(store)).run, checkpoint={"asks": ASKS})
    for state in STATES:
        assert asked(replace(run, status=state)) == (ASKS if state == AWAITING else [])


@pytest.mark.parametrize("checkpoint", [None, 7, "x", [], {}, {"thread": "t"}])
def test_a_checkpoint_that_asks_nothing_asks_nothing(checkpoint: Any) -> None:
    with in_memory(Clock()) as store:
        run = now(claimed(store)).run
    assert asked(replace(run, status=AWAITING, checkpoint=checkpoint)) == []
