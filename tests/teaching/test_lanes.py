"""Many sessions as a chart: turns, waits and ways, and the gate as a level."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest

import labkit
from labkit.recovery.dispatch import Concurrency
from labkit.scenarios.sessions import serving
from labkit.simulation import SimulationError
from labkit.teaching.lanes import lanes, running, story
from tests.teaching.test_views import pictures

SESSIONS = [name for name in labkit.names() if name.startswith("sessions.")]


def test_the_text_tells_turns_waits_and_ways_session_by_session() -> None:
    told = lanes("sessions.gate").text().splitlines()
    assert told[0] == "sessions.gate: the gate lets 3 through; ends at 4 s"
    assert "  ann     0 to 4 s: a1: done" in told
    assert "          0.1 s: a2 into the mailbox" in told
    assert "          2 s: a2 joins the turn" in told
    assert "  dan     2 to 4 s: d1: done" in told
    assert "          0 to 2 s: d1 waits" in told
    assert told[-1] == "  running at most 3 at a time"


def test_a_stop_is_seen_with_what_it_left_over_and_what_was_dropped() -> None:
    busy = lanes("sessions.busy").text()
    assert "0 to 1.4 s: a1: stopped" in busy
    assert "1.4 s: /stop at once" in busy
    assert "1.4 to 3.4 s: a3 waits, left over" in busy
    assert "1.4 s: a2 dropped" in lanes("sessions.stop_all").text()


def test_two_turns_of_one_session_at_once_overlap_in_its_lane() -> None:
    def overlaps(name: str) -> bool:
        own = [i for i in story(labkit.simulate(name)) if i.lane == "ann" and not i.sign]
        turns = [item for item in own if item.label.endswith(("done", "failed", "stopped"))]
        return any(one.end > two.start for one, two in pairwise(turns))

    assert overlaps("sessions.no_lock")
    assert not overlaps("sessions.three")
    assert not overlaps("sessions.busy")


def test_the_level_is_that_of_the_end_of_each_moment() -> None:
    level = running(labkit.simulate("sessions.gate").trace)
    assert level == [(0.0, 3), (2.0, 3), (4.0, 0)]


def test_a_run_that_is_interrupted_still_has_its_lanes() -> None:
    run = labkit.simulate("sessions.busy", faults=labkit.Fault("crash", 30))
    assert "a2: left" in lanes(run).text()


def test_a_run_without_a_dispatcher_is_refused_with_one_that_has_it() -> None:
    with pytest.raises(SimulationError, match=r"has no sessions: try 'sessions.three'$"):
        lanes("retry.naive")


def test_a_run_that_died_before_any_turn_says_of_what() -> None:
    async def dies(provider: object, policy: object, observe: object) -> None:
        raise KeyError("gate")

    run = labkit.simulate(labkit.find("sessions.busy").but(client=dies))
    with pytest.raises(SimulationError, match=r"no sessions: .*; it ended with KeyError: 'gate'"):
        lanes(run)


def test_two_runs_stand_one_below_the_other_on_one_time_axis() -> None:
    chart = lanes("sessions.gate", "sessions.busy", marks=("now: ", "before: "))
    axes = chart.figure.axes
    assert len({each.get_xlim() for each in axes}) == 1
    assert [each.get_title(loc="left").split(".")[0] for each in axes[::2]] == [
        "now: sessions",
        "before: sessions",
    ]
    one, other = chart.text().split("\n\n")
    assert one.removeprefix("now: ") == lanes("sessions.gate").text()
    assert other.removeprefix("before: ") == lanes("sessions.busy").text()


def test_a_run_that_ends_before_any_turn_is_drawn_all_the_same() -> None:
    run = labkit.simulate("sessions.three", faults=labkit.Fault("crash", 2))
    assert run.time == 0
    assert "running at most 0 at a time" in lanes(run).text()
    assert pictures(lanes(run).html)


@pytest.mark.parametrize("name", SESSIONS)
def test_every_scenario_has_a_picture(name: str) -> None:
    assert pictures(lanes(name).html)


def test_a_message_that_is_stopped_at_the_gate_waits_until_then_and_the_level_stays() -> None:
    arrivals = [[0.0, "ann", "a1"], [0.1, "bob", "b1"], [0.5, "bob", "/stop"]]
    three = labkit.find("sessions.three")
    client = partial(serving, arrivals=arrivals)
    run = labkit.simulate(three.but(client=client), policy=Concurrency(limit=1))
    told = lanes(run).text()
    assert "0.1 to 0.5 s: b1 waits" in told
    assert "0.5 s: b1 stopped before it began" in told
    assert running(run.trace) == [(0.0, 1), (2.0, 0)]
