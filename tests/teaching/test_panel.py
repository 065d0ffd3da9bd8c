"""The panel runs again at every change, and keeps what it showed where it cannot."""

from __future__ import annotations

from threading import Thread

import pytest

import labkit
from labkit.providers.script import Script
from labkit.simulation import Fault
from labkit.teaching.lanes import lanes
from labkit.teaching.leases import leases
from labkit.teaching.panel import Bench, Panel, panel
from labkit.teaching.timeline import timeline
from labkit.teaching.token import TokenError, from_token, token_of
from tests.simulation.kit import two_workers
from tests.teaching.test_views import markups, pictures

from .conftest import Turns

PHASES = ("while it waits", "as it wakes")


def bench(name: str) -> Bench:
    return panel(name).model


def test_a_change_runs_again_and_keeps_the_run_before() -> None:
    model = bench("retry.stall")
    first = model.run
    assert model.before is None
    model.change(first_wait=3.0)
    assert model.before is first
    assert model.run.policy.first_wait == 3.0
    assert model.run.hash != first.hash


def test_the_token_brings_anybody_else_to_the_same_run() -> None:
    model = bench("interruption.stop")
    model.strike(model.strikes("cancel", "waking")[3][1])
    model.change(attempts=2)
    model.change(seed=5)
    other = panel(token_of(model.run)).model.run
    assert other.hash == model.run.hash == from_token(token_of(model.run)).hash
    assert token_of(other) == token_of(model.run)


@pytest.mark.parametrize("kind", ["cancel", "timeout", "crash", "stall", "disconnect"])
def test_a_fault_strikes_at_the_place_that_the_words_name(kind: str) -> None:
    model = bench("retry.rising")
    points = labkit.points("retry.rising", kind)
    for point, (words, fault) in zip(points, model.strikes(kind), strict=True):
        model.strike(fault)
        assert model.run.struck == (fault,)
        assert (fault.point, point.function in words) == (point.number, True)
    model.strike()
    assert model.run.faults == ()


def test_the_controls_change_the_first_fault_and_keep_the_others() -> None:
    model = bench("retry.rising~stall@2~disconnect@5")
    model.strike(Fault("stall", 1))
    assert model.run.faults == (Fault("stall", 1), Fault("disconnect", 5))


def test_a_policy_that_contradicts_itself_says_so_and_the_run_stays() -> None:
    model = bench("retry.stall")
    run = model.run
    with pytest.raises(ValueError, match="max_wait"):
        model.change(first_wait=1000.0)
    assert model.run is run
    assert model.before is None


def test_a_fault_that_did_not_strike_is_said() -> None:
    shown = panel("retry.quota~cancel@99w")
    assert "did not strike" in shown.text()
    _ = shown.widget
    assert "did not strike" in shown._told.value
    assert "no such place" in shown._where.value


def test_text_form_tells_outcome_and_token() -> None:
    text = panel("retry.stall~stall@3").text()
    assert "outcome" in text
    assert "token     retry.stall~stall@3" in text


def test_nonsense_is_refused() -> None:
    with pytest.raises(TokenError, match=r"retry\.\w+, .*labkit\.names\(\)"):
        panel("retry.nothing")


def test_a_scenario_of_ones_own_works_without_a_token() -> None:
    shown = panel(labkit.find("retry.stall").but(name="mine", claim="<b>mine</b>"))
    _ = shown.widget
    shown.model.change(stall=3.0)
    assert shown._token.value == ""
    assert "none: this scenario is your own" in shown.text()
    assert "<b>" not in "".join(part.value for part in markups(shown.widget))


def test_the_controls_move_the_model_and_follow_it() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    model, picture = shown.model, shown._picture.value
    shown._kind.value = ("stall", "waiting")
    assert model.run.faults == (Fault("stall", 0),)
    assert shown._picture.value != picture
    shown._place.value = 2
    assert model.run.faults == (Fault("stall", 2),)
    assert shown._where.value == dict(enumerate(model.strikes("stall")))[2][0]
    assert shown._token.value == "retry.stall~stall@2"
    shown._fields["attempts"].value = 1
    assert model.run.policy.attempts == 1
    shown._fields["seed"].value = 9
    assert shown._token.value == "retry.stall~stall@2~attempts=1~seed=9"
    shown._token.value = "retry.down~attempts=2"
    assert model.run.scenario.name == shown._scenario.value == "retry.down"
    assert shown._fields["attempts"].value == 2
    assert shown._kind.value == ("", "")


def test_a_bad_token_or_number_keeps_the_picture_and_is_seen() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    picture = shown._picture.value
    shown._token.value = "retry.stall~nope=1"
    assert "nope" in shown._message.value
    shown._fields["jitter"].value = 7.0
    assert "jitter" in shown._message.value
    assert shown._picture.value == picture
    shown._fields["jitter"].value = 0.5
    assert shown._message.value == ""
    assert shown._token.value == "retry.stall"


def test_one_change_is_one_run_and_one_picture() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    runs, pictures = [], []
    shown.model.observe(runs.append, "run")
    shown._picture.observe(pictures.append, "value")
    shown._kind.value = ("cancel", "waking")
    assert (len(runs), len(pictures)) == (1, 1)


def test_the_picture_of_a_panel_has_the_text_form_of_both_runs() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    shown._fields["attempts"].value = 1
    now, before = shown.model.run, shown.model.before
    (picture,) = pictures(shown._picture.value)
    assert picture["alt"] == timeline(now, before, marks=("now: ", "before: ")).text()


def test_the_panel_says_that_it_works_until_the_picture_is_there() -> None:
    shown = panel("retry.stall")
    _ = shown.widget
    seen: list[str] = []
    for part in (shown._message, shown._picture):
        part.observe(lambda change: seen.append(change["new"]), "value")
    shown._kind.value = ("stall", "waiting")
    working, picture, done = seen
    assert working == '<div role="status">working…</div>'
    assert picture.startswith("<img ")
    assert done == ""


def test_a_panel_on_sessions_shows_where_each_message_goes() -> None:
    shown = panel("sessions.busy")
    _ = shown.widget
    shown._fields["room"].value = 1
    now, before = shown.model.run, shown.model.before
    (picture,) = pictures(shown._picture.value)
    assert picture["alt"] == lanes(now, before, marks=("now: ", "before: ")).text()
    assert "0.6 s: a3 into the mailbox" in shown._told.value
    assert "0.6 to 3.4 s: a3 waits" in shown._told.value
    shown._scenario.value = "retry.stall"
    (picture,) = pictures(shown._picture.value)
    assert picture["alt"].startswith("now: retry.stall: ends at")
    shown._scenario.value = "sessions.gate"
    (picture,) = pictures(shown._picture.value)  # what was before has no lanes
    assert picture["alt"] == "now: " + lanes("sessions.gate").text()


def test_each_button_for_a_fault_is_as_wide_as_its_words() -> None:
    shown = panel("durable.killed")
    _ = shown.widget
    assert shown._kind.style.button_width == "auto"


def test_a_panel_on_workers_shows_who_held_what() -> None:
    shown = panel("leases.killed~lease=20")
    _ = shown.widget
    (picture,) = pictures(shown._picture.value)
    assert picture["alt"] == "now: " + leases("leases.killed~lease=20").text()
    shown._fields["lease"].value = 10.0
    now, before = shown.model.run, shown.model.before
    (picture,) = pictures(shown._picture.value)
    assert picture["alt"] == leases(now, before, marks=("now: ", "before: ")).text()


def test_a_room_that_makes_no_sense_is_refused_and_the_picture_stays() -> None:
    shown = panel("sessions.busy")
    _ = shown.widget
    picture = shown._picture.value
    shown._fields["room"].value = -1
    assert "PolicyError: room is -1, and must be a whole number from 0" in shown._message.value
    assert shown._picture.value == picture


def offered(shown: Panel) -> list[str]:
    _ = shown.widget
    return [words for words, _ in shown._kind.options]


def test_only_faults_that_can_strike_are_offered_and_the_one_that_is_asked_for() -> None:
    cancels = [f"{kind} {phase}" for kind in ("cancel", "timeout") for phase in PHASES]
    cancels, steps = [*cancels, "crash"], ["disconnect", "stall"]
    wire = ["connection cut", "event lost", "event twice", "events swapped"]
    assert offered(panel("retry.stall")) == ["none", *cancels, *steps]
    kept = panel("stream.kept~lose@3")
    assert offered(kept) == ["none", *cancels, *steps, *wire]
    assert kept._kind.value == ("lose", "waiting")
    kept._kind.value = ("cut", "waiting")
    assert kept._token.value == "stream.kept~cut@3"
    kept._token.value = "retry.stall"
    assert offered(kept) == ["none", *cancels, *steps]
    own = panel(labkit.find("retry.stall").but(client=two_workers))
    stops = [f"process {what} {phase}" for what in ("killed", "frozen") for phase in PHASES]
    assert offered(own) == ["none", *cancels[:-1], *stops, "crash"]
    assert offered(panel("retry.stall~cut@3")) == ["none", *cancels, *steps, "connection cut"]


def test_a_scenario_without_a_place_for_a_fault_stays_without_one() -> None:
    async def at_once(provider: object, policy: object, observe: object) -> None:
        pass

    shown = panel(labkit.find("retry.stall").but(client=at_once))
    assert offered(shown) == ["none"]
    assert shown._kind.value == ("", "")
    assert shown.model.run.faults == ()


@pytest.mark.parametrize("name", labkit.names())
def test_any_scenario_can_be_shown_with_each_fault(name: str) -> None:
    model = bench(name)
    for kind in ("cancel", "timeout", "crash", "stall", "disconnect"):
        there = model.strikes(kind)
        scripted = isinstance(model.run.scenario.script, Script)
        assert bool(there) == (scripted or kind not in ("stall", "disconnect"))
        for _, fault in there[:1]:
            model.strike(fault)
            assert model.run.struck == (fault,)


def test_a_change_that_comes_while_the_panel_draws_waits_for_its_turn(
    monkeypatch: pytest.MonkeyPatch, turns: Turns
) -> None:
    shown = panel("retry.stall")
    assert shown.widget
    draw, reader = shown._draw_controls, []

    def types() -> None:
        shown._fields["first_wait"].value = 99.0
        turns.waited_for.set()  # only where its callback did not wait: else it was set before

    def slowly() -> None:
        if not reader:
            reader.append(Thread(target=types))
            reader[0].start()
            assert turns.waited_for.wait(30)
        draw()

    monkeypatch.setattr(shown, "_draw_controls", slowly)
    shown._fields["attempts"].value = 2
    reader[0].join(10)
    assert "PolicyError: max_wait" in shown._message.value
