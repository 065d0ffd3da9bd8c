"""What the unmodified client does on the scripts, and what labkit's retry makes of it."""

import random
import sys
from itertools import pairwise
from typing import Any

import openai
import pytest

import labkit
from labkit.recovery.errors import ProviderError
from labkit.simulation import Run
from tests.simulation import pythons


def asked_at(run: Run) -> list[float]:
    return [event.time for event in run.trace if event.kind == "request"]


def findings(run: Run) -> list[str]:
    return [finding.name for finding in run.findings]


@pytest.mark.parametrize(
    ("name", "error", "text", "found", "seconds"),
    [
        ("answer", None, "The refund was sent on Monday.", [], 1.2),
        ("error_after_text", openai.APIError, "The refund was sent ", [], 1.2),
        ("drop", openai.APIConnectionError, "The refund was sent ", [], 1.1),
        ("cut_off", None, "The refund was sent ", ["truncation_accepted"], 1.1),
        ("stall", openai.APITimeoutError, "Step 1 done. ", [], 600.7),
    ],
)
def test_once_the_stream_has_begun_nothing_is_tried_again(
    name: str, error: Any, text: str, found: list[str], seconds: float
) -> None:
    run = labkit.simulate(f"sdk.{name}")
    assert asked_at(run) == [0.0]
    assert type(run.error) is (error or type(None))
    assert (run.text, findings(run), run.time) == (text, found, seconds)


def test_a_wait_asked_for_is_kept_to_the_second() -> None:
    run = labkit.simulate("sdk.rate_limit")
    assert asked_at(run) == [0.0, 2.3]
    assert (run.error, run.text, findings(run)) == (None, "The refund was sent on Monday.", [])


def test_two_retries_and_then_the_error_leaves() -> None:
    run = labkit.simulate("sdk.rising")
    assert asked_at(run) == [0.0, 1.0, 6.0]
    assert isinstance(run.error, openai.RateLimitError)


def test_a_wait_of_more_than_two_minutes_is_not_waited() -> None:
    run = labkit.simulate("sdk.long_wait")
    assert (asked_at(run), type(run.error)) == ([0.0], openai.RateLimitError)


def test_backoff_has_chance_in_it_and_the_seed_fixes_it() -> None:
    first, again, other = (asked_at(labkit.simulate("sdk.down", seed=s)) for s in (1, 1, 2))
    assert first == again != other
    for times in (first, other):
        one, two = (b - a - 0.1 for a, b in pairwise(times))
        assert 0.375 <= one <= 0.5
        assert 0.75 <= two <= 1.0


def test_a_refusal_for_want_of_money_is_tried_again_for_nothing() -> None:
    assert len(asked_at(labkit.simulate("sdk.quota"))) == 3
    guarded = labkit.simulate("sdk.quota_guarded")
    assert len(asked_at(guarded)) == 1
    assert isinstance(guarded.error, ProviderError)
    assert guarded.error.kind == "quota"


def test_labkits_retry_mends_the_cut_off_and_the_stall_of_the_same_client() -> None:
    cut = labkit.simulate("sdk.cut_off_guarded")
    assert isinstance(cut.error, ProviderError)
    assert (cut.error.kind, findings(cut), cut.text) == ("cut_off", [], "The refund was sent ")
    stall = labkit.simulate("sdk.stall_guarded")
    assert [segment.text for segment in stall.segments] == [
        "Step 1 done. ",
        "Step 1 done. Step 2 done.",
    ]
    assert (stall.error, findings(stall)) == (None, [])
    assert stall.time < 10


@pytest.mark.parametrize("name", [name for name in labkit.names() if name.startswith("sdk.")])
def test_every_scenario_of_the_sdk_is_repeatable_and_can_be_stepped(name: str) -> None:
    run = labkit.simulate(name, seed=4)
    assert labkit.simulate(name, seed=4).hash == run.hash
    assert len(run.recorded) > 3  # and so the recorded run was the same
    assert [event for event in run.trace if event.kind == "left_over"] == []
    for mark in run.scenario.breakpoints:
        assert run.to(mark).place.breakpoint == mark


def test_the_global_source_of_chance_is_put_back() -> None:
    random.seed(7)
    labkit.simulate("sdk.down", seed=1)
    assert random.random() == random.Random(7).random()


WITHOUT = """
import sys
sys.modules["openai"] = sys.modules["httpx2"] = None
import labkit
for name in ("sdk.answer", "sdk.cut_off_guarded"):
    error = labkit.simulate(name).error
    print(type(error).__name__, error)
assert labkit.simulate("retry.guarded").text
"""


def test_without_the_sdk_the_run_says_how_to_install_it() -> None:
    told = pythons.run(sys.executable, "-c", WITHOUT)
    for line in told.splitlines():
        assert line.startswith("SDKMissing the openai SDK is not installed")
        assert "pip install -e '.[sdk]'" in line
    assert len(told.splitlines()) == 2


def test_the_catalogue_is_made_without_the_sdk() -> None:
    code = "import sys, labkit; labkit.names(); print({'openai', 'httpx2'} & set(sys.modules))"
    told = pythons.run(sys.executable, "-c", code)
    assert told == "set()\n"
