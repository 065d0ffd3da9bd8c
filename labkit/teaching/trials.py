"""How each exercise is tried: what a learner made, and labkit's own, in the same case.

    wrong, run = TRIALS["02.guard"](may_retry, case)      # ("", None) where it is right

A trial takes what the learner made and one case out of `data/exercises`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from labkit.providers.script import Script, script
from labkit.recovery.errors import ProviderError
from labkit.recovery.retry import decide
from labkit.recovery.retry_after import parse_retry_after
from labkit.recovery.sse import SSEDecoder
from labkit.recovery.stream import (
    Owner,
    StreamEvent,
    StreamRun,
    apply_event,
    choose_recovery,
    merge_overlap,
    parse_complete_tool_call,
)
from labkit.recovery.stream.ending import INSPECT, KEEP, SHOW
from labkit.recovery.stream.record import interrupt, stop
from labkit.scenarios import clients
from labkit.scenarios.catalogue import find
from labkit.scenarios.desk import ANN
from labkit.scenarios.scripts import load
from labkit.simulation import Run, simulate

from .durable_trials import DURABLE_TRIALS
from .effect_trials import EFFECT_TRIALS
from .lease_trials import LEASE_TRIALS
from .service_trials import SERVICE_TRIALS
from .session_trials import SESSION_TRIALS
from .token import read
from .tried import Tried, same


def _guard(may_retry: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what the error is made of, and whether text was visible."""
    parts = dict(case)
    visible, error = parts.pop("visible"), ProviderError(parts.pop("message", ""), **parts)
    first = partial(decide, attempt=1, segments=False, remaining=60.0, now=0.0, random=Random(0))
    own = first(error, visible=visible, policy=find("retry.guarded").policy)
    return same(may_retry(error, visible), own.action == "retry")


def _wait_for(wait_for: Any, case: Mapping[str, str]) -> Tried:
    """`case`: the headers."""
    return same(wait_for(dict(case)), parse_retry_after(case, now=0.0))


def _client(my_client: Any, case: str) -> Tried:
    """`case`: a script. A finding is wrong, and so is what labkit's own client does otherwise."""
    run, own = _run(load(case), my_client), _run(load(case), clients.careful)
    for finding in run.findings:
        return f"{finding!r}.", run
    if run.text != own.text:
        return f"The reader sees {run.text!r}; with labkit's own client {own.text!r}.", run
    return "", run


def _script(value: Any, case: str) -> Tried:
    """labkit's client gives up on the script after text; a loop around the stream does not."""
    own, loop = _run(script(value), clients.careful), _run(script(value), clients.starts_over)
    if own.error is None:
        return "labkit came to an answer: let something fail after the first text.", own
    if not own.text:
        return "labkit gave up before any text.", own
    if loop.error is not None:
        return "Another try does not work either: let the next attempt succeed.", loop
    return "", loop


def _run(played: Script, client: Any) -> Run:
    claim = played.about or f"the script {played.name}"
    return simulate(find("retry.guarded").but(script=played, claim=claim, client=client))


def _decode(decode: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: a stream, and where its bytes are cut."""
    whole, cuts = case["stream"].encode(), case["cut"]
    ends = zip([0, *cuts], [*cuts, len(whole)], strict=True)
    chunks = [whole[start:end] for start, end in ends]
    decoder = SSEDecoder()
    own = [event.data for chunk in chunks for event in decoder.feed(chunk)]
    return same(list(decode(chunks)), own)


def _frame(frame: Any, case: str) -> Tried:
    """`case`: the data of one event, which must come out as it went in, whole and alone."""
    made = frame(case)
    if not isinstance(made, bytes):
        return f"It gives {made!r}; bytes are expected.", None
    return same([event.data for event in SSEDecoder().feed(made)], [case])


def _reader(my_reader: Any, case: str) -> Tried:
    """`case`: a run's token. The page must show what it shows with labkit's own client."""
    asked = read(case)
    own = simulate(**asked)
    run = simulate(**asked | {"scenario": asked["scenario"].but(client=my_reader, claim=case)})
    if run.error is not None:
        return f"{type(run.error).__name__} leaves it: {run.error}.", run
    for finding in run.findings:
        return f"{finding!r}.", run
    if run.text != own.text:
        return f"The reader sees {run.text!r}; with labkit's own client {own.text!r}.", run
    return "", run


def _may_open(may_open: Any, case: Mapping[str, str]) -> Tried:
    """`case`: who asks. The record is Ann's, of acme."""
    return same(may_open(StreamRun("run-1", ANN), **case), Owner(**case) == ANN)


def _goes_on(goes_on: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: how a record with half an answer ended."""
    run = apply_event(StreamRun("run-1", ANN), StreamEvent(0, text_delta="To get "), now=1.0)
    if reason := case.get("finish_reason"):
        run = apply_event(run, StreamEvent(1, finish_reason=reason), now=2.0)
    run = stop(run) if case.get("stopped") else interrupt(run, case.get("cause", ""))
    action = choose_recovery(run, can_resume=False, can_continue=True)
    return same(goes_on(run), action not in (KEEP, SHOW, INSPECT))


def _merge(merge: Any, case: Sequence[str]) -> Tried:
    """`case`: the draft, and what came when the model was asked to go on."""
    return same(merge(*case), merge_overlap(*case))


def _complete(complete: Any, case: str) -> Tried:
    """`case`: the arguments of a call, as they came."""
    event = StreamEvent(0, call_id="c1", tool_name="any", arguments_delta=case)
    run = apply_event(StreamRun("run-1", ANN), event, now=1.0)
    return same(complete(case), parse_complete_tool_call(run, "c1"))


TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "02.guard": _guard,
    "02.client": _client,
    "02.retry_after": _wait_for,
    "02.script": _script,
    "03.decode": _decode,
    "03.frame": _frame,
    "03.reader": _reader,
    "04.owner": _may_open,
    "04.goes_on": _goes_on,
    "04.merge": _merge,
    "04.call": _complete,
    **SESSION_TRIALS,
    **EFFECT_TRIALS,
    **LEASE_TRIALS,
    **DURABLE_TRIALS,
    **SERVICE_TRIALS,
}
