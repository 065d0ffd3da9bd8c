"""Views of places: what they show, and how one moves."""

import asyncio
from functools import partial, wraps
from typing import Any

import pytest

from labkit.simulation import Observer, Run, Unknown, View, simulate
from labkit.simulation.places import files_of

from .kit import line_of, scenario

HERE = __file__


async def worker(page: Observer, name: str, step: float) -> None:
    shown: list[str] = []
    for number in range(2):
        await asyncio.sleep(step)
        shown.append(f"{name}{number}")
        page("shown", text=shown[-1])  # breakpoint: a worker has shown


def helper(doubled: int) -> int:
    result = doubled
    result *= 2  # breakpoint: in the helper
    return result


async def client(provider: Any, policy: Any, observe: Observer) -> int:
    page = observe.of("page")
    total = 0
    page("shown", text="Hello ")
    await asyncio.gather(worker(page, "a", 1), worker(page, "b", 1.5))
    page("segment_end", reason="done")
    total = helper(21)
    page("shown", text="bye")
    return total


@pytest.fixture(scope="module")
def run() -> Run:
    return simulate(scenario(client))


def walk(view: View, forward: bool = True) -> list[int]:
    """The indexes from `view` to the end of its task, or back to its start."""
    indexes = [view.index]
    while (moved := view.next() if forward else view.previous()).index != view.index:
        view = moved
        indexes.append(view.index)
    return indexes


def test_a_view_shows_the_moment_before_its_line(run: Run) -> None:
    view = run.to("in the helper")
    assert dict(view.locals) == {"doubled": 21, "result": 21}
    assert view.time == 3.0
    assert [segment.text for segment in view.segments] == ["Hello a0b0a1b1"]
    assert view.events[-1].kind == "segment_end"
    assert view.place.task == "client"


def test_what_the_line_changed_is_read_from_the_frames_next_place(run: Run) -> None:
    assert dict(run.to("in the helper").changed) == {"result": (21, 42)}
    assert run.to("in the helper").next().changed == {}


def test_the_callers_locals_are_those_at_the_call(run: Run) -> None:
    view = run.to("in the helper")
    assert view.caller["total"] == 0
    assert dict(run.first().caller) == {}


def test_the_source_around_a_place_has_its_line_in_the_middle(run: Run) -> None:
    view = run.to("in the helper")
    line = line_of(HERE, "result *= 2")
    assert view.place.line == line
    assert [number for number, _ in view.source(1)] == [line - 1, line, line + 1]
    assert "result *= 2" in dict(view.source())[line]


def test_two_tasks_in_one_function_have_locals_of_their_own(run: Run) -> None:
    first = run.to(lambda names: names.get("name") == "a")
    second = run.to(lambda names: names.get("name") == "b")
    assert (first.place.task, second.place.task) == ("worker", "worker 2")
    for view, name in ((first, "a"), (second, "b")):
        assert {run.at(index).locals["name"] for index in walk(view)} == {name}


def test_next_and_previous_stay_in_the_task_and_mirror_each_other(run: Run) -> None:
    for task in ("client", "worker", "worker 2"):
        own = [place.index for place in run.recorded if place.task == task]
        assert walk(run.at(own[0])) == own
        assert walk(run.at(own[-1]), forward=False) == own[::-1]
        assert run.at(own[3]).first().index == own[0]
        assert run.at(own[3]).last().index == own[-1]


def test_tasks_that_share_a_chosen_name_are_told_apart_all_the_same() -> None:
    async def both(provider: Any, policy: Any, observe: Observer) -> None:
        async with asyncio.TaskGroup() as group:
            for name in "ab":
                group.create_task(worker(observe.of("page"), name, 1), name="mine")

    places = [place for place in simulate(scenario(both)).recorded if place.function == "worker"]
    named = {(place.task, dict(place.locals)["name"]) for place in places}
    assert named == {("mine", "a"), ("mine 2", "b")}


def test_stepping_back_shows_the_list_as_short_as_it_was(run: Run) -> None:
    view = run.to("a worker has shown")
    later = view.next("a worker has shown")
    assert repr(later.locals["shown"]) == "['a0', 'a1']"
    assert repr(later.previous("a worker has shown").locals["shown"]) == "['a0']"
    assert repr(view.locals["shown"]) == "['a0']"


def test_a_move_gives_a_new_view_and_leaves_the_old_where_it_was(run: Run) -> None:
    view = run.at(3)
    assert view.next() is not view
    assert view.index == 3
    assert run.at(3) is not run.at(3)


def test_views_move_by_name_by_line_and_by_condition(run: Run) -> None:
    line = line_of(HERE, 'page("segment_end"')
    assert run.to(line).place.line == line
    start = run.first()
    assert start.next("in the helper").index == run.to("in the helper").index
    assert start.next(line).index == run.to(line).index
    assert start.next(lambda names: names["total"] == 42).locals["total"] == 42
    assert run.last().previous("in the helper").index > run.last().previous(line).index
    assert run.at(-1).index == run.last().index == len(run.recorded) - 1


def test_at_the_ends_there_is_no_further_to_go(run: Run) -> None:
    last = run.at(-1).last()
    assert last.next().index == last.index
    assert run.first().previous().index == 0


@pytest.mark.parametrize(
    ("move", "listed"),
    [
        (lambda run: run.to("nowhere"), "no place at 'nowhere'; there is: a worker has shown, in"),
        (lambda run: run.to(None), "no place at None; there is: a worker has shown, in the"),
        (lambda run: run.to(""), "no place at ''; there is: a worker has shown, in the helper"),
        (lambda run: run.to([1]), r"no place at \[1\]; there is: a worker has shown, in the"),
        (lambda run: run.to(10_000), r"no place at line 10000; there is: \d+, \d+"),
        (lambda run: run.to(lambda names: names["x"]), "'<lambda>'; there is: .*doubled.*total"),
        (lambda run: run.to("in the helper").next("in the helper"), "there is: none"),
        (lambda run: run.last().previous("a worker has shown"), "there is: in the helper"),
        (lambda run: run.at(10_000), r"no place 10000; there is: 0 to \d+"),
        (lambda run: run.at(-10_000), r"no place -10000; there is: 0 to \d+"),
        (lambda run: run.at("in the helper"), "no place 'in the helper'; there is: 0 to"),
    ],
)
def test_a_move_to_what_is_not_there_lists_what_there_is(run: Run, move: Any, listed: str) -> None:
    with pytest.raises(Unknown, match=listed):
        move(run)


def test_of_very_many_names_the_nearest_come_first_and_the_rest_are_counted() -> None:
    some, many = [f"name{n}" for n in range(14)], [f"name{n}" for n in range(40)]
    assert str(Unknown("thing", "x", some)).endswith("name12, name13")
    told = str(Unknown("scenario", "name3x", many))
    assert told.startswith("there is no scenario 'name3x'; there is: name3")
    assert told.endswith(", and 32 more: labkit.names()")
    assert str(Unknown("thing", "y", many)).endswith("name6, name7, and 32 more")


def test_in_a_notebook_an_error_of_the_simulation_is_one_line() -> None:
    error = Unknown("thing", "x", ["y"])
    assert error._render_traceback_() == ["Unknown: there is no thing 'x'; there is: y"]


def test_a_view_and_its_run_have_one_line_of_text(run: Run) -> None:
    assert repr(run.to("in the helper")) == (
        f"place {run.to('in the helper').index} of {len(run.recorded)} in the run: test_places.py "
        "in helper [in the helper], task client, t=3 s"
    )
    assert "\n" not in repr(run)


class Client:
    async def __call__(self, provider: Any, policy: Any, observe: Observer) -> int:
        return 7


def test_a_run_without_places_says_so() -> None:
    run = simulate(scenario(Client()))  # methods with two underscores are not stepped through
    assert (run.result, run.recorded) == (7, ())
    with pytest.raises(Unknown, match="there is: none"):
        run.first()


def test_the_files_of_partial_wrapped_and_callable_clients_are_found() -> None:
    @wraps(client)
    async def wrapped(*arguments: Any) -> int:
        return await client(*arguments)

    for made in (client, partial(client), wrapped, Client(), Client().__call__):
        assert files_of(made) == {HERE}
