"""What an unmodified `openai` client does on the same scripts, with its own two retries.

Beside it the same client without retries of its own, under labkit's: `..._guarded`. Nothing here
imports the SDK before a scenario runs; without it a run ends in `SDKMissing`, which says the cure.
"""

import platform
from functools import partial
from types import ModuleType
from typing import Any, Final

from labkit.providers.script import Script
from labkit.recovery import retry, retry_after
from labkit.recovery.errors import TRANSIENT, RecoveryError
from labkit.recovery.policy import RetryPolicy
from labkit.simulation import STREAM_JUDGES, Observer, Scenario

from . import clients
from .catalogue import load

POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0)


class SDKMissing(RecoveryError):
    """The `openai` SDK is not installed: run `python -m pip install -e '.[sdk]'`."""


async def unmodified(client: Any, policy: Any, observe: Observer) -> None:
    """The client as its documentation shows it: ask, and show each text as it comes."""
    page = observe.of("page")
    question = [{"role": "user", "content": "Where is my refund?"}]
    stream = await client.chat.completions.create(model="any", messages=question, stream=True)
    async for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content:
                page("shown", text=choice.delta.content)


def make_client(script: Script, observe: Observer) -> Any:
    """The client as it is, on a script."""
    return _sdk().scripted(script, observe)


def make_provider(script: Script, observe: Observer) -> Any:
    """The client without retries of its own, made to look like the fake provider."""
    sdk = _sdk()
    return sdk.SDKProvider(sdk.scripted(script, observe, max_retries=0))


def _sdk() -> ModuleType:
    try:
        from labkit.providers import sdk
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("labkit"):
            raise
        cure = "python -m pip install -e '.[sdk]'"
        raise SDKMissing(f"the openai SDK is not installed: run {cure}") from missing
    return sdk


def scenarios() -> list[Scenario]:
    """The client as it is, then under labkit's retry."""
    platform.platform()  # the client asks; the first answer needs a process, later ones do not
    raw = [_scenario(name, script, claim) for name, script, claim in _RAW]
    guarded = [
        _scenario(f"{name}_guarded", script, claim).but(
            make=make_provider,
            client=partial(clients.careful, segments=True),
            source=(retry, retry_after),
            breakpoints=marks,
        )
        for name, script, claim, marks in _GUARDED
    ]
    return raw + guarded


def _scenario(name: str, script: str, claim: str) -> Scenario:
    return Scenario(
        name=f"sdk.{name}",
        claim=claim,
        script=load(script),
        make=make_client,
        client=unmodified,
        policy=POLICY,
        judges=STREAM_JUDGES,
        sdk=True,
    )


_RAW: Final = (
    ("answer", "plain-answer", "a whole answer arrives as it was said"),
    ("error_after_text", "error-after-text", "once the stream has begun nothing is tried again"),
    ("drop", "drop-after-text", "a lost connection is an error without a word of why"),
    ("cut_off", "cut-off", "a stream cut before its finish reason ends silently"),
    ("stall", "stall-after-text", "a silent stream is waited for ten minutes, then fails"),
    ("rate_limit", "rate-limit-first", "a refusal is tried again after the wait asked for"),
    ("rising", "rising-retry-after", "two retries, each after the wait asked for, then the error"),
    ("long_wait", "long-retry-after", "asked to wait more than two minutes, it gives up at once"),
    ("down", "server-down", "without a wait asked for it backs off, with chance in it"),
    ("quota", "quota", "a refusal because the quota is used up is tried twice again, for nothing"),
)

_GUARD: Final = ("has streamed", "retry guard")
_INSISTED: Final = "the same cut is an interruption once a finish reason is insisted on"
_SEEN_FOR: Final = "the same refusal is seen for what it is, and not tried again"
_OPENS: Final = "the same silence opens a new segment after five seconds"

_GUARDED: Final = (
    ("cut_off", "cut-off", _INSISTED, _GUARD),
    ("stall", "stall-after-text", _OPENS, (*_GUARD, "new segment")),
    ("quota", "quota", _SEEN_FOR, ("retry guard",)),
)
