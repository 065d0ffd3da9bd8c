"""Two workers, and something that happens to the first: each choice plays the run again."""

from __future__ import annotations

from typing import Any

import ipywidgets as ipw
import pytest
import traitlets

import labkit
from labkit.simulation import SimulationError, Unknown
from labkit.teaching.floor import HAPPENS, SLIDERS, Floor, floor
from labkit.teaching.leases import leases
from tests.teaching.test_views import pictures


@pytest.mark.parametrize(
    ("happens", "answers"),
    [
        ("killed", ["worker-2, with fence 2", "when the lease is over", "it never comes"]),
        ("frozen", ["worker-2, with fence 2", "when the lease is over", "it is refused"]),
        ("cut off", ["worker-2, with fence 2", "when the lease is over", "it never comes"]),
        ("shut down", ["worker-2, with fence 2", "at once", "it is kept"]),
    ],
)
def test_what_happens_decides_the_three_answers(happens: str, answers: list[str]) -> None:
    told = floor(happens).answers.splitlines()
    assert told[0].startswith(f"worker-1 is {happens} at 3.5 s")
    assert [line.partition("? ")[2] for line in told[1:]] == answers


@pytest.mark.parametrize(
    ("how", "finished"),
    [
        ({"seconds": 5.0}, "worker-1, with fence 1"),
        ({"lease": 30.0}, "worker-1, with fence 1"),
        ({"at": 20.0}, "worker-1, with fence 1"),
        ({}, "worker-2, with fence 2"),
    ],
    ids=["a short sleep", "a long lease", "after the end", "as it is"],
)
def test_a_sleep_that_the_lease_outlasts_costs_nothing(
    how: dict[str, float], finished: str
) -> None:
    assert f"Who finishes the run? {finished}\n" in labkit.floor("frozen", **how).text()


def test_it_says_how_long_only_of_what_lasts() -> None:
    assert floor("frozen", seconds=4.0).answers.startswith("worker-1 is frozen at 3.5 s for 4 s; ")
    assert floor("killed").answers.startswith("worker-1 is killed at 3.5 s; a lease is 10 s\n")


def test_a_run_is_played_once_for_each_choice() -> None:
    shown = floor()
    assert shown.run is shown.run
    before = shown.run
    shown.lease = 20.0
    assert shown.run is not before


def parts(shown: Floor) -> Any:
    (chosen, told, picture, steps, opened) = shown.widget.children
    return chosen.children, told, picture, steps.children[0], opened


def test_each_control_has_a_label_and_plays_and_draws_the_run_again() -> None:
    shown = floor()
    (happens, *pairs), told, picture, step, opened = parts(shown)
    assert happens.description == "worker-1 is"
    assert list(happens.options) == list(HAPPENS)
    numbers, sliders = zip(*(pair.children for pair in pairs), strict=True)
    assert [number.description for number in numbers] == [words for words, *_ in SLIDERS.values()]
    assert not any(each.continuous_update for each in (*numbers, *sliders))
    controls, values = (happens, *sliders, *numbers), ("cut off", 12.0, 2.0, 30.0, 13.0, 2.5, 5.0)
    for control, value in zip(controls, values, strict=True):
        step.click()
        assert opened.children
        before = picture.value
        control.value = value
        assert picture.value != before
        assert opened.children == ()
        (image,) = pictures(picture.value)
        assert image["alt"] == leases(shown.run).text()
    assert [slider.value for slider in sliders] == [13.0, 2.5, 5.0]
    assert "worker-1 is cut off at 2.5 s for 5 s; a lease is 13 s" in told.value
    shown.happens = "frozen"
    assert happens.value == "frozen"


def test_the_length_is_asked_only_for_what_lasts() -> None:
    shown = floor("killed")
    (_, *pairs), *_ = parts(shown)
    asked = [control for pair in pairs for control in pair.children]
    assert [control.disabled for control in asked] == [False] * 4 + [True] * 2
    shown.happens = "frozen"
    assert not any(control.disabled for control in asked)


def test_a_button_opens_the_run_that_is_shown() -> None:
    shown = floor("killed")
    *_, step, opened = parts(shown)
    step.click()
    (stepper,) = opened.children
    assert len(stepper.children) == 4


def test_it_has_two_forms_and_refuses_what_there_is_not() -> None:
    shown = floor()
    told = shown._repr_mimebundle_()
    assert told["text/plain"] == shown.text() == floor().text()
    assert "application/vnd.jupyter.widget-view+json" in told
    assert repr(shown) == "<floor of two workers>"
    with pytest.raises(Unknown, match="there is no happening 'fired'; there is: 'killed', 'froz"):
        floor("fired")
    for name in SLIDERS:
        with pytest.raises(traitlets.TraitError, match=name):
            setattr(shown, name, 0.0)


@pytest.mark.parametrize("wrong", [0, 1e9, "x", None, True, float("nan")])
@pytest.mark.parametrize("name", SLIDERS)
def test_a_time_that_is_none_is_refused_with_its_bounds(name: str, wrong: Any) -> None:
    _, least, most = SLIDERS[name]
    said = f"^{name} is .*, and must be a number of seconds from {least:g} to {most:g}$"
    with pytest.raises(SimulationError, match=said):
        labkit.floor(**{name: wrong})


def test_the_controls_stand_one_under_another_with_labels_of_one_width() -> None:
    chosen = floor().widget.children[0]
    assert isinstance(chosen, ipw.VBox)
    happens, *pairs = chosen.children
    labelled = [happens, *(pair.children[0] for pair in pairs)]
    assert {each.style.description_width for each in labelled} == {"150px"}
    assert len({each.layout.width for each in labelled}) == 1


def test_a_sleeper_wakes_however_soon_the_run_is_done() -> None:
    told = floor("frozen", lease=1.0).answers.splitlines()
    assert told[-1].endswith("it is refused")
