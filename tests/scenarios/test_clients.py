"""The naive clients are each wrong in one way, and the careful ones in none."""

import pytest

from labkit.scenarios.catalogue import catalogue, simulate
from labkit.simulation import STREAM_JUDGES, Fault, points

# naive scenario -> the one thing that is wrong with it
FLAWS = {
    "retry.naive": "duplicate_text",
    "retry.glued": "duplicate_text",
    "retry.cut_off": "truncation_accepted",
    "retry.hammer": "retry_after_ignored",
    "retry.storm": "retry_storm",
    "retry.swallow": "cancel_swallowed",
    "retry.forgotten": "left_over_task",
    "retry.late": "lost_tail",
}
OURS = [name for name in catalogue() if not name.startswith("sdk.")]
CURED = {
    "retry.naive": "retry.guarded",
    "retry.glued": "retry.stall",
    "retry.cut_off": "retry.cut_off_guarded",
    "retry.hammer": "retry.rising",
    "retry.storm": "retry.down",
}


@pytest.mark.parametrize("name", FLAWS)
def test_a_naive_client_is_wrong_in_exactly_one_way(name: str) -> None:
    assert {finding.name for finding in simulate(name).findings} == {FLAWS[name]}


def test_each_judge_is_shown_by_a_naive_client() -> None:
    assert {judge.__name__ for judge in STREAM_JUDGES} == set(FLAWS.values())


@pytest.mark.parametrize("name", [name for name in OURS if name not in FLAWS])
def test_the_careful_clients_have_no_findings(name: str) -> None:
    assert simulate(name).findings == ()


@pytest.mark.parametrize("naive", CURED)
def test_the_cure_of_a_naive_client_runs_on_the_same_script(naive: str) -> None:
    assert catalogue()[naive].script == catalogue()[CURED[naive]].script


def test_the_client_that_swallows_a_cancel_does_so_wherever_the_stop_comes() -> None:
    scenario = catalogue()["retry.swallow"]
    for point in points(scenario):
        if point.task == "answer":
            run = simulate(scenario, faults=[Fault("cancel", point.number, "answer")])
            assert [finding.name for finding in run.findings] == ["cancel_swallowed"]


def test_the_page_that_waits_for_whole_words_loses_only_the_last() -> None:
    assert simulate("retry.late").text == "The refund was sent on "


def test_glued_segments_say_the_first_step_twice() -> None:
    assert simulate("retry.glued").text == "Step 1 done. Step 1 done. Step 2 done."
