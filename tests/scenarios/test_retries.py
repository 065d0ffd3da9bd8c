"""Each scenario of the retry boundary shows what its claim says."""

from typing import Any

import pytest

from labkit.scenarios.catalogue import catalogue, simulate

# scenario -> requests, waits, the text on the page, and the kind of the error that leaves
SHOWN: dict[str, tuple[int, list[float], list[str], str | None]] = {
    "retry.guarded": (1, [], ["The refund was sent "], "server"),
    "retry.rate_limit": (2, [2], ["The refund was sent on Monday."], None),
    "retry.stall_plain": (1, [], ["Step 1 done. "], "stall"),
    "retry.quota": (1, [], [""], "quota"),
    "retry.misleading": (1, [], [""], "bad_request"),
    "retry.rising": (5, [1, 5, 10, 2], ["The refund was sent on Monday."], None),
    "retry.cut_off_guarded": (1, [], ["The refund was sent "], "cut_off"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_scenario_of_the_retry_boundary_shows_what_it_claims(name: str) -> None:
    run = simulate(name)
    requests = sum(event.kind == "request" for event in run.trace)
    waits = [event["seconds"] for event in run.trace if event.kind == "wait"]
    texts = [segment.text for segment in run.segments]
    assert (requests, waits, texts, getattr(run.error, "kind", None)) == SHOWN[name]


def test_a_stall_with_segments_shows_both_and_the_second_is_whole() -> None:
    first, second = simulate("retry.stall").segments
    assert (first.text, first.reason) == ("Step 1 done. ", "stall")
    assert (second.text, second.reason) == ("Step 1 done. Step 2 done.", "")


@pytest.mark.parametrize("name", ["retry.thinking", "retry.half_call"])
def test_what_nobody_saw_is_tried_again(name: str) -> None:
    run = simulate(name)
    assert (run.error, sum(event.kind == "request" for event in run.trace)) == (None, 2)


def test_a_server_that_stays_down_is_left_after_four_attempts_with_a_note() -> None:
    error: Any = simulate("retry.down").error
    assert error.__notes__ == ["gave up after attempt 4 of 4: attempts"]


def test_other_writing_systems_arrive_as_they_were_said() -> None:
    run = simulate("retry.many_scripts")
    said = "".join(event["text"] for event in run.trace if event.kind == "say")
    assert run.text == said
    assert "退款" in said
    assert "👩‍💻" in said


@pytest.mark.parametrize("name", [name for name in catalogue() if not name.startswith("sdk.")])
def test_every_breakpoint_that_a_scenario_names_is_reached(name: str) -> None:
    run = simulate(name)
    for breakpoint_name in run.scenario.breakpoints:
        assert run.to(breakpoint_name).place.breakpoint == breakpoint_name


def test_names_are_unique_and_each_scenario_has_a_claim() -> None:
    for name, scenario in catalogue().items():
        assert (scenario.name, bool(scenario.claim)) == (name, True)
