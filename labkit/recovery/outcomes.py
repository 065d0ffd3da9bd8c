"""How one operation ended: ten words that must not be told as two.

"It worked" and "it failed" hide what the model, the user and the books have to know: whether this
call did it, an earlier one did, nobody did, or nobody can say.

    outcome.status                 # "reused"
    outcome.told                   # what the model reads
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .errors import RecoveryError

SUCCEEDED: Final = "succeeded"  # this call did it
REUSED: Final = "reused"  # an earlier one had done it
DEDUPLICATED: Final = "deduplicated"  # another call is doing it
RECONCILED: Final = "reconciled"  # it was done, as the service says
UNKNOWN: Final = "unknown"  # it may have been done
TIMED_OUT: Final = "timed out"  # the time ran out, and it was not done
FAILED: Final = "failed"  # it was not done
REJECTED: Final = "rejected"  # it was never sent
EXHAUSTED: Final = "budget exhausted"  # it was not done, and nobody may try again
MANUAL: Final = "manual intervention"  # it may have been done, and a person has to find out

# status -> what the model is told, before the details
_TOLD: Final[Mapping[str, str]] = {
    SUCCEEDED: "Done.",
    REUSED: "This was done before, and not again; its result was:",
    DEDUPLICATED: "The same call was under way already, and was not made again.",
    RECONCILED: "Done: the answer was lost, and the service confirms it. Its result is:",
    UNKNOWN: "It may have been done. Do not call it again, and do not say that it failed.",
    TIMED_OUT: "Not done: the time ran out.",
    FAILED: "Not done.",
    REJECTED: "Not sent.",
    EXHAUSTED: "Not done, and no more tries are left.",
    MANUAL: "It may have been done, and a person finds out. Do not call it again.",
}
STATUSES: Final = tuple(_TOLD)
DONE: Final = (SUCCEEDED, REUSED, RECONCILED)
OPEN: Final = (UNKNOWN, MANUAL, DEDUPLICATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try: `error` is its class or "", `sent` whether the request may have gone out.

    `elapsed`: seconds that it took; `waited`: those before it.
    """

    number: int
    error: str = ""
    sent: bool = True
    elapsed: float = 0.0
    waited: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How it ended, how that came about, and every try; `digest` stands for the key."""

    status: str
    how: str = ""
    result: str = ""
    digest: str = ""
    attempts: tuple[Attempt, ...] = ()
    error: Exception | None = None

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            known = ", ".join(STATUSES)
            raise RecoveryError(f"no outcome has the status {self.status!r}; there is: {known}")

    @property
    def told(self) -> str:
        """What the model reads: the status in words, then the result or the reason."""
        reason = "" if self.status in DONE or not self.how else f" Reason: {self.how}."
        tries = f" (attempt {len(self.attempts)})" if len(self.attempts) > 1 else ""
        return f"{_TOLD[self.status]}{tries} {self.result}".rstrip() + reason
