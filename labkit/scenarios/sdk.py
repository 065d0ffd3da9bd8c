"""What an unmodified `openai` client does on the same scripts, with its own two retries.

Beside it the same client without retries of its own, under labkit's: `..._guarded`. Nothing here
imports the SDK before a scenario runs; without it a run ends in `SDKMissing`, which says the cure.
"""

import platform
from functools import partial
from types import ModuleType
from typing import Any

from labkit.providers.script import Script
from labkit.recovery.errors import RecoveryError
from labkit.simulation import Observer, Scenario

from . import clients
from .rows import rows, scenario


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


def make_client(script: Script, observe: Observer, **options: Any) -> Any:
    """The client as it is, on a script."""
    return _sdk().scripted(script, observe, **options)


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
    return [_scenario(f"sdk.{name}", row) for name, row in rows("sdk").items()]


def _scenario(name: str, row: dict[str, Any]) -> Scenario:
    if not name.endswith("_guarded"):
        return scenario(name, row, make=make_client, client=unmodified, source=(), sdk=True)
    guarded = partial(clients.careful, segments=True)
    return scenario(name, row, make=make_provider, client=guarded, sdk=True)
