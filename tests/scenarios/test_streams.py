"""Broken streams: each scenario shows what it claims, and each judge is shown by a naive client."""

from __future__ import annotations

from typing import Any

import pytest

import labkit
from labkit.recovery.stream import RecoveryLimits
from labkit.scenarios.stream_judges import RECOVERY_JUDGES
from labkit.simulation import Fault, Run, simulate
from labkit.teaching.token import read
from tests.scenarios.naive_streams import NAIVE

WHOLE = (
    "To get VPN access, first file a permission request. Then your manager approves it. "
    "After that IT sends you a profile."
)
# scenario -> the record's status, the page's segments, recoveries, effects
SHOWN: dict[str, tuple[str, list[str], int, int]] = {
    "whole": ("completed", [WHOLE], 0, 0),
    "cut": ("completed", [WHOLE], 1, 0),
    "again": ("completed", [WHOLE[:70], WHOLE], 1, 0),
    "before_finish": ("completed", [WHOLE], 1, 0),
    "token_limit": ("completed", [WHOLE], 1, 0),
    "kept": ("completed", [WHOLE], 0, 0),
    "half_call": (
        "completed",
        [
            "I open a ticket. ",
            "Ticket 1 is open: VPN access, high priority. IT answers within a day.",
        ],
        1,
        1,
    ),
    "tool_done": (
        "completed",
        ["Ticket 1 is open: VPN access, high priority. IT answers within a day."],
        1,
        1,
    ),
    "limit": ("failed", [WHOLE[:83]], 2, 0),
    "stop": ("stopped", [WHOLE[:52]], 0, 0),
    "gateway": ("completed", [WHOLE], 1, 0),
    "refused": ("failed", [WHOLE[:52]], 1, 0),
    "number": ("completed", ["The licence costs 1000 yen a month."], 1, 0),
}
CUTS = ("cut", "lose", "duplicate", "reorder")


@pytest.mark.parametrize("name", SHOWN)
def test_a_scenario_of_broken_streams_shows_what_it_claims(name: str) -> None:
    run = labkit.simulate(f"stream.{name}")
    told = run.result
    segments = [segment.text for segment in run.segments]
    assert (told.status, segments, told.recoveries, len(run.ledger)) == SHOWN[name]
    assert run.findings == ()


@pytest.mark.parametrize("kind", CUTS)
@pytest.mark.parametrize("point", range(6))
def test_no_accident_on_the_wire_loses_doubles_or_splices_text(kind: str, point: int) -> None:
    run = labkit.simulate("stream.kept", faults=Fault(kind, point))
    assert (run.result.status, run.text, run.findings, run.missed) == ("completed", WHOLE, (), ())
    assert sum(event.kind == "request" for event in run.trace) == 1


@pytest.mark.parametrize("pair", [(a, b) for a in CUTS for b in CUTS])
def test_nor_do_two_accidents(pair: tuple[str, str]) -> None:
    faults = [Fault(kind, point) for kind, point in zip(pair, (2, 4), strict=True)]
    run = labkit.simulate("stream.kept", faults=faults)
    assert (run.result.status, run.text, run.findings) == ("completed", WHOLE, ())


def test_a_generation_that_breaks_behind_the_service_is_asked_for_again_in_a_new_segment() -> None:
    run = labkit.simulate("stream.kept", faults=Fault("disconnect", 3))
    assert run.result.status == "completed"
    assert run.text == WHOLE
    assert run.findings == ()


def test_a_gap_that_is_spliced_a_cursor_that_overshoots_and_the_rest_are_found_by_name() -> None:
    assert set(NAIVE) == {judge.__name__ for judge in RECOVERY_JUDGES} | {"duplicate_text"}


def naive(name: str) -> Run:
    client, token = NAIVE[name]
    asked = read(token)
    scenario = asked["scenario"].but(client=client)
    return simulate(scenario, faults=asked["faults"])


@pytest.mark.parametrize("name", NAIVE)
def test_each_judge_names_its_naive_client(name: str) -> None:
    run = naive(name)
    assert run.error is None
    assert name in {finding.name for finding in run.findings}


@pytest.mark.parametrize("name", NAIVE)
def test_on_the_same_run_labkits_client_has_no_finding(name: str) -> None:
    assert labkit.from_token(NAIVE[name][1]).findings == ()


@pytest.mark.parametrize(
    ("recoveries", "status", "requests"), [(0, "failed", 1), (1, "failed", 2), (3, "completed", 4)]
)
def test_the_limit_of_recoveries_decides_how_often_is_asked(
    recoveries: int, status: str, requests: int
) -> None:
    run = labkit.simulate("stream.limit", policy=RecoveryLimits(recoveries=recoveries))
    assert run.result.status == status
    assert sum(event.kind == "request" for event in run.trace) == requests
    assert run.text == "".join(run.result.chunks)


def test_what_is_seen_was_saved_before() -> None:
    for name in SHOWN:
        saved = 0
        shown = 0
        for event in labkit.simulate(f"stream.{name}").trace:
            if event.actor == "record":
                saved = event["characters"]
            elif event.kind == "shown":
                shown += len(event["text"])
                assert shown <= saved, (name, event)


def test_a_user_who_stops_is_not_asked_for_wherever_it_strikes() -> None:
    points = [point for point in labkit.points("stream.cut", "cancel") if point.task == "answer"]
    assert len(points) > 10
    for point in points:
        fault = Fault("cancel", point.number, point.task)
        run = labkit.simulate("stream.cut", faults=fault)
        at = next(e.index for e in run.trace if e.kind == "fault")
        assert not [e for e in run.trace[at:] if e.kind == "request"], point
        names: set[Any] = {finding.name for finding in run.findings}
        assert names <= {"truncation_accepted"}, point


async def reads_one_event(desk: Any, limits: Any, observe: Any) -> None:
    await desk.begin()
    async for _ in desk.connect(""):
        return


def test_a_service_that_is_still_writing_ends_with_the_run() -> None:
    run = simulate(labkit.find("stream.kept").but(client=reads_one_event))
    assert [event for event in run.trace if event.kind == "left_over"] == []
    assert run.time < 1
