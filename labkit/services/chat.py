"""An answer as an OpenAI-shaped stream: a delta is a chunk, and `[DONE]` follows a finish reason.

What was sent cannot be taken back on this wire. So nothing is sent that a retry would make void,
and after the first visible text there is no retry: a failure, a stall too, ends the stream as
unfinished, with an error object in it, and with neither `[DONE]` nor a finish reason. A failure
before anything was sent is an HTTP error.

    pieces = answer(steps(open_stream, policy=policy, random=random))    # of `providers.wire`
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from random import Random
from typing import Final

from labkit.providers.script import Step
from labkit.recovery.deltas import Boundary, Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import Observe, OpenStream, stream_with_retry

_STATUS: Final = {"rate_limit": 429, "overloaded": 503, "stall": 504, "timeout": 504}
UNFINISHED: Final = "the answer is unfinished: what came of it stays a draft"
REFUSED: Final = "no answer could be had: try again later"


async def steps(
    open_stream: OpenStream, *, policy: RetryPolicy, random: Random, observe: Observe
) -> AsyncGenerator[Step, None]:
    """What is sent, as the steps of a script. A cancel, or leaving early, ends the provider's."""
    held: list[Delta] = []
    begun = False
    pieces = stream_with_retry(open_stream, policy=policy, random=random, observe=observe)
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Boundary):
                    held.clear()  # half a call of the attempt before, which nobody has seen
                    continue
                held.append(piece)
                begun = begun or piece.visible or piece.kind == "finish"
                while begun and held:
                    yield _step(held.pop(0))
    except ProviderError as error:
        yield _failed(error.kind, begun)
    except Exception as error:
        observe("failed", error=type(error).__name__)
        yield _failed("server", begun)


def _step(delta: Delta) -> Step:
    return Step("finish" if delta.kind == "finish" else "say", delta=delta)


def _failed(kind: str, begun: bool) -> Step:
    """Neither the provider's message nor its status leaves: they may name keys that are ours."""
    if begun:
        return Step("error", code=kind, message=UNFINISHED)
    return Step("http_error", status=_STATUS.get(kind, 502), code=kind, message=REFUSED)
