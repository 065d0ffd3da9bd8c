"""Turns and sessions as scenarios: what the naive ones break, by name, and ours do not."""

from __future__ import annotations

import pytest

from labkit.recovery.dispatch import Concurrency
from labkit.scenarios.catalogue import catalogue, find, simulate
from labkit.scenarios.rows import rows
from labkit.simulation import Run

FLAWS = {
    "turn.swallows": {"cancel_swallowed"},
    "turn.rolls_back": {"draft_lost", "effect_forgotten", "message_lost", "result_lost"},
    "turn.saves_late": {"effect_forgotten", "result_lost"},
    "turn.trusting": {"lost_update"},
    "sessions.no_lock": {"session_overlap"},
    "sessions.drops": {"message_lost"},
    "sessions.tail": {"message_reordered"},
    "interruption.error_forgetful": {"draft_lost"},
    "interruption.stop_forgetful": {"draft_lost"},
}


def statuses(run: Run) -> list[str]:
    return [message.status for message in run.result.messages if message.role == "tool"]


def messages(run: Run, session: str = "ann") -> list[str]:
    left = next(e for e in run.trace if e.actor == "lab" and e.kind == "left")
    return [row[1] for row in dict(left[session])["messages"] if row[0] == "user"]


@pytest.mark.parametrize("name", FLAWS)
def test_naive_code_is_found_by_the_name_of_what_it_breaks(name: str) -> None:
    assert {finding.name for finding in simulate(name).findings} == FLAWS[name]


def test_every_row_that_is_naive_is_one_of_these() -> None:
    told = {
        f"{topic}.{name}"
        for topic in ("turn", "sessions")
        for name, row in rows(topic).items()
        if "naive" in row
    }
    assert told == {name for name in FLAWS if not name.startswith("interruption")}


def test_a_stop_in_the_third_call_keeps_two_results_and_marks_the_rest() -> None:
    assert statuses(simulate("turn.stop")) == ["done", "done", "unknown", "not started"]


def test_safe_tools_run_side_by_side_and_the_others_one_by_one() -> None:
    told = [e for e in simulate("turn.reference").trace if e.kind in ("tool_start", "tool_end")]
    assert [(e.kind, e["call"]) for e in told] == [
        *(("tool_start", "c1"), ("tool_start", "c2"), ("tool_end", "c1"), ("tool_end", "c2")),
        *(("tool_start", "c3"), ("tool_end", "c3"), ("tool_start", "c4"), ("tool_end", "c4")),
    ]


def test_a_stop_that_comes_while_the_answer_is_saved_finds_a_whole_turn() -> None:
    run = simulate("turn.late_stop")
    assert [m.role for m in run.result.messages][-1] == "assistant"
    assert run.result.drafts == ()
    assert next(e["outcome"] for e in run.trace if e.kind == "end") == "cancelled"


def test_text_before_the_tools_and_the_answer_after_them_are_two_segments() -> None:
    run = simulate("turn.reference")
    assert [(segment.text, segment.reason) for segment in run.segments] == [
        ("Let me look.", "tools"),
        ("The refund was sent on Monday.", ""),
    ]


def test_a_segment_that_no_tool_has_ended_says_that_the_next_one_begins() -> None:
    trace = simulate("sessions.three").trace
    assert [event["reason"] for event in trace if event.kind == "segment_end"] == ["next"]


def test_a_message_joins_the_running_turn() -> None:
    run = simulate("sessions.three")
    assert messages(run) == ["a1", "a2"]
    starts = [(e["session"], e["message"]) for e in run.trace if e.kind == "turn_start"]
    assert ("ann", "a2") not in starts


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (3, 3), (0, 5), (-1, 5)])
def test_the_gate_lets_so_many_turns_run_at_once(limit: int, most: int) -> None:
    run = simulate("sessions.gate", policy=Concurrency(limit=limit))
    running, seen = 0, [0]
    for event in run.trace:
        running += (event.kind == "turn_start") - (event.kind == "turn_end")
        seen.append(running)
    assert (max(seen), run.findings) == (most, ())


def test_a_stop_ends_one_turn_and_everything_else_keeps_its_order() -> None:
    run = simulate("sessions.busy")
    assert messages(run) == ["a1", "a2", "a3", "a4", "a5"]
    told = [e["text"] for e in run.trace if e.kind == "status"]
    assert told[0] == "ann: Stopped 1 turn. 5 waiting."
    ends = [(e["message"], e["outcome"]) for e in run.trace if e.kind == "turn_end"]
    assert ends[0] == ("a1", "stopped")
    assert {outcome for _, outcome in ends[1:]} == {"done"}


@pytest.mark.parametrize(("room", "ways"), [(0, "line"), (1, "mailbox line"), (20, "mailbox")])
def test_the_mailbox_takes_what_it_has_room_for(room: int, ways: str) -> None:
    run = simulate("sessions.busy", policy=Concurrency(room=room))
    taken = [e["way"] for e in run.trace if e.kind == "routed" and e["message"] in ("a2", "a3")]
    assert list(dict.fromkeys(taken[:2])) == ways.split()
    assert (messages(run), run.findings) == (["a1", "a2", "a3", "a4", "a5"], ())


def test_stop_all_drops_what_waits_and_says_how_many() -> None:
    run = simulate("sessions.stop_all")
    assert messages(run) == ["a1"]
    told = [e["text"] for e in run.trace if e.kind == "status"]
    assert told == ["ann: Stopped 1 turn. Dropped 2 waiting."]
    assert [e["message"] for e in run.trace if e.kind == "dropped"] == ["a2", "a3"]


def test_a_store_without_the_lock_refuses_the_second_writer() -> None:
    ends = [
        (e["message"], e["outcome"])
        for e in simulate("sessions.no_lock").trace
        if e.kind == "turn_end"
    ]
    assert ("a1", "failed") in ends


def test_naive_and_careful_play_the_same_script() -> None:
    scripts = {
        scenario.script for name, scenario in catalogue().items() if name.startswith("turn.")
    }
    assert len(scripts) == 1
    assert find("sessions.no_lock").script == find("sessions.three").script
