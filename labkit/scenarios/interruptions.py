"""Three interruptions that look alike: a refusal, a failure after text, and the user's stop.

Each runs the same turn (a tool, then an answer) against another script. The memory of a
well-known runtime stands beside labkit's, to compare.
"""

from dataclasses import replace
from functools import partial
from typing import Final

from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import Session
from labkit.simulation import STREAM_JUDGES, Observer, Scenario

from .clients import as_task
from .office import QUESTION, Office
from .rows import TURNS, scenario
from .session_judges import SESSION_JUDGES

STOP_AT: Final = 3.5  # virtual seconds: after the first text of "tool-then-slow-answer"


async def one_turn(
    office: Office,
    policy: RetryPolicy,
    observe: Observer,
    *,
    stop_at: float | None = None,
) -> Session:
    """One turn as a task of its own, stopped at `stop_at` where that is given."""
    work = office.turn(QUESTION, policy)
    task = await as_task(work, "turn", observe, stop_at=stop_at)
    error = None if task.cancelled() else task.exception()
    if isinstance(error, ProviderError):
        observe.of("page")("status", text="interrupted")
    elif error is not None:
        raise error
    return office.store.load("ann")


class Forgetful(Checkpointer):
    """As a well-known runtime does it: text that was shown and then interrupted is not stored."""

    async def save(self, changed: Session, step: str = "") -> None:
        """Save all but the drafts."""
        turn = changed.turn and replace(changed.turn, draft="")
        await super().save(replace(changed, turn=turn, drafts=()), step)


def scenarios() -> list[Scenario]:
    """The three, then the same three on the turn that forgets."""
    three = [_scenario(*row) for row in _THREE]
    forgetful = [_scenario(*row, memory=Forgetful) for row in _THREE]
    return three + forgetful


def _scenario(
    name: str,
    script: str,
    claim: str,
    stop_at: float | None,
    breakpoints: tuple[str, ...],
    *,
    memory: type[Checkpointer] = Checkpointer,
) -> Scenario:
    told = {"claim": claim, "script": script, "breakpoints": breakpoints}
    client = partial(one_turn, stop_at=stop_at)
    made = scenario(
        f"interruption.{name}",
        told,
        make=partial(Office, memory=memory),
        client=client,
        judges=STREAM_JUDGES + SESSION_JUDGES,
        source=TURNS,
    )
    if memory is Checkpointer:
        return made
    reached = tuple(name for name in breakpoints if name != "draft kept")
    return made.but(name=f"interruption.{name}_forgetful", breakpoints=reached)


_GUARD: Final = ("checkpoint saved", "retry guard", "has streamed")
_LEAVES: Final = ("draft kept", "interruption leaves")
_SEEN: Final = ("checkpoint saved", "has streamed")

# name, script, claim, when the user stops, breakpoints
_THREE: Final = (
    ("rate_limit", "rate-limit-then-tool", "refused before the first delta", None, _GUARD),
    (
        "error",
        "tool-then-error-after-text",
        "fails after text was shown",
        None,
        (*_SEEN, "retry guard", *_LEAVES),
    ),
    ("stop", "tool-then-slow-answer", "the user stops the answer", STOP_AT, (*_SEEN, *_LEAVES)),
)
