"""The tables of the stream lessons are graded from traces: the key, and that policies flip it."""

from __future__ import annotations

import pytest

import labkit
from labkit.recovery.stream import RecoveryLimits
from labkit.scenarios.facts import connections, recovered, tool_ran
from tests.simulation.kit import trace

WHOLE, PARTS = "the whole answer, once", "a part, marked as interrupted, then the whole answer"
RESUMED, ON, AGAIN = "its events are resumed", "it is continued", "it is asked again"

KEYS: dict[str, dict[str, tuple[str, ...]]] = {
    "wire": {
        "stream.kept~cut@3": ("at once", "2"),
        "stream.kept~duplicate@3": ("never, and it does no harm", "1"),
        "stream.kept~lose@3": ("with the next event", "2"),
        "stream.kept~reorder@3": ("with the next event", "2"),
    },
    "streams": {
        "stream.cut": (ON, WHOLE, "done"),
        "stream.kept~cut@3": (RESUMED, WHOLE, "done"),
        "stream.again": (AGAIN, PARTS, "done"),
        "stream.json": (AGAIN, PARTS, "done"),
        "stream.token_limit": (ON, WHOLE, "done"),
        "stream.stop": ("not at all", "a part of the answer", "stopped"),
    },
    "stream_tools": {
        "stream.half_call": ("once", AGAIN, "done"),
        "stream.tool_done": ("once", ON, "done"),
        "stream.tool_again": ("once", AGAIN, "done"),
        "stream.limit": ("never", ON, "failed"),
    },
}


@pytest.mark.parametrize("name", KEYS)
def test_the_key_of_a_table_is_read_from_its_runs(name: str) -> None:
    table = labkit.predict(name)
    grades = table.corrected().grades
    found = {
        row: tuple(grades[row, column].right for column in table.columns) for row in table.rows
    }
    assert found == KEYS[name]


@pytest.mark.parametrize("name", KEYS)
def test_every_answer_of_the_key_is_a_choice(name: str) -> None:
    table = labkit.predict(name)
    for answers in KEYS[name].values():
        for answer, column in zip(answers, table.columns.values(), strict=True):
            assert answer in column["choices"]


def test_without_a_recovery_the_answer_flips_with_the_event_that_decides() -> None:
    none = RecoveryLimits(recoveries=0)
    grade = labkit.predict("streams").corrected(policy=none)["stream.cut", "recovered"]
    assert grade.right == "not at all"
    assert grade.event is not None
    assert grade.event.kind == "end"


def test_what_was_not_broken_is_not_brought_back() -> None:
    assert recovered(labkit.simulate("stream.whole").trace).answer == "nothing broke"


def test_a_tool_that_ran_twice_is_told() -> None:
    from tests.scenarios.test_streams import naive

    fact = tool_ran(naive("effect_repeated").trace)
    assert fact.answer == "twice or more"


def test_an_answer_that_is_asked_again_is_decided_by_the_end_of_its_segment() -> None:
    decided = {"again": "segment_end", "cut": "request"}
    for name, kind in decided.items():
        events = labkit.simulate(f"stream.{name}").trace
        assert events[recovered(events).event].kind == kind


def test_the_last_effect_and_the_last_connection_decide_or_the_end() -> None:
    events = trace(
        (0, "wire", "open"),
        (1, "ledger", "effect"),
        (2, "wire", "open"),
        (3, "ledger", "effect"),
        (4, "lab", "end"),
    )
    assert (tool_ran(events).event, connections(events).event) == (3, 2)
    nothing = trace((0, "lab", "start"), (1, "lab", "end"))
    assert (tool_ran(nothing).event, connections(nothing).event) == (1, 1)
