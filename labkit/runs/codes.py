"""The code of an error that ended a run: for programs; the message is for people.

error_code(ProviderError("slow down", status=429))        # 'RATE_LIMITED'
error_code(ZeroDivisionError())                           # 'ZeroDivisionError'
"""

from collections.abc import Mapping
from typing import Any, Final

from labkit.recovery.errors import ProviderError
from labkit.recovery.run_states import LeaseLost
from labkit.simulation.mask import scrub

MOST: Final = 300  # characters of a message

_CODES: Final[Mapping[str, str]] = {
    "quota": "QUOTA_EXCEEDED",
    "rate_limit": "RATE_LIMITED",
    "auth": "AUTH",
    "permission": "AUTH",
    "timeout": "TIMEOUT",
    "stall": "TIMEOUT",
    "deadline": "TIMEOUT",
}


def error_code(error: BaseException) -> str:
    """The code: by kind, never by what the message says; else the name of the class."""
    if isinstance(error, LeaseLost):
        return "LEASE_LOST"
    if isinstance(error, TimeoutError):
        return "TIMEOUT"
    kind = error.kind if isinstance(error, ProviderError) else ""
    return _CODES.get(kind, type(error).__name__)


def message(error: BaseException) -> str:
    """What may be shown of it: one short text without secrets or addresses."""
    try:
        told = str(error)
    except Exception:  # its own words fail: the code has to do
        told = ""
    return scrub(told)[:MOST]


def short(told: Mapping[str, Any]) -> dict[str, Any]:
    """What an event tells: no text of it is longer than `MOST`."""
    return {name: _cut(value) for name, value in told.items()}


def _cut(value: Any) -> Any:
    if isinstance(value, list):
        return [_cut(each) for each in value]
    return value[:MOST] if isinstance(value, str) else value
