"""The stepper's model moves as it says, and its view follows, quickly and alone."""

from __future__ import annotations

import pytest
import traitlets

import labkit
from labkit.simulation import Unknown
from labkit.teaching.stepper import ALL, Steps, stepper
from labkit.teaching.views import view_text
from tests.teaching.test_views import markups, saying


@pytest.fixture(scope="module")
def turn() -> Steps:
    """A run of two tasks."""
    return Steps(labkit.simulate("interruption.error"))


def test_a_step_back_undoes_a_step_on(turn: Steps) -> None:
    turn.index = 100
    turn.position += 1
    assert turn.index == 101
    turn.position -= 1
    assert turn.index == 100


def test_the_ends_hold(turn: Steps) -> None:
    turn.position = -5
    assert turn.index == 0
    turn.position = 10**6
    assert turn.index == len(turn.run.recorded) - 1


def test_an_index_that_is_not_there_is_refused(turn: Steps) -> None:
    with pytest.raises((Unknown, traitlets.TraitError)):
        turn.index = 10**6
    with pytest.raises(Unknown, match="client, turn"):
        turn.task = "nobody"


def test_a_task_is_stepped_without_the_others() -> None:
    steps = Steps(labkit.simulate("interruption.error"))
    steps.index = 100
    steps.task = "client"
    assert steps.view.place.task == "client"
    seen = []
    for position in range(steps.last + 1):
        steps.position = position
        seen.append(steps.view.place)
    assert seen == [place for place in steps.run.recorded if place.task == "client"]
    steps.task = ALL
    assert steps.last == len(steps.run.recorded) - 1


def test_breakpoints_are_reached_in_both_directions(turn: Steps) -> None:
    turn.position = 0
    passed = []
    for _ in range(20):
        turn.breakpoint_step(1)
        passed.append(turn.index)
    expected = [place.index for place in turn.run.recorded if place.breakpoint]
    assert list(dict.fromkeys(passed)) == expected
    turn.position = 10**6
    turn.breakpoint_step(-1)
    assert turn.index == expected[-1]
    turn.breakpoint_step(-1)
    assert turn.index == expected[-2]


def test_an_event_step_stands_at_the_first_place_after_the_event(turn: Steps) -> None:
    turn.position = 0
    places = turn.run.recorded
    for _ in range(10):
        before = turn.view.place.event
        turn.event_step(1)
        here = turn.view.place
        assert here.event > before
        assert places[here.index - 1].event == before
    turn.event_step(-1)
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
    shown.model.breakpoint_step(1)
    data = shown._repr_mimebundle_()
    assert data["text/plain"] == view_text(shown.model.view)
    assert "'has streamed'" in data["text/plain"]
    assert len(repr(shown).splitlines()) == 1


def test_the_controls_move_the_model_and_follow_it() -> None:
    shown = stepper("retry.guarded")
    _ = shown.widget
    shown._places.value = 7
    assert shown.model.index == 7
    shown.model.breakpoint_step(1)
    assert shown._places.value == shown.model.index == shown._passes.value
    assert "at breakpoint: has streamed" in shown._clock.value
    shown._passes.value = shown._passes.options[2][1]
    assert shown.model.view.place.breakpoint == "retry guard"


def test_the_current_line_has_an_arrow_and_a_number() -> None:
    shown = stepper("retry.guarded", at="retry guard")
    _ = shown.widget
    line = shown.model.view.place.line
    assert f"→ {line:>4}  " in shown._source.value
    assert shown._source.value.count("→") == 1


def test_what_the_line_changes_is_marked_by_a_word() -> None:
    shown = stepper("retry.guarded", at="has streamed")
    _ = shown.widget
    assert "changed to True" in shown._locals.value


def test_an_error_in_a_callback_is_seen() -> None:
    shown = stepper("retry.guarded")
    _ = shown.widget
    shown._on(shown._places, lambda value: 1 / 0)
    shown._places.value = 3
    assert "ZeroDivisionError" in shown._message.value


def test_a_view_of_any_kind_is_where_it_starts() -> None:
    run = labkit.simulate("retry.guarded")
    guard = run.to("retry guard")
    assert stepper(run, at=guard).model.index == guard.index
    assert stepper(run, at="retry guard").model.index == guard.index
    assert stepper(run, at=5).model.index == 5
    with pytest.raises(Unknown, match="retry guard"):
        stepper(run, at="nowhere")


def test_a_step_in_a_run_of_5000_places_changes_only_what_is_shown() -> None:
    shown = stepper(saying(*["word "] * 240), at=-1)
    assert len(shown.model.run.recorded) > 4_000
    parts = markups(shown.widget)
    sent: list[str] = []
    for part in parts:
        part.observe(lambda change: sent.append(change["new"]), "value")
    shown.model.position -= 1
    assert shown.model.index == len(shown.model.run.recorded) - 2
    assert 1 <= len(sent) <= len(parts)
    assert sum(map(len, sent)) < 20_000


async def _one_line(provider: object, policy: object, observe: object) -> None:
    pass


def test_a_run_of_one_place_can_be_stepped() -> None:
    shown = stepper(labkit.find("retry.guarded").but(client=_one_line))
    _ = shown.widget
    for by in (1, -1):
        shown.model.position += by
        shown.model.event_step(by)
        shown.model.breakpoint_step(by)
    assert shown.model.index == shown.model.last == 0
