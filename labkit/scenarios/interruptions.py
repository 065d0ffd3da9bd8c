"""Three interruptions that look alike: a refusal, a failure after text, and the user's stop.

Each runs the same turn (a tool, then an answer) against another script. The memory of a
well-known runtime stands beside labkit's, to compare.
"""

import asyncio
from functools import partial
from typing import Any, Final

from labkit.recovery import retry, retry_after, turn
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.turn import Session, run_turn
from labkit.simulation import Observer, Scenario

from .clients import as_task
from .rows import scenario

QUESTION: Final = "Where is my refund?"
STOP_AT: Final = 3.5  # virtual seconds: after the first text of "tool-then-slow-answer"


async def one_turn(
    provider: Any,
    policy: RetryPolicy,
    observe: Observer,
    *,
    stop_at: float | None = None,
    memory: type[Session] = Session,
) -> Session:
    """One turn as a task of its own, stopped at `stop_at` where that is given."""
    session = memory(observe.of("session"))
    work = run_turn(
        QUESTION,
        session,
        open_stream=provider.stream,
        tool=partial(look_up, observe),
        show=lambda text: observe.of("page")("shown", text=text),
        policy=policy,
        random=observe.random,
        observe=observe.of("turn"),
        now=observe.now,
    )
    task = await as_task(work, "turn", observe, stop_at=stop_at)
    error = None if task.cancelled() else task.exception()
    if isinstance(error, ProviderError):
        observe.of("page")("status", text="interrupted")
    elif error is not None:
        raise error
    return session


async def look_up(observe: Observer, name: str, arguments: str) -> str:
    """The turn's one tool: half a second, and an effect in the ledger."""
    await asyncio.sleep(0.5)
    observe.effect("look_up", arguments=arguments)
    return "refund sent on Monday"


class Forgetful(Session):
    """As a well-known runtime does it: text that was shown and then interrupted is not stored."""

    def keep_draft(self, text: str, reason: str) -> None:
        """Lose it."""


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
    memory: type[Session] = Session,
) -> Scenario:
    told = {"claim": claim, "script": script, "breakpoints": breakpoints}
    client = partial(one_turn, stop_at=stop_at, memory=memory)
    source = (retry, retry_after, turn)
    made = scenario(f"interruption.{name}", told, client=client, source=source)
    if memory is Session:
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
