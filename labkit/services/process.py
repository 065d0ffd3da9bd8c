"""The service in a process of its own, which ends with its parent, however that ends.

    with serve(load("drop-after-text"), cuts=[Cut("mid_frame", after=3)]) as service:
        service.address             # http://127.0.0.1:40613: open it in a browser

Every answer plays the script from its first attempt; each request for it plays the next one.
"""

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from labkit.providers.fake import FakeProvider
from labkit.providers.process import Running, ServerError, running
from labkit.providers.script import Script
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.stream.continuation import Request
from labkit.recovery.stream.receiving import Ask, Services
from labkit.simulation.world import unheard

from .answers import Answers
from .cuts import Cut

if TYPE_CHECKING:
    import uvicorn

POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, first_wait=0.5)


def serve(
    script: Script,
    *,
    port: int = 0,
    store: str = "memory:",
    cuts: Sequence[Cut] = (),
    speed: float = 1.0,
    policy: RetryPolicy = POLICY,
    **services: Any,
) -> AbstractContextManager[Running]:
    """Serve answers made of `script` for the length of the block; `store` is a URL.

    Connection n to the events of an answer gets the n-th of `cuts`, and a whole stream after the
    last. `speed` divides the script's waits. More `services`: `can_continue`, `limits`. Raises
    `ServerError` when it could not start.
    """
    if not isinstance(script, Script) or not all(isinstance(cut, Cut) for cut in cuts):
        raise ServerError("give it a script, as of labkit.scenarios.scripts.load, and cuts of Cut")
    given = {"policy": policy, **services}
    return running(__name__, script, store, tuple(cuts), speed, given, port=port)


def serving(
    script: Script, store: str, cuts: tuple[Cut, ...], speed: float, given: dict[str, Any]
) -> "uvicorn.Server":
    """What the process runs; the store is open for as long as it lives."""
    from labkit.providers.server import hosting  # the parent has no use for these libraries
    from labkit.stores import open_stream_store

    from .app import application

    ask = asking(script, speed=speed)
    made = partial(Services, ask=ask, random=Random(), observe=_say_what_failed, **given)
    return hosting(application(Answers(open_stream_store(store), made), cuts=cuts))


def _say_what_failed(kind: str, **details: Any) -> None:
    if kind == "failed":
        print(f"labkit: a request failed with {details['error']}", file=sys.stderr, flush=True)


def asking(script: Script, *, speed: float = 1.0) -> Ask:
    """A model that plays attempt n of the script to the n-th request of each answer."""
    observe = unheard("provider")

    def ask(request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
        played = replace(script, attempts=(script.attempt(attempt),))
        return FakeProvider(played, observe, speed=speed).stream()

    return ask
