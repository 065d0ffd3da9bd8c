"""Reads how long a provider asks to be left alone.

The header is a hint from outside: seconds, milliseconds, one of three date forms, or junk. What
cannot be used is treated as absent, never as zero and never as an exception.

    parse_retry_after({"retry-after": "7"}, now=0.0)    # 7.0
    parse_retry_after({"retry-after": "soon"}, now=0.0) # None
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")  # float() would take "nan", "1_0" and "1e3" too


def parse_retry_after(headers: Mapping[str, str], *, now: float) -> float | None:
    """Seconds to wait, at least 0, or None where the headers give nothing usable.

    `now` is in seconds since the epoch. `retry-after-ms` is read first, but only a usable value
    beats `retry-after`. A date in the past is 0. Source: RFC 9110, section 10.2.3, for the seconds
    and the three date forms. It has no fractions and no milliseconds; large providers send both.
    """
    found = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    milliseconds = found.get("retry-after-ms", "")
    if _NUMBER.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    value = found.get("retry-after", "")
    if _NUMBER.fullmatch(value):
        return float(value)
    date = _date(value)
    if date is None:
        return None
    return max(0.0, date - now)


def _date(value: str) -> float | None:
    """Seconds since the epoch, or None where `value` is no date."""
    try:
        parsed = parsedate_to_datetime(value)
        if parsed.tzinfo is None:
            # The asctime form and "-0000" come without a zone; both mean UTC here.
            parsed = parsed.replace(tzinfo=UTC)
        return (parsed - datetime.fromtimestamp(0, UTC)).total_seconds()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
