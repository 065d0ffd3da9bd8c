"""The two worlds of a timeout: what both callers see, and whom it hurts, is read from runs."""

from __future__ import annotations

import io
import warnings
from itertools import product
from typing import Any

import pytest
import traitlets
from matplotlib.colors import to_rgb
from PIL import Image

import labkit
from labkit.scenarios.effects import KINDS, WAYS
from labkit.simulation import Finding, Unknown
from labkit.teaching.said import texts
from labkit.teaching.stepper import decided_at
from labkit.teaching.worlds import Worlds, worlds
from tests.teaching.test_views import pictures


def lane(shown: Worlds, name: str, world: int = 1) -> list[str]:
    """The lines of a lane in the text form of the first world or the second."""
    lines, found = shown.text().split("\n\n")[world].splitlines()[1:], []
    here = False
    for line in lines:
        here = line.startswith(f"  {name}") or (here and line.startswith("   "))
        found += [line[23:]] * here
    return found


@pytest.mark.parametrize(
    ("way", "hurt"),
    [
        ("gives up", "hurts the world where it happened (failure_told)"),
        ("hopes", "hurts the world where it did not happen (effect_lost)"),
        ("tries again", "hurts the world where it happened (effect_repeated)"),
        ("key of the order", "hurts neither world"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_it_says_which_world_a_way_hurts(way: str, kind: str, hurt: str) -> None:
    assert worlds(way, kind).text().startswith(f"{way}, {kind}: {hurt}")


def test_each_world_is_told_by_what_the_model_is_told_its_effects_and_what_is_found() -> None:
    _, one, other = worlds("tries again").text().split("\n\n")
    assert one.splitlines()[0] == (
        "It did not happen: the model is told succeeded; effects: 1; found: nothing"
    )
    assert other.splitlines()[0] == (
        "It happened: the model is told succeeded; effects: 2; found: effect_repeated"
    )


def test_a_world_is_headed_and_judged_by_all_that_was_found() -> None:
    shown = worlds("tries again")
    (first,) = shown.runs["happened"].findings
    found = (first, Finding("key_stuck", first.event, "give a claim a lease that ends"))
    shown.runs["happened"].findings = found  # as if its judges had said so
    verdict, _, happened = shown.text().split("\n\n")
    assert happened.splitlines()[0].endswith("; found: effect_repeated, key_stuck")
    assert "where it happened (effect_repeated, key_stuck)." in verdict


def test_the_caller_and_the_truth_have_a_lane_each() -> None:
    shown = worlds("tries again")
    assert lane(shown, "what the caller sees", 2) == [
        "0 s: calls charge, order-7, 5 (c1)",
        "0 s: sends try 1",
        "11 s: sends try 2",
        "11.4 s: c1 is told succeeded: Done. charge 2",
    ]
    assert lane(shown, "what really happened", 2)[:2] == [
        "0 s: a request meets the cue lose_answer",
        "0.2 s: effect: charge, order-7",
    ]
    assert not any("effect" in line for line in lane(shown, "what really happened", 1)[:2])


def test_the_callers_part_at_the_first_thing_that_they_see_differently() -> None:
    careful = worlds("key of the order")
    assert careful.same_until == 10.2
    assert lane(careful, "both callers") == ["0 to 10.2 s: have seen exactly the same"]
    for number, word in ((1, "not done"), (2, "done")):
        assert f"10.2 s: asks the service: {word}" in lane(careful, "what the caller sees", number)
    assert worlds("tries again").same_until == 11.4  # two receipts with other numbers


@pytest.mark.parametrize(("way", "kind"), list(product(WAYS, KINDS)))
def test_what_is_marked_as_the_same_is_the_same(way: str, kind: str) -> None:
    shown = worlds(way, kind)
    before, told = (
        [
            [
                (event.time, event.kind, event.data)
                for event in run.trace
                if event.actor.startswith(("model", "worker"))
                and (limit is None or event.time < limit)
            ]
            for run in shown.runs.values()
        ]
        for limit in (shown.same_until, None)
    )
    assert before[0] == before[1] != []
    assert (told[0] == told[1]) == (shown.same_until is None)


def test_where_the_callers_never_part_the_bar_reaches_to_the_end() -> None:
    shown = worlds("gives up")
    assert "Both callers have seen exactly the same to the end." in shown.text()
    assert lane(shown, "both callers") == ["0 to 10 s: have seen exactly the same"]


def test_what_stays_open_and_what_one_call_cannot_show_is_said() -> None:
    told = worlds("key of the call", "mail").verdict
    assert "hurts neither world; it stays open, and a person has to look" in told
    assert "what such a key is worth shows in a repeat: labkit.grid()" in told
    assert "person" not in worlds("key of the order").verdict
    assert "labkit.grid()" not in worlds("key of the order").verdict


def test_both_worlds_stand_on_one_time_axis_with_a_line_where_the_same_ends() -> None:
    shown = worlds("key of the order")
    above, below = shown.chart.figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert above.get_xlabel() == "virtual time (seconds)"
    for axes in (above, below):
        ends = [list(line.get_xdata()) for line in axes.get_lines() if line.get_linestyle() == ":"]
        assert ends == [[10.2, 10.2]]


@pytest.mark.parametrize(("way", "kind"), list(zip(WAYS, KINDS * 2, strict=True)))
def test_every_choice_is_drawn_without_a_warning_and_the_same_twice(way: str, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, two = worlds(way, kind), worlds(way, kind)
        assert one.chart.png == two.chart.png
    assert one.text() == two.text()


def parts(shown: Worlds) -> Any:
    chosen, told, picture, steps, opened = shown.widget.children
    return chosen.children, told, picture, steps.children, opened


def test_another_choice_draws_both_again_and_closes_the_stepper() -> None:
    shown = worlds()
    (way, kind), told, picture, (first, *_), opened = parts(shown)
    chart, drawn = shown.chart, shown.chart.png
    assert [way.description, kind.description] == ["way", "service"]
    assert (list(way.options), list(kind.options)) == (list(WAYS), list(KINDS))
    first.click()
    before = picture.value
    assert opened.children
    way.value = "hopes"
    assert "hopes, payment: hurts the world where it did not happen" in told.value
    assert picture.value != before
    assert opened.children == ()
    (image,) = pictures(picture.value)
    assert image["alt"] == shown.text()
    shown.kind = "mail"
    assert kind.value == "mail"
    assert "hopes, mail: hurts" in told.value
    assert chart.png == drawn  # of the choice at which it was made


def test_a_button_opens_the_run_of_its_world() -> None:
    shown = worlds("hopes")
    *_, steps, opened = parts(shown)
    for button, (name, words) in zip(
        steps[:2],
        [("did_not_happen", "it did not happen"), ("happened", "it happened")],
        strict=True,
    ):
        assert button.description == f"Step: {words}"
        button.click()
        title, stepper = opened.children
        assert f"hopes, payment: {words}" in title.value
        assert shown.runs[name].scenario.name == f"effects.{name}"
        assert len(stepper.children) == 4
        place = decided_at(shown.runs[name]).place.index
        assert stepper.children[1].children[0].value == place > 0


def test_it_has_two_forms_and_names_what_it_does_not_know() -> None:
    shown = labkit.worlds("key of the order", "ticket")
    told = shown._repr_mimebundle_()
    assert told["text/plain"] == shown.text()
    assert "application/vnd.jupyter.widget-view+json" in told
    assert repr(shown) == "<two worlds: key of the order, ticket>"
    with pytest.raises(Unknown, match="there is no way 'prays'; there is: 'gives up', 'hopes'"):
        labkit.worlds("prays")
    with pytest.raises(Unknown, match="there is no way 5; there is: 'gives up'"):
        labkit.worlds(way=5)  # type: ignore[arg-type]
    with pytest.raises(Unknown, match="there is no service 'fax'"):
        labkit.worlds(kind="fax")
    with pytest.raises(traitlets.TraitError):
        shown.way = "prays"
    assert shown.way == "key of the order"


def test_marks_keep_their_colour_in_the_picture_however_small_they_are() -> None:
    """An effect's red star is a hundredth of what the yellow bars cover."""
    picture = Image.open(io.BytesIO(worlds("key of the order").chart.png)).convert("RGB")
    there = {colour for _, colour in picture.getcolors(1 << 16) or ()}
    for name in ("red", "orange", "green", "blue", "sky", "yellow"):
        wanted = [round(255 * part) for part in to_rgb(texts("timeline")["colours"][name])]
        assert min(max(abs(a - b) for a, b in zip(wanted, c, strict=True)) for c in there) < 12, (
            name
        )
