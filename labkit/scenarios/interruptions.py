"""Three interruptions that look alike: a refusal, a failure after text, and the user's stop.

Each runs the same turn (a tool, then an answer) against another script. The memory of a
well-known runtime stands beside labkit's, to compare.
"""

import asyncio
from functools import partial
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.recovery import retry, retry_after, turn
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.turn import Session, run_turn, stop
from labkit.simulation import STREAM_JUDGES, Observer, Scenario

from .catalogue import load

POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0)
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
    task = asyncio.create_task(work, name="turn")
    if stop_at is not None:
        await asyncio.sleep(stop_at)
        observe.of("user")("cancel", task="turn")
        await stop(task)
    await asyncio.wait([task])
    observe.of("lab")("end", task="turn", outcome=_outcome(task))
    if not task.cancelled() and task.exception() is not None:
        observe.of("page")("status", text="interrupted")
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


def _outcome(task: asyncio.Task[Any]) -> str:
    if task.cancelled():
        return "cancelled"
    return "error" if task.exception() is not None else "result"


def _scenario(
    name: str,
    script: str,
    claim: str,
    stop_at: float | None,
    memory: type[Session] = Session,
) -> Scenario:
    return Scenario(
        name=f"interruption.{name}",
        claim=claim,
        script=load(script),
        make=FakeProvider,
        client=partial(one_turn, stop_at=stop_at, memory=memory),
        policy=POLICY,
        judges=STREAM_JUDGES,
        source=(retry, retry_after, turn),
        breakpoints=("checkpoint saved", "retry guard", "draft kept", "interruption leaves"),
    )


def scenarios() -> list[Scenario]:
    """The three, then the same three on the turn that forgets."""
    three = [_scenario(name, script, claim, stop_at) for name, script, claim, stop_at in _THREE]
    forgetful = [
        _scenario(f"{name}_forgetful", script, claim, stop_at, Forgetful)
        for name, script, claim, stop_at in _THREE
    ]
    return three + forgetful


_THREE: Final = (
    ("rate_limit", "rate-limit-then-tool", "refused before the first delta", None),
    ("error", "tool-then-error-after-text", "fails after text was shown", None),
    ("stop", "tool-then-slow-answer", "the user stops the answer", STOP_AT),
)
