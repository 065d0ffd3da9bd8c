"""The checks of the retry exercises: each case is a run of the learner's code against a script.

Nothing but the run's trace is judged, and it is judged by what the script did in it.
"""

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script, ScriptError, script
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry_after import parse_retry_after
from labkit.scenarios import clients
from labkit.scenarios.catalogue import load
from labkit.simulation import STREAM_JUDGES, Observer, Run, Scenario, simulate

from .exercises import Trial, Trials, raised, trouble

POLICY: Final = RetryPolicy(retry_on=TRANSIENT, stall=5.0, total=60.0)
FAILURES: Final = ("rate-limit-first", "error-after-text", "drop-after-text", "thinking-first")
HOPELESS: Final = ("quota", "misleading-message")  # scripts in which no other try can help
HEADERS: Final[tuple[Mapping[str, str], ...]] = (
    {"retry-after": "2"},
    {"retry-after": "0"},
    {"retry-after-ms": "1500"},
    {"retry-after-ms": "1500", "retry-after": "2"},
    {"retry-after-ms": "soon", "retry-after": "2"},
    {"retry-after": "soon"},
    {"retry-after": "-5"},
    {"retry-after": "nan"},
    {},
)
GAVE_UP: Final = "It gave up, though nothing was shown and another try would have worked."


def guard_trials(may_retry: Any) -> Iterator[Trial]:
    """A failure in each situation, and whether another request comes of it."""
    for name in FAILURES + HOPELESS:
        run = _run(load(name), partial(asks_the_guard, may_retry), may_retry)
        yield Trial(run.scenario.claim, run, trouble(run, may_retry) or _guarded(run, name))


async def asks_the_guard(
    may_retry: Any, provider: Any, policy: RetryPolicy, observe: Observer
) -> None:
    """A client that leaves the decision after a failure to the learner's guard."""
    visible = False
    for attempt in range(1, policy.attempts + 1):
        try:
            async with aclosing(provider.stream(attempt)) as stream:
                async for delta in stream:
                    if delta.visible:
                        visible = True
                        observe.of("page")("shown", text=delta.text)
            return
        except ProviderError as error:
            again = may_retry(error, visible)
            if not isinstance(again, bool):
                raise TypeError(f"may_retry returned {again!r}: True or False is needed") from None
            if not again or attempt == policy.attempts:
                raise
            await asyncio.sleep(policy.first_wait)


def _guarded(run: Run, name: str) -> str:
    failed = _failed(run)
    shown = _texts(run, "shown", failed)
    again = any(event.kind == "request" for event in run.trace[failed:])
    if again and shown:
        return f"It asked again after the reader had seen {shown!r}."
    if again and name in HOPELESS:
        return "It asked again, though no other try can help: look at error.kind."
    return GAVE_UP if not (again or shown or name in HOPELESS) else ""


def client_trials(my_client: Any) -> Iterator[Trial]:
    """Failures before text, which a client survives, and after text, which it must not hide."""
    for name in FAILURES:
        run = _run(load(name), my_client, my_client)
        yield Trial(run.scenario.claim, run, trouble(run, my_client) or _served(run))


def _served(run: Run) -> str:
    failed = _failed(run)
    if failed == len(run.trace):
        return "It never asked the provider to the end: use provider.stream()."
    for finding in run.findings:
        return f"{finding.name} at event {finding.event}: {finding.cure}."
    said, shown = _texts(run, "say", failed), _texts(run, "shown", failed)
    if shown != said:
        return f"The provider had said {said!r}, and the reader had seen {shown!r}."
    return GAVE_UP if run.error is not None and not said else ""


def retry_after_trials(wait_for: Any) -> Iterator[Trial]:
    """Each kind of header; labkit's own reading is what is compared with."""
    for headers in HEADERS:
        meant = parse_retry_after(headers, now=0.0)
        try:
            got = wait_for(dict(headers))
            wrong = "" if got == meant else f"It gives {got!r}, where {meant!r} is meant."
        except Exception as error:
            wrong = raised(error, wait_for)
        yield Trial(f"headers {headers}", None, wrong)


def script_trials(value: Any) -> Iterator[Trial]:
    """labkit's client gives up on the script after text; a loop around the stream does not."""
    try:
        made = value if isinstance(value, Script) else script(value)
    except ScriptError as error:
        yield Trial("the script is read", None, f"It is no script yet: {error}.")
        return
    run = _run(made, clients.careful)
    yield Trial("labkit's own client", run, _no_surrender(run))
    run = _run(made, clients.starts_over)
    failed = "Another try does not work either: let the next attempt succeed."
    yield Trial("a loop that tries again whatever was shown", run, failed if run.error else "")


def _no_surrender(run: Run) -> str:
    gave_up = next((e for e in run.trace if e.get("action") == "give_up"), None)
    if gave_up is None:
        return "It came to an answer: let something fail after the first text."
    if not _texts(run, "shown", gave_up.index):
        return f"It gave up before any text, for another reason: {gave_up['reason']}."
    return ""


def _run(made: Script, client: Any, learners: Any = None) -> Run:
    """One run; the learner's function can be stepped through, wherever it stands."""
    scenario = Scenario(
        name=f"exercise.{made.name}",
        claim=made.about,
        script=made,
        make=FakeProvider,
        client=client,
        policy=POLICY,
        judges=STREAM_JUDGES,
        source=(learners,) if inspect.isfunction(learners) else (),  # type: ignore[arg-type]
    )
    return simulate(scenario)


def _failed(run: Run) -> int:
    """The index of the provider's first failure, else the number of events."""
    kinds = ("http_error", "error", "drop")
    return next((event.index for event in run.trace if event.kind in kinds), len(run.trace))


def _texts(run: Run, kind: str, before: int) -> str:
    return "".join(e.get("text", "") for e in run.trace[:before] if e.kind == kind)


TRIALS: Final[Mapping[str, Trials]] = {
    "02.guard": guard_trials,
    "02.client": client_trials,
    "02.retry_after": retry_after_trials,
    "02.script": script_trials,
}
