"""What the model reads of an outcome."""

from __future__ import annotations

import pytest

from labkit.recovery.outcomes import DONE, STATUSES, Outcome


@pytest.mark.parametrize("status", STATUSES)
def test_a_reason_is_told_for_all_that_was_not_done_and_for_nothing_else(status: str) -> None:
    told = Outcome(status=status, how="the line was cut").told
    assert told.endswith(" Reason: the line was cut.") is (status not in DONE)


@pytest.mark.parametrize("status", STATUSES)
def test_without_a_reason_none_is_named(status: str) -> None:
    assert "Reason" not in Outcome(status=status).told
