"""Plays made-up attempts to a client in virtual time, and reads the trace.

run = play([[{"http_error": {"status": 503}}], [say("Hel"), FINISH]])
told(run, "wait", "seconds")    # [1.0]
"""

from collections.abc import Sequence
from typing import Any

from labkit.providers.fake import FakeProvider
from labkit.providers.script import script
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.policy import RetryPolicy
from labkit.scenarios.clients import Client, careful
from labkit.simulation import STREAM_JUDGES, Fault, Run, Scenario, simulate

FINISH = {"finish": "stop"}
PLAIN = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0, jitter=0)


def say(text: str, wait: float = 0.0) -> dict[str, Any]:
    """A step that says `text` after `wait` seconds."""
    return {"wait": wait, "say": text}


def refused(status: int, **headers: str) -> list[dict[str, Any]]:
    """An attempt that is refused with `status`; `retry_after="2"` is a header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return [{"http_error": {"status": status, "headers": named}}]


def scenario(
    attempts: Sequence[Sequence[dict[str, Any]]],
    client: Client = careful,
    *,
    policy: RetryPolicy = PLAIN,
) -> Scenario:
    """A scenario of these attempts for `client`."""
    return Scenario(
        name="made up",
        claim="made up for a test",
        script=script({"name": "made up", "attempts": attempts}),
        make=FakeProvider,
        client=client,
        policy=policy,
        judges=STREAM_JUDGES,
    )


def play(
    attempts: Sequence[Sequence[dict[str, Any]]],
    client: Client = careful,
    *,
    policy: RetryPolicy = PLAIN,
    faults: Sequence[Fault] = (),
    seed: int = 0,
) -> Run:
    """The run of such a scenario."""
    return simulate(scenario(attempts, client, policy=policy), faults=faults, seed=seed)


def play_with(open_stream: Any, client: Client = careful, *, policy: RetryPolicy = PLAIN) -> Run:
    """The run of a client whose provider is the function `open_stream(attempt)`."""

    class Provider:
        stream = staticmethod(open_stream)

    made = scenario([[FINISH]], client, policy=policy).but(make=lambda script, observe: Provider())
    return simulate(made)


def told(run: Run, kind: str, name: str) -> list[Any]:
    """That detail of every event of the kind."""
    return [event[name] for event in run.trace if event.kind == kind]


def calls(run: Run) -> int:
    """How many requests the provider got."""
    return len(told(run, "request", "attempt"))


def notes(run: Run) -> list[str]:
    """The notes on the error that left."""
    return list(getattr(run.error, "__notes__", []))


def requests_without_an_end(run: Run) -> int:
    """How many requests the provider still takes for open: it said no end, and was not left."""
    ends = ("closed", "end", "drop", "error", "http_error", "left")
    return calls(run) - sum(e.actor == "provider" and e.kind in ends for e in run.trace)
