"""Records made by hand for the tests of `labkit.recovery.stream`."""

from typing import Any

from labkit.recovery.stream import Owner, StreamEvent, StreamRequest, StreamRun, apply_event

ANN = Owner("ann", "acme")


def record(*events: dict[str, Any], request: StreamRequest | None = None) -> StreamRun:
    """A record of Ann's with these events, numbered here."""
    run = StreamRun("run-1", ANN, request or StreamRequest("Where is my refund?"))
    return after(run, *events)


def after(run: StreamRun, *events: dict[str, Any]) -> StreamRun:
    """`run` after more events, each a second after the one before."""
    for event in events:
        number = run.next_sequence
        run = apply_event(run, StreamEvent(number, **event), now=1.0 + number)
    return run


def say(text: str) -> dict[str, Any]:
    """An event of text."""
    return {"text_delta": text}


def finish(reason: str) -> dict[str, Any]:
    """An event of a finish reason."""
    return {"finish_reason": reason}


def call(arguments: str, call_id: str = "c1", name: str = "create_ticket") -> dict[str, Any]:
    """An event of a tool call, or of a piece of one."""
    return {"call_id": call_id, "tool_name": name, "arguments_delta": arguments}
