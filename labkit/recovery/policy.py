"""The choices of a retry, as one value that is checked when it is made.

    RetryPolicy(retry_on=TRANSIENT, attempts=3, stall=10.0)
"""

import math
from dataclasses import dataclass, fields

from .errors import KINDS, PolicyError


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often, how long and for which kinds of error to try again; times in seconds.

    `retry_on`: the kinds of error that another try may mend; the caller's own choice, so it has no
    default (`TRANSIENT` is the usual one). `attempts`: how many in all, the first included.
    `first_wait`, `factor`, `max_wait`: the backoff before the second attempt, its growth and its
    cap. `jitter`: the share of each backoff that chance may take off, 0 to 1. `retry_after_cap`:
    a longer wait asked for by the provider ends the run instead. `stall`: how long the stream may
    say nothing. `total`: the time for everything, waits included.
    """

    retry_on: frozenset[str]
    attempts: int = 4
    first_wait: float = 1.0
    factor: float = 2.0
    max_wait: float = 30.0
    jitter: float = 0.5
    retry_after_cap: float = 120.0
    stall: float = 30.0
    total: float = 300.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "retry_on", frozenset(self.retry_on))
        for wrong in _contradictions(self):
            raise PolicyError(wrong)


def _contradictions(policy: RetryPolicy) -> list[str]:
    numbers = {f.name: getattr(policy, f.name) for f in fields(policy) if f.name != "retry_on"}
    unknown = sorted(set(policy.retry_on) - set(KINDS))
    wrong = [f"retry_on: no kind {kind!r}; there is: {', '.join(KINDS)}" for kind in unknown]
    wrong += [
        f"{name}: {value!r} is not a finite number"
        for name, value in numbers.items()
        if isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
    ]
    if wrong:
        return wrong
    checks = {
        "attempts: at least 1, a whole number": policy.attempts == int(policy.attempts) >= 1,
        "first_wait: not below 0": policy.first_wait >= 0,
        "factor: at least 1, or the backoff would shrink": policy.factor >= 1,
        "max_wait: not below first_wait": policy.max_wait >= policy.first_wait,
        "jitter: a share from 0 to 1": 0 <= policy.jitter <= 1,
        "retry_after_cap: not below 0": policy.retry_after_cap >= 0,
        "stall: above 0": policy.stall > 0,
        "total: above 0": policy.total > 0,
        "stall: not above total, which would hide it": policy.stall <= policy.total,
    }
    return [f"{rule} (given: {_given(rule, numbers)})" for rule, kept in checks.items() if not kept]


def _given(rule: str, numbers: dict[str, float]) -> str:
    name = rule.partition(":")[0]
    return f"{name}={numbers[name]!r}"
