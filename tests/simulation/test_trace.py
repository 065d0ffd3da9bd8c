"""The trace: events, their text, their digest, and its end."""

import sys
from typing import Any

import pytest

from labkit.simulation import Event, Observer, simulate
from labkit.simulation.trace import Trace, digest

from . import pythons
from .kit import scenario, trace


def test_an_event_gives_its_details_by_name() -> None:
    event = Event(0, 1.5, "page", "shown", (("text", "Hel"), ("empty", "")))
    assert event["text"] == "Hel"
    assert event.get("missing", 7) == 7
    with pytest.raises(KeyError):
        event["missing"]
    assert repr(event) == "#0 t=1.5 page shown text='Hel'"


def test_a_long_time_is_shown_short_and_kept_as_it_is() -> None:
    event = Event(0, 1.5, "store", "renewed", (("until", 13.383333333),))
    assert repr(event) == "#0 t=1.5 store renewed until=13.383"
    assert event["until"] == 13.383333333


def test_a_details_name_may_be_actor_or_kind() -> None:
    made = Trace(lambda: 0.0, lambda: None)
    made.add("lab", "odd", actor="x", kind="y")
    assert made.events[0].data == (("actor", "x"), ("kind", "y"))


def test_nothing_is_added_to_a_sealed_trace() -> None:
    made = Trace(lambda: 0.0, lambda: None)
    assert made.add("a", "one") == 0
    made.seal()
    assert made.add("a", "two") == 0
    assert len(made.events) == 1


def test_an_event_that_does_not_count_is_not_added() -> None:
    made = Trace(lambda: 0.0, lambda: False)
    assert made.add("a", "one") == -1
    assert made.events == []


def test_the_digest_tells_times_actors_kinds_and_details_apart() -> None:
    base: Any = (1.0, "a", "k", {"x": 1})
    others = [(2.0, *base[1:]), (1.0, "b", "k", {"x": 1}), (1.0, "a", "j", {"x": 1})]
    others += [(1.0, "a", "k", {"x": 2}), (1.0, "a", "k", {"y": 1}), (1.0, "a", "k", {"x": "1"})]
    digests = {digest(trace(row)) for row in [base, base, *others]}
    assert len(digests) == 7


def test_a_value_that_changes_later_changes_no_event() -> None:
    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        grows = [1]
        observe("kept", grows=grows)
        grows.append(2)

    assert simulate(scenario(client)).trace[0]["grows"] == "[1]"


def test_the_hash_is_the_same_in_processes_with_other_hash_seeds() -> None:
    program = (
        "from labkit.simulation import simulate\n"
        "from tests.simulation import syntax, test_trace\n"
        "from tests.simulation.kit import scenario\n"
        "print(simulate(scenario(syntax.client)).hash)\n"
        "print(simulate(scenario(test_trace.with_sets)).hash)\n"
    )
    said = {pythons.run(sys.executable, "-c", program, PYTHONHASHSEED=s) for s in ("0", "1", "77")}
    assert len(said) == 1


async def with_sets(provider: Any, policy: Any, observe: Observer) -> None:
    observe("sets", names={"b", "a", "c"}, nested={"x": frozenset("hello")}, thing=object())
