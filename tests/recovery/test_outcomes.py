"""The ten outcomes, and what the model reads of each."""

from __future__ import annotations

import pytest

from labkit.recovery.errors import RecoveryError
from labkit.recovery.outcomes import DONE, STATUSES, Outcome


@pytest.mark.parametrize("status", STATUSES)
def test_a_reason_is_told_for_all_that_was_not_done_and_for_nothing_else(status: str) -> None:
    told = Outcome(status=status, how="the line was cut").told
    assert told.endswith(" Reason: the line was cut.") is (status not in DONE)


@pytest.mark.parametrize("status", STATUSES)
def test_without_a_reason_none_is_named(status: str) -> None:
    assert "Reason" not in Outcome(status=status).told


def test_an_outcome_has_one_of_the_ten_statuses() -> None:
    with pytest.raises(RecoveryError, match="no outcome has the status 'nonsense'; there is: "):
        Outcome(status="nonsense")


def test_each_outcome_is_told_to_the_model_in_words_of_its_own() -> None:
    assert len({Outcome(status=each).told for each in STATUSES}) == len(STATUSES) == 10
