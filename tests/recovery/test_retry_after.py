"""Retry-After, from the standard's examples to junk."""

import math
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from labkit.recovery.retry_after import parse_retry_after

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
JUNK = st.text() | st.text("0123456789+-.eE_,: GMTadinfMonar", max_size=30)


@given(value=JUNK, milliseconds=st.none() | JUNK)
@example(value="nan", milliseconds=None)
@example(value="9" * 400, milliseconds=None)
@example(value="Mon, 02 Mar 2026 12:00:30 -99999999", milliseconds=None)
@example(value="1 jan 99999999999999999999 0:0", milliseconds="nan")
def test_no_header_raises_or_gives_less_than_nothing(value: str, milliseconds: str | None) -> None:
    headers = {"retry-after": value}
    if milliseconds is not None:
        headers["retry-after-ms"] = milliseconds
    seconds = parse_retry_after(headers, now=NOW)
    assert seconds is None or (seconds >= 0 and not math.isnan(seconds))


@given(st.integers(0, 10**9))
def test_seconds_come_back_as_they_were_sent(seconds: int) -> None:
    assert parse_retry_after({"retry-after": str(seconds)}, now=NOW) == seconds


@given(st.integers(0, 10**9))
def test_milliseconds_come_back_as_seconds_and_beat_the_seconds(milliseconds: int) -> None:
    headers = {"retry-after": "7", "retry-after-ms": str(milliseconds)}
    assert parse_retry_after(headers, now=NOW) == milliseconds / 1000


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_a_date_is_never_met_too_early(date: datetime) -> None:
    date = date.replace(microsecond=0)
    forms = (
        format_datetime(date, usegmt=True),
        date.strftime("%A, %d-%b-%y %H:%M:%S GMT") if 1970 <= date.year < 2069 else None,
        date.strftime("%a %b %d %H:%M:%S %Y"),
    )
    for form in forms:
        if form is not None:
            seconds = parse_retry_after({"retry-after": form}, now=NOW)
            assert seconds == max(0, date.timestamp() - NOW), form


def test_the_three_date_forms_of_the_standard_are_the_same_instant() -> None:
    just_before = datetime(1994, 11, 6, 8, 49, 30, tzinfo=UTC).timestamp()
    for form in (
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ):
        assert parse_retry_after({"Retry-After": form}, now=just_before) == 7


def test_a_date_of_another_zone_is_counted_in_that_zone() -> None:
    header = {"retry-after": "Mon, 02 Mar 2026 13:00:30 +0100"}
    assert parse_retry_after(header, now=NOW) == 30


def test_names_are_read_in_any_case_and_blanks_around_a_value_are_dropped() -> None:
    assert parse_retry_after({"RETRY-AFTER": " 7 "}, now=NOW) == 7
    assert parse_retry_after({"Retry-After-Ms": " 250 "}, now=NOW) == 0.25


def test_nothing_usable_is_none_and_not_zero() -> None:
    for headers in ({}, {"retry-after": ""}, {"retry-after": "soon"}, {"x-retry-after": "7"}):
        assert parse_retry_after(headers, now=NOW) is None


@pytest.mark.parametrize("value", [None, b"7", ["7"], True, {}], ids=repr)
def test_a_value_that_is_no_text_is_as_good_as_absent(value: Any) -> None:
    assert parse_retry_after({"retry-after": value}, now=0.0) is None
    assert parse_retry_after({7: "7", "retry-after-ms": value}, now=0.0) is None  # type: ignore


def test_a_number_in_place_of_its_text_is_heard() -> None:
    assert parse_retry_after({"retry-after": 7}, now=0.0) == 7.0  # type: ignore[dict-item]
