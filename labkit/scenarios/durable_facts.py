"""What happened to a discussion whose worker was lost: the answers behind the table of that lesson.

As in `facts`: an answer out of the table's list, and the index of the event that decided it.

    run = simulate("durable.killed")
    goes_on_with(run.trace).answer      # 'with the step that was under way'
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from labkit.simulation import Event

from .durable_judges import puts
from .facts import Fact


def goes_on_with(events: Sequence[Event]) -> Fact:
    """With which step the last worker that got the run began, against what was kept by then."""
    claim = [e for e in events if (e.actor, e.kind) == ("store", "claimed")][-1]
    own = ((e, kept) for e, kept in puts(events) if e.index > claim.index)
    first, kept = next((e, kept) for e, kept in own if e["by"] == claim["by"])
    if first["step"] <= 0:
        return Fact("at the beginning", first.index)
    late = first["step"] > kept + 1
    return Fact(f"with the step {'after that' if late else 'that was under way'}", first.index)


def model_requests(events: Sequence[Event]) -> Fact:
    """How often a model was asked, thrown-away answers included; the first one too many decides."""
    asked = [event.index for event in events if event.kind == "asked"]
    decided = _asked_again(events) or asked[-1]
    for most, told in ((10, "10"), (11, "11"), (13, "12 or 13")):
        if len(asked) <= most:
            return Fact(told, decided)
    return Fact("14 or more", decided)


def _asked_again(events: Sequence[Event]) -> int | None:
    """The first request for a step for which a model was asked before."""
    newest, last, asked = 0, dict[str, int](), set[int]()
    for event in events:
        if event.kind in ("checkpoint", "copied"):
            newest = last[event["by"]] = event["step"]
        elif event.kind == "asked":
            step = last.get(event.actor, newest)
            if step in asked:
                return event.index
            asked.add(step)
    return None


DURABLE_FACTS: Final[Mapping[str, Callable[[Sequence[Event]], Fact]]] = {
    fact.__name__: fact for fact in (goes_on_with, model_requests)
}
