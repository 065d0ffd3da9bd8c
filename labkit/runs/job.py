"""What a job is: an async generator that yields its steps, and goes on from its last checkpoint.

Rules: what a step has done is kept when it is yielded, so a step that was under way when its worker
died is done again: its effects need keys. A job asks by yielding a question, and is called anew
with the answer.

    async def count(work):
        for number in range(work.run.checkpoint or 0, 3):
            yield Step("count", {"number": number}, checkpoint=number + 1)
        yield Done("counted")
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any

from labkit.recovery.renewal import Renewal

from .record import AgentRun


@dataclass(frozen=True, slots=True)
class Work:
    """What a job is given: its `run` as it was claimed, its `fence`, and the lease beside it.

    `renewal.lost_by_now()` is for whoever is about to do what cannot be undone.
    """

    run: AgentRun
    fence: int
    renewal: Renewal


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is done: its name, what is told of it, and where to go on after it."""

    node: str
    data: dict[str, Any] = field(default_factory=dict)
    checkpoint: Any = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A question for a person, and what else its event tells: the run waits, and no worker does."""

    question: str
    checkpoint: Any = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """The run is done; `reason` says how it came to its end."""

    result: Any = None
    reason: str = "done"


Job = Callable[[Work], AsyncGenerator[Step | Ask | Done, None]]
