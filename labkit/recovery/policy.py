"""The choices of a retry, as one value that is checked when it is made.

RetryPolicy(retry_on=TRANSIENT, attempts=3, stall=10.0)
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Final

from .errors import KINDS, PolicyError

MOST: Final = 1e9  # seconds, attempts or a factor: 31 years, and far from what a float can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how long and for which kinds of error to try again; times in seconds.

    `retry_on`: the kinds of error that another try may mend; the caller's own choice, so it has no
    default (`TRANSIENT` is the usual one). `attempts`: how many in all, the first included.
    `first_wait`, `factor`, `max_wait`: the backoff before the second attempt, its growth and its
    cap. `jitter`: the share of each backoff that chance may take off, 0 to 1. `retry_after_cap`:
    a longer wait asked for by the provider ends the run instead. `stall`: how long the stream may
    say nothing. `total`: the time for everything, waits included.

    Raises `PolicyError` that names each field which is wrong.
    """

    attempts: int = 4
    first_wait: float = 1.0
    factor: float = 2.0
    max_wait: float = 30.0
    jitter: float = 0.5
    retry_after_cap: float = 120.0
    stall: float = 30.0
    total: float = 300.0
    retry_on: frozenset[str]

    def __post_init__(self) -> None:
        given: object = self.retry_on
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise PolicyError(f"retry_on: a set of kinds, not {given!r}")
        object.__setattr__(self, "retry_on", frozenset(map(str, given)))
        if wrong := _unknown(self.retry_on) or _no_numbers(self) or _contradictions(self):
            raise PolicyError("; ".join(wrong))


def _unknown(kinds: frozenset[str]) -> list[str]:
    if "deadline" in kinds:
        return ["retry_on: after the deadline there is no time for another try"]
    known = f"there is: {', '.join(KINDS)}"
    return [f"retry_on: no kind {kind!r}; {known}" for kind in sorted(kinds - set(KINDS))]


def _no_numbers(policy: RetryPolicy) -> list[str]:
    given = {field.name: getattr(policy, field.name) for field in fields(policy)[:-1]}
    return [
        f"{name}: {value!r} is not a number, or beyond {MOST:g}"
        for name, value in given.items()
        if isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -MOST <= value <= MOST  # which no nan is
    ]


def _contradictions(policy: RetryPolicy) -> list[str]:
    p = policy
    rules = (
        (isinstance(p.attempts, int) and p.attempts >= 1, "attempts", "a whole number from 1"),
        (p.first_wait >= 0, "first_wait", "at least 0"),
        (p.factor >= 1, "factor", "at least 1, or the backoff would shrink"),
        (p.max_wait >= p.first_wait, "max_wait", f"at least first_wait ({p.first_wait!r})"),
        (0 <= p.jitter <= 1, "jitter", "a share from 0 to 1"),
        (p.retry_after_cap >= 0, "retry_after_cap", "at least 0"),
        (p.stall > 0, "stall", "above 0"),
        (p.total > 0, "total", "above 0"),
        (p.stall <= p.total, "stall", f"at most total ({p.total!r}), which would hide it"),
    )
    broken = [(name, rule) for kept, name, rule in rules if not kept]
    return [f"{name} is {getattr(p, name)!r}, and must be {rule}" for name, rule in broken]
