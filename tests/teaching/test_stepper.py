"""The stepper's model moves as it says, and its view follows, quickly and alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

import labkit
from labkit.simulation import Unknown
from labkit.teaching.stepper import ALL, END, Stepper, Steps, decided_at, markup, stepper
from labkit.teaching.views import view_text
from tests.teaching.test_views import markups, saying


@pytest.fixture(scope="module")
def turn() -> Steps:
    """A run of two tasks."""
    return Steps(labkit.simulate("interruption.error"))


def test_a_step_back_undoes_a_step_on(turn: Steps) -> None:
    turn.position = 100
    turn.step("line", 1)
    assert turn.view.index == 101
    turn.step("line", -1)
    assert turn.view.index == 100


@pytest.mark.parametrize("over", ["line", "event", "breakpoint"])
def test_the_ends_hold(turn: Steps, over: str) -> None:
    turn.position = -5
    assert turn.position == 0
    turn.step(over, -1)
    assert turn.position == 0
    turn.position = 10**6
    turn.step(over, 1)
    assert turn.position == turn.last == len(turn.run.recorded) - 1
    turn.step(over, -END)
    turn.step("line", -1)
    turn.step(over, -1)
    assert turn.position >= 0


@pytest.mark.parametrize(
    ("name", "event", "effects"),
    [
        ("tries_again", {"kind": "effect", "order": "order-7"}, 2),  # a finding
        ("wrong_person", {"kind": "effect", "order": "order-7"}, 2),  # a finding after a failed try
        ("gives_up", {"kind": "told", "status": "failed"}, 1),
        ("happened", {"kind": "tried", "number": 1, "error": "timeout"}, 1),  # a try
    ],
)
def test_a_run_is_decided_ahead_of_its_finding_or_at_the_try_that_failed(
    name: str, event: dict[str, Any], effects: int
) -> None:
    run = labkit.simulate(f"effects.{name}")
    after = run.trace[decided_at(run).place.event + 1]
    assert {"kind": after.kind, **{key: after[key] for key in list(event)[1:]}} == event
    assert sum(effect.event <= after.index for effect in run.ledger) == effects


def test_a_run_in_which_nothing_went_wrong_is_decided_at_its_end() -> None:
    run = labkit.simulate("effects.reference")
    assert decided_at(run).index == len(run.recorded) - 1


def test_a_task_is_stepped_without_the_others() -> None:
    steps = Steps(labkit.simulate("interruption.error"), 100)
    steps.task = "client"
    assert steps.view.place.task == "client"
    assert steps.view.index <= 100
    seen = []
    for position in range(steps.last + 1):
        steps.position = position
        seen.append(steps.view.place)
    assert seen == [place for place in steps.run.recorded if place.task == "client"]
    steps.task = ALL
    assert steps.last == len(steps.run.recorded) - 1
    assert steps.view.place == seen[-1]


def test_breakpoints_are_reached_in_both_directions(turn: Steps) -> None:
    turn.position = 0
    expected = [place.index for place in turn.run.recorded if place.breakpoint]
    for index in expected:
        turn.step("breakpoint", 1)
        assert turn.view.index == index
    for index in expected[-2::-1]:
        turn.step("breakpoint", -1)
        assert turn.view.index == index


def test_an_event_step_stands_at_the_first_place_after_the_event(turn: Steps) -> None:
    turn.position = 0
    places = turn.run.recorded
    for _ in range(10):
        before = turn.view.place.event
        turn.step("event", 1)
        here = turn.view.place
        assert here.event > before
        assert places[here.index - 1].event == before
    turn.step("event", -1)
    assert turn.view.place.event < here.event


def test_two_steppers_on_one_run_do_not_move_each_other() -> None:
    run = labkit.simulate("retry.guarded")
    one, two = stepper(run), stepper(run, at="retry guard")
    shown = [part.value for part in markups(two.widget)]
    _ = one.widget
    one.model.position = 20
    assert two.model.view.place.breakpoint == "retry guard"
    assert [part.value for part in markups(two.widget)] == shown


def test_the_text_form_is_the_place_where_it_stands_now() -> None:
    shown = stepper("retry.guarded")
    shown.model.step("breakpoint", 1)
    data = shown._repr_mimebundle_()
    assert data["text/plain"] == view_text(shown.model.view)
    assert "'has streamed'" in data["text/plain"]
    assert len(repr(shown).splitlines()) == 1


def controls(shown: Stepper) -> dict[str, Any]:
    """The controls below the buttons by their names; the slider has none."""
    return {control.description: control for control in shown.widget.children[1].children}


def test_slider_number_and_task_move_the_model_and_follow_it() -> None:
    shown = stepper("interruption.error")
    steps, named = shown.model, controls(shown)
    named[""].value = 100
    assert steps.position == named["place"].value == 100
    named["place"].value = 7
    assert steps.position == named[""].value == 7
    steps.step("breakpoint", 1)
    assert named[""].value == named["place"].value == steps.position
    named["task"].value = "turn"
    assert steps.task == "turn"
    assert named[""].max == named["place"].max == steps.last
    steps.step("line", END)
    named["task"].value = "client"
    assert named[""].value == named["place"].value == steps.position
    assert steps.view.place.task == "client"


def test_each_button_does_what_its_label_says() -> None:
    shown = stepper("retry.guarded")
    buttons = {each.description: each for each in shown.widget.children[0].children}
    passed = []
    for label in ("Last ⏭", "◀ Back", "⏮ First", "Next ▶", "Event ▶", "◀ Event", "Breakpoint ▶"):
        buttons[label].click()
        passed.append(shown.model.position)
    last, marked = shown.model.last, shown.model.run.to("has streamed").index
    event = next(p.index for p in shown.model.own if p.event > shown.model.own[1].event)
    assert passed == [last, last - 1, 0, 1, event, 0, marked]
    assert all(each.tooltip for each in buttons.values())


def test_the_current_line_has_an_arrow_and_a_number() -> None:
    for index in range(0, 60, 7):
        steps = Steps(labkit.simulate("retry.guarded"), index)
        told = markup(steps)
        assert f"→ {steps.view.place.line:>4}  " in told
        assert told.count('aria-current="step"') == 1


def test_what_the_line_changes_is_marked_by_a_word() -> None:
    told = markup(stepper("retry.guarded", at="has streamed").model)
    assert "False → changed to True</td></tr>" in told
    names = re.findall(r'<td style="[^"]*text-align:left">([^<]*)</td>', told)
    assert names[0] == "visible"
    assert names[-1] == "policy", "long values stand last"


def test_the_heading_counts_places_like_the_number_box() -> None:
    shown = stepper("interruption.error", at=-1)
    shown.model.task = "client"
    box = controls(shown)["place"]
    assert f"place {box.value} of {box.max} " in markup(shown.model)


def test_what_can_do_nothing_is_left_out_or_disabled() -> None:
    shown = stepper(labkit.find("retry.guarded").but(client=_one_line))
    assert set(controls(shown)) == {"", "place"}
    disabled = {each.description for each in shown.widget.children[0].children if each.disabled}
    assert disabled == {"◀ Breakpoint", "Breakpoint ▶"}
    assert not any(e.disabled for e in stepper("retry.guarded").widget.children[0].children)


def test_before_any_text_there_is_nothing_yet() -> None:
    shown = stepper("retry.guarded")
    assert "nothing yet" in markup(shown.model)
    assert shown.text().endswith("seen by the user\n  nothing yet")


def test_where_workers_do_the_runs_of_a_store_no_user_is_said_to_look_on() -> None:
    shown = stepper("leases.cancelled")
    assert "seen by the user" not in markup(shown.model)
    assert "seen by the user" not in shown.text()
    assert "last events" in shown.text()


def test_an_error_in_a_callback_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = stepper("retry.guarded")
    buttons = shown.widget.children[0].children
    monkeypatch.setattr("labkit.teaching.stepper.markup", lambda view: 1 / 0)
    buttons[2].click()
    assert "ZeroDivisionError" in shown.widget.children[2].value
    monkeypatch.undo()
    buttons[2].click()
    assert shown.widget.children[2].value == ""


def test_a_view_of_any_kind_is_where_it_starts() -> None:
    run = labkit.simulate("retry.guarded")
    guard = run.to("retry guard")
    assert stepper(run, at=guard).model.view.index == guard.index
    assert stepper(run, at="retry guard").model.view.index == guard.index
    assert stepper(run, at=5).model.view.index == 5
    with pytest.raises(Unknown, match="retry guard"):
        stepper(run, at="nowhere")
    with pytest.raises(Unknown, match="0 to"):
        stepper(run, at=10**6)


def test_a_step_in_a_run_of_5000_places_changes_only_what_is_shown() -> None:
    shown = stepper(saying(*["word "] * 240), at=-1)
    assert len(shown.model.run.recorded) > 4_000
    parts = markups(shown.widget)
    sent: list[str] = []
    for part in parts:
        part.observe(lambda change: sent.append(change["new"]), "value")
    shown.model.position -= 1
    assert shown.model.view.index == len(shown.model.run.recorded) - 2
    assert 1 <= len(sent) <= len(parts)
    assert sum(map(len, sent)) < 20_000


async def _one_line(provider: object, policy: object, observe: object) -> None:
    pass


def test_a_run_of_one_place_can_be_stepped() -> None:
    shown = stepper(labkit.find("retry.guarded").but(client=_one_line))
    _ = shown.widget
    for by in (1, -1):
        for over in ("line", "event", "breakpoint"):
            shown.model.step(over, by)
    assert shown.model.position == shown.model.last == 0
