"""Where the judges of broken streams draw their lines, on traces made by hand."""

from __future__ import annotations

import pytest

from labkit.scenarios.stream_judges import cursor_overshoot, gap_spliced, piece_doubled
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


@pytest.mark.parametrize(
    ("said", "shown", "found"),
    [
        (["It was ", "sent."], ["It was ", "It was ", "sent."], ["piece_doubled"]),
        (["It was ", "sent."], ["It was ", "sent.", "It was sent."], ["piece_doubled"]),
        (["haha ", "haha "], ["haha ", "haha "], []),
        (["abc", "d"], ["abc", "abc", "d"], []),
    ],
    ids=["a piece", "the whole", "said so", "too short to tell"],
)
def test_a_piece_that_was_said_once_and_shown_twice_is_found(
    said: list[str], shown: list[str], found: list[str]
) -> None:
    events = trace(
        *((0, "provider", "say", {"text": text}) for text in said),
        *((1, "page", "shown", {"text": text}) for text in shown),
    )
    assert [finding.name for finding in piece_doubled(events)] == found


def test_text_of_another_request_or_segment_is_no_double() -> None:
    said, shown = (
        (0, "provider", "say", {"text": "It was"}),
        (0, "page", "shown", {"text": "It was"}),
    )
    for between in ((0, "provider", "request"), (0, "page", "segment_end", {"reason": "cut"})):
        assert list(piece_doubled(trace(said, shown, between, said, shown))) == []


def test_a_number_that_is_sent_again_counts_as_it_was_sent_first() -> None:
    events = trace(
        (0, "wire", "sent", {"sequence": 0, "text": "It was "}),
        (0, "page", "shown", {"text": "It was "}),
        (1, "wire", "sent", {"sequence": 0, "text": "It was sent."}),
        (2, "wire", "open", {"cursor": "run-1:1"}),
    )
    assert list(cursor_overshoot(events)) == []
