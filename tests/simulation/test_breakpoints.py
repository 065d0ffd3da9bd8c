"""Named lines: unique names, each on a line that a run can stop at."""

import linecache
from collections import Counter
from pathlib import Path

import pytest

import labkit
from labkit.simulation.breakpoints import breakpoints, short, source, statements

CELL = """\
def client():
    text = "# breakpoint: in a string"
    call(
        1,
    )  # breakpoint: end of a call
    if (
        text
    ):  # breakpoint:  head of an if
        return text  #breakpoint: tight
    # breakpoint: alone
    @decorated
    def inner():
        pass  # breakpoint: inner
"""


@pytest.fixture
def cell() -> str:
    return written("<cell>", CELL)


def written(name: str, text: str) -> str:
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return name


def test_names_are_read_from_trailing_comments(cell: str) -> None:
    found = {mark.name: mark.line for mark in breakpoints([cell])}
    assert found == {
        "end of a call": 3,
        "head of an if": 6,
        "tight": 9,
        "alone": 10,
        "inner": 13,
    }


def test_a_breakpoint_knows_the_function_around_it(cell: str) -> None:
    functions = {mark.name: mark.function for mark in breakpoints([cell])}
    assert functions["tight"] == "client"
    assert functions["inner"] == "inner"


def test_a_statement_is_one_step_from_its_first_line_to_the_last_of_its_head(cell: str) -> None:
    first = statements(cell)
    assert [first[line] for line in (3, 4, 5)] == [3, 3, 3]
    assert [first[line] for line in (6, 7, 8)] == [6, 6, 6]
    assert first[9] == 9
    assert first[11] == first[12] == 11  # a decorator and its function


def test_a_cell_that_is_no_plain_python_has_a_step_a_line() -> None:
    magic = written("<magic>", "%time x = 1\nif x:\n  y  # breakpoint: y\n 'torn\n")
    assert statements(magic) == {}
    assert breakpoints([magic]) == ()


def test_a_changed_text_is_read_anew() -> None:
    assert breakpoints([written("<changing>", "x = 1  # breakpoint: one\n")])[0].name == "one"
    assert breakpoints([written("<changing>", "xyz = 1  # breakpoint: two\n")])[0].name == "two"


def test_a_file_that_is_not_there_has_no_lines() -> None:
    assert source("<nowhere>") == []
    assert breakpoints(["<nowhere>"]) == ()


def test_files_have_the_same_short_name_on_every_machine() -> None:
    assert short(str(Path(labkit.__file__).parent / "recovery" / "retry.py")) == (
        "labkit/recovery/retry.py"
    )
    assert short("/tmp/ipykernel_17/123.py") == "this notebook"
    assert short("<cell>") == "this notebook"
    assert short("/somewhere/mine.py") == "mine.py"


# Those of the recovery code


def test_every_name_in_the_recovery_code_is_there_once() -> None:
    names = Counter(mark.name for mark in labkit.breakpoints())
    assert len(names) > 3
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_breakpoint_is_reached_by_a_scenario_on_its_own_line() -> None:
    marks = {(mark.file, mark.line): mark.name for mark in labkit.breakpoints()}
    reached = set()
    for name in labkit.names():
        if name.startswith(("sdk.", "budgets.storm")):  # the latter are many of the same client
            continue
        for place in labkit.simulate(name).recorded:
            if place.breakpoint:
                assert marks[place.file, place.line] == place.breakpoint
                reached.add(place.breakpoint)
    assert reached == set(marks.values())


def test_the_breakpoints_that_a_scenario_names_are_there() -> None:
    known = {mark.name for mark in labkit.breakpoints()}
    named = {mark for name in labkit.names() for mark in labkit.find(name).breakpoints}
    assert named
    assert named <= known
