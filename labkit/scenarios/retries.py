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

GUARD: Final = ("retry guard",)
SEEN: Final = ("has streamed", *GUARD)
SEGMENT: Final = (*SEEN, "new segment")

_SWALLOWS: Final = partial(clients.stopped, client=clients.swallows_the_cancel, seconds=STOP_AT)

# Name -> script, client, breakpoints of interest; in the order of the lesson.
_RUNS: Final[dict[str, tuple[str, clients.Client, tuple[str, ...]]]] = {
    "naive": ("error-after-text", clients.starts_over, ()),
    "guarded": ("error-after-text", clients.careful, SEEN),
    "rate_limit": ("rate-limit-first", clients.careful, GUARD),
    "thinking": ("thinking-first", clients.careful, GUARD),
    "stall": ("stall-after-text", clients.with_segments, SEGMENT),
    "stall_plain": ("stall-after-text", clients.careful, GUARD),
    "glued": ("stall-after-text", clients.glues_segments, SEGMENT),
    "quota": ("quota", clients.careful, GUARD),
    "misleading": ("misleading-message", clients.careful, GUARD),
    "down": ("server-down", clients.careful, GUARD),
    "rising": ("rising-retry-after", clients.careful, GUARD),
    "half_call": ("half-tool-call", clients.careful, GUARD),
    "cut_off": ("cut-off", clients.takes_the_end_for_success, ()),
    "cut_off_guarded": ("cut-off", clients.careful, SEEN),
    "hammer": ("rising-retry-after", clients.hammers, ()),
    "storm": ("server-down", clients.hammers, ()),
    "swallow": ("plain-answer", _SWALLOWS, ()),
    "forgotten": ("plain-answer", clients.forgets_a_task, ()),
    "late": ("plain-answer", clients.waits_for_whole_words, ()),
    "many_scripts": ("many-scripts", clients.careful, ()),
}

_CLAIMS: Final = {
    "naive": "a retry loop around the whole stream says the beginning twice",
    "guarded": "after visible text an ordinary failure is not retried",
    "rate_limit": "a refusal before the first delta is retried after the wait asked for",
    "thinking": "role, thinking and empty text are not visible, so the failure is retried",
    "stall": "a stall after visible text opens a new segment",
    "stall_plain": "a page without segments ends at a stall, unfinished, and keeps the text",
    "glued": "a new segment written into the old one says the beginning twice",
    "quota": "a 429 because the quota is used up is not retried",
    "misleading": "the message of an error is shown, never read",
    "down": "attempts run out and the last error leaves with a note",
    "rising": "each refusal's own Retry-After is obeyed",
    "half_call": "half a tool call is not visible, so the attempt is made again",
    "cut_off": "a clean end without a finish reason passes for a whole answer",
    "cut_off_guarded": "a clean end without a finish reason is an interruption",
    "hammer": "retries without a wait ignore what the provider asked for",
    "storm": "retries without a wait are a storm for a server that is down",
    "swallow": "a cancellation turned into an error text is no cancellation",
    "forgotten": "a task that nobody awaits outlives the answer",
    "late": "a page that waits for whole words loses the last one",
    "many_scripts": "Chinese, emoji and right-to-left text arrive as they were said",
}


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [
        Scenario(
            name=f"retry.{name}",
            claim=_CLAIMS[name],
            script=load(script),
            make=FakeProvider,
            client=client,
            policy=RISING if name == "rising" else POLICY,
            judges=STREAM_JUDGES,
            source=(retry, retry_after),
            breakpoints=marks,
        )
        for name, (script, client, marks) in _RUNS.items()
    ]
