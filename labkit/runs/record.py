"""An agent run as it is stored, one event of it, and what a worker holds.

run.status, run.seq, run.checkpoint        # ('running', 4, {'node': 'critic'})
held.run, held.lease                       # what each write of its worker names
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from labkit.recovery.lease import Lease
from labkit.recovery.run_states import RunError
from labkit.recovery.stream.record import Owner

MOST: Final = 200  # characters of a name


class BadRun(RunError, ValueError):
    """A run needs names that are texts: give the one that the message names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRun:
    """One agent run; the authority for whoever asks how it is.

    `job` names what is done with what was `given`, by `model`. `checkpoint`: where the job said
    that it can go on, None before its first step. `question` waits for a person where the state is
    awaiting_input; `answer` is what was said, until a step has used it. `seq`: the newest event's
    number.
    `worker`, `fence`, `until`: of the newest claim; nobody holds it where `worker` is None.
    `starts`: claims since a step was done. Times in seconds of the store's clock.
    """

    run_id: str
    owner: Owner
    job: str
    given: Any
    model: str
    status: str
    checkpoint: Any
    question: str | None
    answer: str | None
    result: Any
    end_reason: str | None
    error_code: str | None
    error_message: str | None
    worker: str | None
    fence: int
    starts: int
    until: float | None
    seq: int
    created: float
    updated: float


class RunEvent(NamedTuple):
    """One event of a run: its number from 1, its type, its details, and its time."""

    seq: int
    type: str
    data: dict[str, Any]
    at: float


class Held(NamedTuple):
    """A run as its worker knows it, and the lease on which it works."""

    run: AgentRun
    lease: Lease


def named(run_id: str, owner: Owner, *, job: str, model: str) -> dict[str, str]:
    """The names of a new run, as they are stored. Raises `BadRun`."""
    names = {"run_id": run_id, "tenant": owner.tenant, "user": owner.user, "job": job}
    for name, value in {**names, "model": model}.items():
        if not isinstance(value, str) or len(value) > MOST or not (value or name == "model"):
            raise BadRun(f"{name} is {value!r:.60}, and must be a text of 1 to {MOST} characters")
    return {**names, "model": model}
