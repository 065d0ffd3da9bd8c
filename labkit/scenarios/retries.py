"""Scenarios of the retry boundary: what may be tried again, and what must not."""

from functools import partial
from typing import Final

from labkit.providers.fake import FakeProvider
from labkit.recovery import retry, retry_after
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.simulation import STREAM_JUDGES, Scenario

from . import clients
from .catalogue import load

POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0)
RISING: Final = RetryPolicy(retry_on=TRANSIENT, attempts=5, first_wait=2.0, factor=1.0, jitter=0)
STOP_AT: Final = 0.8  # virtual seconds: after the first text of "plain-answer"


def _scenario(name: str, script: str, client: clients.Client, claim: str, *marks: str) -> Scenario:
    return Scenario(
        name=f"retry.{name}",
        claim=claim,
        script=load(script),
        make=FakeProvider,
        client=client,
        policy=POLICY,
        judges=STREAM_JUDGES,
        source=(retry, retry_after),
        breakpoints=marks,
    )


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [
        _scenario(
            "naive",
            "error-after-text",
            clients.starts_over,
            "a retry loop around the whole stream says the beginning twice",
        ),
        _scenario(
            "guarded",
            "error-after-text",
            clients.careful,
            "after visible text an ordinary failure is not retried",
            "has streamed",
            "retry guard",
        ),
        _scenario(
            "rate_limit",
            "rate-limit-first",
            clients.careful,
            "a refusal before the first delta is retried after the wait asked for",
            "retry guard",
        ),
        _scenario(
            "thinking",
            "thinking-first",
            clients.careful,
            "role, thinking and empty text are not visible, so the failure is retried",
            "retry guard",
        ),
        _scenario(
            "stall",
            "stall-after-text",
            clients.with_segments,
            "a stall after visible text opens a new segment",
            "has streamed",
            "retry guard",
            "new segment",
        ),
        _scenario(
            "stall_plain",
            "stall-after-text",
            clients.careful,
            "a page without segments ends at a stall, unfinished, and keeps the text",
            "retry guard",
        ),
        _scenario(
            "glued",
            "stall-after-text",
            clients.glues_segments,
            "a new segment written into the old one says the beginning twice",
            "has streamed",
            "retry guard",
            "new segment",
        ),
        _scenario(
            "quota",
            "quota",
            clients.careful,
            "a 429 for want of money is not retried",
            "retry guard",
        ),
        _scenario(
            "misleading",
            "misleading-message",
            clients.careful,
            "the message of an error is shown, never read",
            "retry guard",
        ),
        _scenario(
            "down",
            "server-down",
            clients.careful,
            "attempts run out and the last error leaves with a note",
            "retry guard",
        ),
        _scenario(
            "rising",
            "rising-retry-after",
            clients.careful,
            "each refusal's own Retry-After is obeyed",
            "retry guard",
        ).but(policy=RISING),
        _scenario(
            "half_call",
            "half-tool-call",
            clients.careful,
            "half a tool call is not visible, so the attempt is made again",
            "retry guard",
        ),
        _scenario(
            "cut_off",
            "cut-off",
            clients.takes_the_end_for_success,
            "a clean end without a finish reason passes for a whole answer",
        ),
        _scenario(
            "cut_off_guarded",
            "cut-off",
            clients.careful,
            "a clean end without a finish reason is an interruption",
            "has streamed",
            "retry guard",
        ),
        _scenario(
            "hammer",
            "rising-retry-after",
            clients.hammers,
            "retries without a wait ignore what the provider asked for",
        ),
        _scenario(
            "storm",
            "server-down",
            clients.hammers,
            "retries without a wait are a storm for a server that is down",
        ),
        _scenario(
            "swallow",
            "plain-answer",
            partial(clients.stopped, client=clients.swallows_the_cancel, seconds=STOP_AT),
            "a cancellation turned into an error text is no cancellation",
        ),
        _scenario(
            "forgotten",
            "plain-answer",
            clients.forgets_a_task,
            "a task that nobody awaits outlives the answer",
        ),
        _scenario(
            "late",
            "plain-answer",
            clients.waits_for_whole_words,
            "a page that waits for whole words loses the last one",
        ),
        _scenario(
            "many_scripts",
            "many-scripts",
            clients.careful,
            "Chinese, emoji and right-to-left text arrive as they were said",
        ),
    ]
