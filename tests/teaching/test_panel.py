"""The panel runs again at every change, and keeps what it showed where it cannot."""

from __future__ import annotations

import pytest

import labkit
from labkit.teaching.panel import NONE, Bench, panel
from labkit.teaching.token import TokenError, from_token
from tests.teaching.test_views import markups


def bench(name: str) -> Bench:
    return panel(name).model


def test_a_change_runs_again_and_keeps_the_run_before() -> None:
    model = bench("retry.stall")
    first = model.run
    assert model.before is None
    model.number("first_wait", 3.0)
    assert model.before is first
    assert model.run.policy.first_wait == 3.0
    assert model.run.hash != first.hash


def test_the_token_brings_anybody_else_to_the_same_run() -> None:
    model = bench("interruption.stop")
    model.strike("cancel", 3, "waking")
    model.number("attempts", 2)
    model.choose(seed=5)
    other = panel(model.token)
    assert other.model.run.hash == model.run.hash == from_token(model.token).hash
    assert other.model.token == model.token


@pytest.mark.parametrize("kind", ["cancel", "stall", "disconnect"])
def test_a_fault_strikes_at_the_point_that_the_words_name(kind: str) -> None:
    model = bench("retry.rising")
    for place in range(3):
        model.strike(kind, place)
        assert model.place == place
        assert model.run.struck == model.choice.faults
        assert f"{model.points[place].function}" in model.where
    model.strike(NONE)
    assert model.run.faults == ()
    assert model.where == "no fault is placed"


def test_a_policy_that_contradicts_itself_says_so_and_the_run_stays() -> None:
    model = bench("retry.stall")
    run, token = model.run, model.token
    model.number("first_wait", 1000.0)
    assert "max_wait" in model.message
    assert model.run is run
    assert model.token == token
    model.number("first_wait", 1.0)
    assert model.message == ""


def test_a_fault_that_did_not_strike_is_said() -> None:
    model = bench("retry.quota~cancel@99w")
    assert "did not strike" in model.message
    assert model.where == "this run has no such point"
    assert model.place is None


def test_text_form_tells_outcome_and_token() -> None:
    text = panel("retry.stall~stall@3").text()
    assert "outcome" in text
    assert "token     retry.stall~stall@3" in text


def test_nonsense_is_refused() -> None:
    with pytest.raises(TokenError, match=r"retry\.guarded"):
        panel("retry.nothing")


def test_a_scenario_of_ones_own_works_without_a_token() -> None:
    shown = panel(labkit.find("retry.stall").but(name="mine", claim="<b>mine</b>"))
    _ = shown.widget
    shown.model.number("stall", 3.0)
    assert shown.model.token == ""
    assert "none: this scenario is your own" in shown.text()
    assert "<b>" not in "".join(part.value for part in markups(shown.widget))


def test_the_controls_move_the_model_and_follow_it() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    model, picture = shown.model, shown._picture.value
    shown._kind.value = "stall"
    assert model.choice.kind == "stall"
    assert shown._picture.value != picture
    shown._place.value = 2
    assert model.place == 2
    assert shown._share.value == model.token == "retry.stall~stall@2"
    shown._fields["attempts"].value = 1
    assert model.run.policy.attempts == 1
    shown._seed.value = 9
    assert model.token == "retry.stall~stall@2~attempts=1~seed=9"
    shown._share.value = "retry.down~attempts=2"
    assert model.run.scenario.name == shown._scenario.value == "retry.down"
    assert shown._fields["attempts"].value == 2
    assert shown._kind.value == NONE


def test_a_bad_token_or_number_keeps_the_picture_and_is_seen() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    picture = shown._picture.value
    shown._share.value = "retry.stall~nope=1"
    assert "nope" in shown._error.value
    shown._fields["jitter"].value = 7.0
    assert "jitter" in shown._message.value
    assert shown._picture.value == picture


def test_one_change_is_one_run_and_one_picture() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    before = shown.model.tries
    shown._kind.value = "cancel"
    assert shown.model.tries == before + 1


@pytest.mark.parametrize("name", [n for n in labkit.names() if not n.startswith("sdk.")])
def test_any_scenario_can_be_shown_with_each_fault(name: str) -> None:
    model = bench(name)
    for kind in ("cancel", "stall", "disconnect"):
        model.strike(kind, 1)
        assert model.run.faults
        assert "did not strike" not in model.message
