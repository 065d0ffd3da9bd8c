"""The naive clients are each wrong in one way, and the careful ones in none."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from labkit.recovery.errors import ProviderError
from labkit.scenarios import clients
from labkit.scenarios.catalogue import catalogue, simulate
from labkit.scenarios.rows import rows
from labkit.simulation import STREAM_JUDGES, Fault, points
from tests.recovery.playing import PLAIN, play, refused

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
NAIVE = {
    f"{topic}.{name}"
    for topic in ("turn", "sessions")
    for name, row in rows(topic).items()
    if "naive" in row
} | {f"interruption.{name}_forgetful" for name in ("error", "stop")}
# with tables of their own
ELSEWHERE = ("sdk.", "frameworks.", "budgets.", "effects.", "leases.", "durable.")
OURS = [name for name in catalogue() if not name.startswith(ELSEWHERE)]
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


@pytest.mark.parametrize("name", [name for name in OURS if name not in {*FLAWS, *NAIVE}])
def test_the_careful_clients_have_no_findings(name: str) -> None:
    assert simulate(name).findings == ()


@pytest.mark.parametrize("naive", CURED)
def test_the_cure_of_a_naive_client_runs_on_the_same_script(naive: str) -> None:
    assert catalogue()[naive].script == catalogue()[CURED[naive]].script


# naive scenario -> the careful client in its place, where the lesson has no scenario of that
IN_ITS_PLACE: dict[str, clients.Client] = {
    "retry.swallow": partial(
        clients.stopped, client=clients.careful, seconds=rows("retry")["swallow"]["stop_at"]
    ),
    "retry.forgotten": clients.careful,
    "retry.late": clients.careful,
}


def test_every_naive_client_has_a_careful_one_beside_it() -> None:
    assert {*CURED, *IN_ITS_PLACE} == set(FLAWS)


@pytest.mark.parametrize("naive", IN_ITS_PLACE)
def test_the_careful_client_in_place_of_a_naive_one_has_no_finding(naive: str) -> None:
    run = simulate(catalogue()[naive].but(client=IN_ITS_PLACE[naive]))
    assert (run.error, run.findings) == (None, ())


def test_the_careful_client_leaves_the_provider_before_an_error_of_its_page_leaves() -> None:
    class Torn:
        def __init__(self, observe: Any) -> None:
            self.random, self.now = observe.random, observe.now

        def __call__(self, kind: str, **data: Any) -> None:
            if kind == "shown":
                raise OSError("the page is gone")

        def of(self, actor: str) -> "Torn":
            return self

    async def client(provider: Any, policy: Any, observe: Any) -> None:
        try:
            await clients.careful(provider, policy, Torn(observe))  # type: ignore[arg-type]
        except OSError:
            observe("caught")

    run = simulate(catalogue()["retry.late"].but(client=client))
    kinds = [event.kind for event in run.trace]
    assert kinds[-3:] == ["left", "caught", "end"]


def test_the_loop_that_starts_over_ends_with_the_last_error_after_all_its_attempts() -> None:
    attempts = [refused(500), refused(502), refused(503), refused(504)]
    run = play(attempts, clients.starts_over, policy=replace(PLAIN, attempts=3))
    assert isinstance(run.error, ProviderError)
    assert run.error.status == 503
    assert sum(event.kind == "request" for event in run.trace) == 3


def test_the_client_that_hammers_shows_the_answer_that_it_got_at_last() -> None:
    assert simulate("retry.hammer").text == "The refund was sent on Monday."


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
