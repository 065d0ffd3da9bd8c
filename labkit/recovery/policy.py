"""The choices of a retry and of an execution, each as one value that is checked when it is made.

retry = RetryPolicy(retry_on=TRANSIENT, attempts=3, stall=10.0)
ExecutionPolicy(retry=retry, limit=5.0, lease=20.0)
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Final

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
        amounts = no_amounts(self, but=("retry_on",), whole=("attempts",))
        if wrong := _unknown(self.retry_on) or amounts or _contradictions(self):
            raise PolicyError("; ".join(wrong))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPolicy:
    """How far an executor goes. Times in seconds.

    `retry`: attempts, waits, and the kinds of error that another try may mend. `limit`: of one try;
    `cost`: what one costs, in the budget's unit. `look_ups`, `look_up_wait`: how often a service is
    asked what became of a request, and the wait between. `lease`: how long a claim outlives its
    executor. `ttl`: how long a result is kept for repeats. `join`: how long a repeat waits for a
    call that is still running. Raises `PolicyError` that names each wrong field.
    """

    retry: RetryPolicy
    limit: float = 10.0
    cost: float = 0.0
    look_ups: int = 4
    look_up_wait: float = 1.0
    lease: float = 30.0
    ttl: float = 86_400.0
    join: float = 0.0

    def __post_init__(self) -> None:
        times = ("limit", "look_ups", "look_up_wait", "lease")
        if wrong := no_amounts(self, but=("retry",), whole=("look_ups",), above_0=times):
            raise PolicyError("; ".join(wrong))


def _unknown(kinds: frozenset[str]) -> list[str]:
    if "deadline" in kinds:
        return ["retry_on: after the deadline there is no time for another try"]
    known = f"there is: {', '.join(KINDS)}"
    return [f"retry_on: no kind {kind!r}; {known}" for kind in sorted(kinds - set(KINDS))]


def _contradictions(policy: RetryPolicy) -> list[str]:
    p = policy
    rules = (
        (p.attempts >= 1, "attempts", "a whole number from 1"),
        (p.factor >= 1, "factor", "at least 1, or the backoff would shrink"),
        (p.max_wait >= p.first_wait, "max_wait", f"at least first_wait ({p.first_wait!r})"),
        (0 <= p.jitter <= 1, "jitter", "a share from 0 to 1"),
        (p.stall > 0, "stall", "above 0"),
        (p.total > 0, "total", "above 0"),
        (p.stall <= p.total, "stall", f"at most total ({p.total!r}), which would hide it"),
    )
    broken = [(name, rule) for kept, name, rule in rules if not kept]
    return [f"{name} is {getattr(p, name)!r}, and must be {rule}" for name, rule in broken]


def no_amounts(
    record: Any, *, but: Iterable[str] = (), whole: Iterable[str] = (), above_0: Iterable[str] = ()
) -> list[str]:
    """Each field of a record that is no amount, in words; all but those named are to be one."""
    wrong = []
    for name in (field.name for field in fields(record) if field.name not in but):
        value = getattr(record, name)
        kind = "a whole number" if name in whole else "a number"
        if not is_amount(value) or (name in whole and not isinstance(value, int)):
            least = "above 0 up" if name in above_0 else "from 0"
            wrong.append(f"{name} is {value!r}, and must be {kind} {least} to {MOST:g}")
        elif name in above_0 and value == 0:
            wrong.append(f"{name} is {value!r}, and must be above 0")
    return wrong


def is_amount(value: object) -> bool:
    """Whether it is a number from 0 to `MOST`, which True and nan are not."""
    return type(value) in (int, float) and 0 <= value <= MOST  # type: ignore[operator]  # a number
