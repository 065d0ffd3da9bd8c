"""What happened in a run with effects or a budget: the answers behind the tables of those lessons.

As in `facts`: an answer out of the table's list, and the index of the event that decided it.

    run = simulate("effects.happened")
    known(run.trace).answer      # 'nothing, it may have been done'
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from labkit.simulation import Event, SimulationError

from .budget_judges import busiest
from .facts import Fact

_OVER: Final = ("tried", "attempt", "told")
_BANDS: Final = ((20, "20 or fewer"), (100, "21 to 100"))


def effects(events: Sequence[Event]) -> Fact:
    """How many effects there really were; the last one decides, or the end."""
    real = [event for event in events if event.actor == "ledger"]
    count = ("none", "one", "two", "three or more")[min(len(real), 3)]
    return Fact(count, (real or events)[-1].index)


def known(events: Sequence[Event]) -> Fact:
    """What the caller can know of its first request when that is over."""
    sent = next((event for event in events if event.kind == "request"), events[-1])
    after = events[sent.index + 1 :]
    over = next((event for event in after if event.kind in _OVER), events[-1])
    if any(event.kind == "answer" for event in after if event.index < over.index):
        return Fact("that it was done", over.index)
    refused = over.get("sent") is False
    told = "that it was not done" if refused else "nothing, it may have been done"
    return Fact(told, over.index)


def first_call(events: Sequence[Event]) -> Fact:
    """What the model is told of its first call."""
    return _told(events, 1)


def second_call(events: Sequence[Event]) -> Fact:
    """What the model is told of its second call."""
    return _told(events, 2)


def third_call(events: Sequence[Event]) -> Fact:
    """What the model is told of its third call."""
    return _told(events, 3)


def _told(events: Sequence[Event], number: int) -> Fact:
    calls = [event["call"] for event in events if event.kind == "calls"]
    if len(calls) < number:
        raise SimulationError(f"the model makes {len(calls)} calls only: there is no call {number}")
    told = (e for e in events if e.kind == "told" and e["call"] == calls[number - 1])
    last = next(told, None)
    return Fact(last["status"], last.index) if last else Fact("nothing", events[-1].index)


def sent(events: Sequence[Event]) -> Fact:
    """How many requests went out in all; the last one decides."""
    requests = [event for event in events if event.kind == "request"]
    return Fact(str(len(requests)), (requests or events)[-1].index)


def shown_after(events: Sequence[Event]) -> Fact:
    """How long the page had to wait for an answer or an error; the last of them decides."""
    page = [event for event in events if event.actor == "page"]
    last = (page or events)[-1]
    told = "10 seconds or less" if last.time <= 10 else "up to 30 seconds"
    return Fact(told if last.time <= 30 else "longer", last.index)


def crowd(events: Sequence[Event]) -> Fact:
    """The most retries within one second; the first of them decides."""
    most, first = busiest(events)
    told = (words for limit, words in _BANDS if most <= limit)
    return Fact(next(told, "more than 100"), (first or events[-1]).index)


def served(events: Sequence[Event]) -> Fact:
    """How many of those who asked got an answer; the last page that was shown one decides."""
    page = [event for event in events if event.actor == "page"]
    shown = [event for event in page if event.kind == "shown"]
    some = "all" if len(shown) == len(page) else "some"
    return Fact(some if shown else "none", (shown or events)[-1].index)


EFFECT_FACTS: Final[Mapping[str, Callable[[Sequence[Event]], Fact]]] = {
    fact.__name__: fact
    for fact in (
        *(effects, known, first_call, second_call, third_call),
        *(sent, shown_after, crowd, served),
    )
}
