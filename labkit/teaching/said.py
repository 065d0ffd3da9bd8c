"""Says things in words, and finds what a learner means by a name.

event_words(run.trace[3])    # 'event 3 at 0.3 s: the provider refuses with 429'
pick("column", "retried?", {"retried": "Is it tried again?"})    # 'retried'
"""

from collections.abc import Mapping
from typing import Any, Final

from labkit.simulation import Event, Unknown

from .phrases import printable, seconds

_SAID: Final = {
    "request": "request {attempt} reaches the provider",
    "http_error": "the provider refuses with {status}",
    "error": "the provider's stream fails",
    "drop": "the connection is reset",
    "stall": "the provider falls silent",
    "end": "the provider's stream ends",
    "finish": "the provider finishes: {reason}",
    "failure": "the client sees a failure: {error}",
    "decision": "the retry code decides: {action}, {reason}",
    "shown": "the page shows {text!r}",
    "segment_end": "the page closes a segment: {reason}",
    "checkpoint": "the checkpoint gets the step {step!r}",
    "draft": "the session keeps a draft: {reason}",
    "cancel": "the user stops the task {task!r}",
}


class Told:
    """Lines to read, shown as text wherever they are shown."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        """The lines."""
        return self._text

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.text()}

    def __repr__(self) -> str:
        return self.text().partition("\n")[0]


def event_words(event: Event) -> str:
    """The event's index, its time in virtual seconds, and what happened, in one line."""
    said = _SAID.get(event.kind, f"{event.actor}: {event.kind}")
    if (event.actor, event.kind) == ("lab", "end"):
        said = "the task {task!r} is over: {outcome}"
    try:
        said = said.format_map(dict(event.data))
    except KeyError:  # an actor that tells less
        said = f"{event.actor}: {event.kind}"
    return f"event {event.index} at {seconds(event.time)}: {printable(said)}"


def pick(what: str, given: object, known: Mapping[str, str]) -> str:
    """The key of `known` (key -> words) that `given` names: a key, its words, or a part of one.

    Upper case and a closing question mark do not matter. Raises `Unknown`, which lists what there
    is, where nothing fits or more than one thing does.
    """
    wanted = str(given).strip().rstrip("?").casefold()
    names = [(key, name.rstrip("?").casefold()) for key in known for name in (key, known[key])]
    exact = {key for key, name in names if name == wanted}
    partly = {key for key, name in names if wanted and wanted in name}
    for fitting in (exact, partly):
        if len(fitting) == 1:
            return fitting.pop()
    raise Unknown(what, given, [repr(words) for words in known.values()])
