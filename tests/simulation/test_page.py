"""What the user has seen, read from the trace."""

from labkit.simulation.page import Segment, segments

from .kit import trace

EVENTS = trace(
    (0, "page", "shown", {"text": "Hel"}),
    (1, "client", "shown", {"text": "not on the page"}),
    (2, "page", "shown", {"text": "lo"}),
    (3, "page", "segment_end", {"reason": "stall"}),
    (4, "page", "shown", {"text": "Again"}),
)


def test_shown_text_is_joined_and_a_segment_end_opens_the_next() -> None:
    assert segments(EVENTS) == (Segment("Hello", "stall"), Segment("Again"))


def test_a_page_is_read_up_to_an_event() -> None:
    assert segments(EVENTS, 0) == (Segment("Hel"),)
    assert segments(EVENTS, 3) == (Segment("Hello", "stall"),)
    assert segments(EVENTS, -1) == (Segment(""),)
