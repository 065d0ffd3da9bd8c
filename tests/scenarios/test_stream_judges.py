"""Where the judges of broken streams draw their lines, on traces made by hand."""

from __future__ import annotations

import pytest

from labkit.scenarios.stream_judges import cursor_overshoot, gap_spliced
from tests.simulation.kit import trace


@pytest.mark.parametrize(("behind", "found"), [("ijk", []), ("ijkl", ["gap_spliced"])])
def test_four_characters_behind_a_hole_are_no_coincidence(behind: str, found: list[str]) -> None:
    events = trace(
        (0, "provider", "say", {"text": "abcdefgh"}),
        (0, "provider", "say", {"text": f"{behind}."}),
        (0, "page", "shown", {"text": "abcd"}),
        (0, "page", "shown", {"text": behind}),
    )
    assert [finding.name for finding in gap_spliced(events)] == found


def test_a_number_that_is_sent_again_counts_as_it_was_sent_first() -> None:
    events = trace(
        (0, "wire", "sent", {"sequence": 0, "text": "It was "}),
        (0, "page", "shown", {"text": "It was "}),
        (1, "wire", "sent", {"sequence": 0, "text": "It was sent."}),
        (2, "wire", "open", {"cursor": "run-1:1"}),
    )
    assert list(cursor_overshoot(events)) == []
