"""The states of an agent run, as one table: what may become of it, and what is told then.

Rules: completed and cancelled are final; whoever makes a move names it, and the store looks into
this table in the statement that makes the move. A run whose lease is over counts as queued.

    MOVES["answer"].target           # 'queued'
    possible("failed")               # ['retry']
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from .errors import RecoveryError

QUEUED: Final = "queued"
RUNNING: Final = "running"
AWAITING: Final = "awaiting_input"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
STATES: Final = (QUEUED, RUNNING, AWAITING, COMPLETED, FAILED, CANCELLED)
ENDED: Final = (COMPLETED, FAILED, CANCELLED)  # where a stream of events ends


WORKER: Final = "worker"
OWNER: Final = "owner"
TIME: Final = "time"


class Move(NamedTuple):
    """From each of `sources` to `target`, made `by` whom; `event` is told of it, if any."""

    sources: tuple[str, ...]
    target: str
    by: str
    event: str = ""


MOVES: Final[Mapping[str, Move]] = {
    "submit": Move((), QUEUED, OWNER, "run_created"),
    "claim": Move((QUEUED,), RUNNING, WORKER, "run_started"),
    "step": Move((RUNNING,), RUNNING, WORKER, "node_finished"),
    "ask": Move((RUNNING,), AWAITING, WORKER, "awaiting_input"),
    "answer": Move((AWAITING,), QUEUED, OWNER, "input_received"),
    "finish": Move((RUNNING,), COMPLETED, WORKER, "run_completed"),
    "fail": Move((RUNNING,), FAILED, WORKER, "run_failed"),
    "retry": Move((FAILED,), QUEUED, OWNER),
    "cancel": Move((QUEUED, RUNNING, AWAITING), CANCELLED, OWNER, "run_cancelled"),
    "hand back": Move((RUNNING,), QUEUED, WORKER),  # at a shutdown
    "expire": Move((RUNNING,), QUEUED, TIME),  # the lease is over
}


class RunError(RecoveryError):
    """Base of what is said about agent runs."""


class UnknownRun(RunError, LookupError):
    """No run of yours has this id: look it up in the list of your runs."""


class RunExists(RunError):
    """A run of this id is there already: take another id, or look at that one."""


class IllegalMove(RunError):
    """The run's state does not allow it: the message says what it is and what is possible."""


class LeaseLost(RunError):
    """The run is another's by now, or nobody's, or has gone on: stop; the message says which."""


def possible(state: str) -> list[str]:
    """What the run's owner may do in a state, in the order of the table. Raises `RunError`."""
    if state not in STATES:
        raise RunError(f"there is no state {state!r:.60}; there is: {', '.join(STATES)}")
    return [name for name, move in MOVES.items() if state in move.sources and move.by == OWNER]


def refused(run_id: str, state: str, move: str) -> IllegalMove:
    """The error for a move that the state does not allow."""
    ways = " or ".join(possible(state)) or "nothing any more"
    return IllegalMove(f"{move}: run {run_id!r} is {state}; possible is {ways}")
