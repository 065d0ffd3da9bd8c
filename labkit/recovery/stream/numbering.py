"""Events made of deltas, on the receiving side, where the provider's API gives no numbers.

numbering = Numbering(run)
run = apply_event(run, numbering.number(Delta("text", "Hel")), now=1.0)
"""

from ..deltas import Delta
from .finish import finish_reason
from .record import StreamEvent, StreamRun


class Numbering:
    """Makes events of one attempt's deltas: numbers them, and finds out whose a call's piece is.

    Providers send a call's id with its first piece only, and an index with all; some send another
    call under the same index, some send no id, and then a name begins a call. `provider`: whose
    words for the end these are, as in `finish_reason`.
    """

    def __init__(self, run: StreamRun, provider: str = "openai-chat") -> None:
        self._provider = provider
        self._next = run.next_sequence
        self._attempt = run.attempt
        self._open: dict[int, str] = {}  # index -> the id of the call that is open there
        self._count = 0

    def number(self, delta: Delta) -> StreamEvent:
        """The event of `delta`; role, thinking and usage are events without content."""
        event = StreamEvent(self._next, **self._content(delta))
        self._next += 1
        return event

    def _content(self, delta: Delta) -> dict[str, str]:
        if delta.kind == "text":
            return {"text_delta": delta.text}
        if delta.kind == "finish":
            return {"finish_reason": finish_reason(self._provider, delta.reason)}
        if delta.kind != "tool_call":
            return {}
        call = self._call(delta)
        return {"call_id": call, "tool_name": delta.name, "arguments_delta": delta.text}

    def _call(self, delta: Delta) -> str:
        index = delta.index or 0
        made_up = f"call-{self._attempt}-"
        there = self._open.get(index, made_up)
        if delta.call_id:
            self._open[index] = delta.call_id
        elif there == made_up or (delta.name and there.startswith(made_up)):
            self._count += 1
            self._open[index] = f"{made_up}{self._count}"
        return self._open[index]
