"""An agent run as it is stored, one event of it, and what a worker holds.

run.status, run.seq, run.checkpoint        # ('running', 4, {'node': 'critic'})
held.run, held.lease                       # what each write of its worker names
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from labkit.recovery.errors import PolicyError
from labkit.recovery.lease import Lease
from labkit.recovery.policy import is_amount
from labkit.recovery.run_states import RunError
from labkit.recovery.stream.record import Owner

MOST: Final = 200  # characters of a name


class BadRun(RunError, ValueError):
    """What was given is not what is wanted: nothing was asked or written; see what to give."""


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


_WANTED: Final[dict[type, str]] = {
    Owner: "the Owner of the run, such as Owner('ann', 'acme')",
    Held: "the Held that a claim, or the last write, has given",
    dict: "a dict",
    int: "a whole number from 0",
    str: "a text",
}


def wants(kind: type, /, **given: object) -> None:
    """Refuse what is no `kind` at the door; its name is that of the argument. Raises `BadRun`."""
    for name, value in given.items():
        if not isinstance(value, kind) or (kind is int and not is_amount(value)):
            raise BadRun(f"{name} is {value!r:.60}, and must be {_WANTED[kind]}")


def must_name(worker: str) -> None:
    """Refuse what is no name of a worker. Raises `PolicyError`."""
    if not (isinstance(worker, str) and worker):
        told = "give each worker a name that no other has"
        raise PolicyError(f"worker is {worker!r:.60}, and must be a text: {told}")


def jobs_wanted(jobs: Collection[str] | None) -> None:
    """Refuse what is no list of names of jobs; None stands for all. Raises `BadRun`."""
    if isinstance(jobs, str) or not isinstance(jobs, Collection | None):
        raise BadRun(f"jobs is {jobs!r:.60}, and must be a list of names, or None for all")
    for job in jobs or ():
        wants(str, job=job)


def named(run_id: str, owner: Owner, *, job: str, model: str) -> dict[str, str]:
    """The names of a new run, as they are stored. Raises `BadRun`."""
    wants(Owner, owner=owner)
    names = {"run_id": run_id, "tenant": owner.tenant, "user": owner.user, "job": job}
    for name, value in {**names, "model": model}.items():
        if not isinstance(value, str) or len(value) > MOST or not (value or name == "model"):
            raise BadRun(f"{name} is {value!r:.60}, and must be a text of 1 to {MOST} characters")
    if not _is_plain(run_id):
        raise BadRun(f"run_id is {run_id!r:.60}, and must have no NUL and no half of a pair")
    return {**names, "model": model}


def _is_plain(text: str) -> bool:
    """Whether it can stand in an address, a log and a file: an id has to."""
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)
