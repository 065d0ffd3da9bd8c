"""Frozen values: as they were, bounded, without addresses, the same in every process."""

import asyncio
import datetime
import decimal
import enum
import http
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from pathlib import PurePosixPath
from types import FrameType, MappingProxyType
from typing import Any, NamedTuple

import pytest

from labkit.simulation import Observer, simulate
from labkit.simulation.freeze import MOST_TEXT, Freezer, Rendered, freeze, plain

from .kit import scenario, virtually


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    left: int
    api_key: str


@dataclass(frozen=True)
class Holder:
    items: list[int]
    note: str = ""
    hidden: str = field(default="x", repr=False)


class Opaque:
    def __repr__(self) -> str:
        raise RuntimeError("never called")


class Hostile(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not to be looked at")


@pytest.mark.parametrize("value", [None, True, 7, 2.5])
def test_plain_immutables_are_kept(value: Any) -> None:
    assert freeze("x", value) is value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, "two", 3.0], "[1, 'two', 3.0]"),
        ((1, (2,)), "(1, (2,))"),
        ({"b": 1, "a": [2]}, "{'b': 1, 'a': [2]}"),
        (OrderedDict(a=1), "{'a': 1}"),
        (MappingProxyType({"a": 1}), "{'a': 1}"),
        ({"c", "a", "b"}, "{'a', 'b', 'c'}"),
        (frozenset({3, 1}), "{1, 3}"),
        (deque([1, 2]), "[1, 2]"),
        (b"bytes", "b'bytes'"),
        (range(3), "range(0, 3)"),
        (Colour.RED, "Colour.RED"),
        (http.HTTPStatus.OK, "HTTPStatus.OK"),
        (decimal.Decimal("1.50"), "1.50"),
        (datetime.timedelta(seconds=90), "0:01:30"),
        (datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC), "2026-03-02 00:00:00+00:00"),
        (PurePosixPath("/a/b"), "/a/b"),
        (ValueError("bad"), "ValueError('bad')"),
        (Holder([1]), "Holder(items=[1])"),
        (Holder([], "n"), "Holder(items=[], note='n')"),
        (Opaque(), "<Opaque>"),
        (Opaque, "<type Opaque>"),
        (len, "<builtin_function_or_method len>"),
        (partial(len), "<partial>"),
        ([[[[[1]]]]], "[[[[…]]]]"),
        (list(range(100)), "[0, 1, 2, 3, 4, 5, 6, 7, …]"),
        (set(range(2_000)), "<2000 items>"),
        (Hostile(), "<Hostile>"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # a set's own text has no order
)
def test_anything_else_is_rendered(value: Any, shown: str) -> None:
    assert repr(freeze("x", value)) == shown


def test_text_is_bounded() -> None:
    assert len(freeze("x", "y" * 10_000)) == MOST_TEXT
    assert len(freeze("x", ["y" * 10_000] * 50)) == MOST_TEXT


def test_addresses_are_left_out() -> None:
    assert "0x" not in freeze("x", ValueError(f"about {object()!r}"))
    assert "0x" not in freeze("x", [object(), print, Opaque()])


def test_the_trace_keeps_text_whole_and_tuples_as_they_are() -> None:
    assert plain("text", "y" * 10_000) == "y" * 10_000
    assert plain("pieces", (1, "a", (2.0, None))) == (1, "a", (2.0, None))
    assert type(plain("x", [1])) is str


def locals_of(function: Any, *arguments: Any) -> list[dict[str, Any]]:
    """What the locals of a generator function were at each of its yields."""
    freezer, seen = Freezer(), []
    generator = function(*arguments)
    for _ in generator:
        frame: FrameType = generator.gi_frame
        names, values = freezer.locals(frame)
        seen.append({name: values[name] for name in names if name in values})
    return seen


def test_a_list_that_grows_later_keeps_its_old_length() -> None:
    def grows() -> Iterator[None]:
        shown: list[int] = []
        for number in range(3):
            shown.append(number)
            yield

    assert [repr(seen["shown"]) for seen in locals_of(grows)] == ["[0]", "[0, 1]", "[0, 1, 2]"]


def test_a_frozen_record_that_holds_a_list_is_rendered_anew() -> None:
    def grows(holder: Holder) -> Iterator[None]:
        for number in range(2):
            holder.items.append(number)
            yield

    seen = locals_of(grows, Holder([]))
    assert [repr(s["holder"]) for s in seen] == ["Holder(items=[0])", "Holder(items=[0, 1])"]


def test_two_values_of_one_class_are_told_apart() -> None:
    class Text(str):
        __slots__ = ()

    def changes() -> Iterator[None]:
        for value in (Colour.RED, Colour.BLUE, Text("a"), Text("b"), len, sum, {"a": 1}, {"b": 1}):
            assert value is not None
            yield

    shown = [repr(seen["value"]) for seen in locals_of(changes)]
    assert len(set(shown)) == len(shown) == 8


# Of a size that little else has, so that a new one takes the place of the last.
Wide = make_dataclass("Wide", [f"f{n}" for n in range(50)], frozen=True, slots=True)


def test_a_value_at_the_address_of_another_is_not_taken_for_it() -> None:
    def changes() -> Iterator[None]:
        for number in range(100):
            value = Wide(*[number] * 50)
            yield
            del value  # its address is free for the next

    shown = [repr(seen["value"])[:10] for seen in locals_of(changes)]
    assert shown == [f"Wide(f0={number}, "[:10] for number in range(100)]


def test_parameters_come_first_and_the_others_by_name() -> None:
    def mixed(second: int, first: int, *rest: int, last: int = 0, **more: int) -> Iterator[None]:
        zebra, ant = 1, 2
        yield
        print(zebra, ant, second, first, last, rest, more)

    (seen,) = locals_of(mixed, 1, 2)
    assert list(seen) == ["second", "first", "last", "rest", "more", "ant", "zebra"]


def test_freezing_holds_no_generator_alive() -> None:
    async def pieces(observe: Observer) -> Any:
        try:
            yield 1
        finally:
            observe("closed")

    async def client(provider: Any, policy: Any, observe: Observer) -> None:
        stream: Any = pieces(observe)
        await anext(stream)
        held = (stream,)
        del held
        stream = None
        await asyncio.sleep(1)

    run = simulate(scenario(client))
    assert run.recorded  # the same trace
    assert run.trace[0].kind == "closed"


def test_tasks_are_shown_by_name() -> None:
    async def program() -> str:
        task = asyncio.create_task(asyncio.sleep(1), name="helper")
        await task
        return repr(freeze("x", [task]))

    assert virtually(program()) == "[<task helper>]"


def test_a_rendered_text_shows_itself_without_quotes() -> None:
    assert repr(Rendered("[1]")) == "[1]"
    assert repr(freeze("x", "text")) == "'text'"


def test_an_item_that_is_named_like_its_tuple_stays() -> None:
    name = "ann"
    assert plain(name, ("user", name)) == ("user", "ann")
    assert plain("", ("user", "", "")) == ("user", "", "")
