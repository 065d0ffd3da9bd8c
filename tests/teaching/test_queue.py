"""The queue for a person: what waits, what the books say, and what a word does to the run."""

from __future__ import annotations

import pathlib
from functools import partial
from typing import Any

import pytest

import labkit
from labkit.scenarios.effects import calling
from labkit.simulation import Scenario, SimulationError, Unknown
from labkit.teaching.answers import Answers
from labkit.teaching.queue import Queue, queue


def two_wait(cues: tuple[str, ...] = ("lose_answer", "lose_request")) -> Scenario:
    """Mails for two orders, of which each waits for a person, and each call again later."""
    manual = labkit.find("effects.manual")
    calls = [[0.0, "c1", "order-7", 5], [1.0, "c2", "order-8", 5]]
    calls += [[60.0, "c3", "order-7", 5], [61.0, "c4", "order-8", 5]]
    client = partial(calling, calls=calls, person=(40.0, True))
    return manual.but(name="effects.two", client=client, script=cues)


def test_what_waits_is_told_with_what_it_is_since_when_and_what_was_tried() -> None:
    (digest,) = queue().items
    assert queue().text().splitlines() == [
        "effects.manual: a person has to find out:",
        f"  {digest}: send_mail, order-7, 5; waits since 13.8 s",
        "  tried: try 1 timeout; the service was asked: " + ", ".join(["bad_request"] * 4),
        "  the model was told: It may have been done, and a person finds out. Do not call it again."
        " Reason: nobody can say by now whether it was done.",
        "  your word: none yet",
        "Find out and say what happened: then the run goes on.",
    ]
    assert "effects.forgot: a person has to find out" in queue("effects.forgot").text()
    assert "asked: not done" in queue("effects.forgot").text()


def test_the_truth_stands_in_the_books_alone_until_there_is_a_word() -> None:
    shown = queue()
    (digest,) = shown.items
    assert "0.2 s" not in shown.text()
    assert shown.books().text() == f"the books on {digest}: send_mail, order-7, 5, at 0.2 s"
    lost = queue(labkit.find("effects.manual").but(name="effects.lost", script=("lose_request",)))
    assert lost.text().splitlines()[1:5] == shown.text().splitlines()[1:5]
    assert lost.books().text() == f"the books on {digest}: nothing"


@pytest.mark.parametrize(
    ("cue", "happened", "status", "found"),
    [
        ("lose_answer", True, "reused", []),
        ("lose_answer", False, "succeeded", ["effect_repeated"]),
        ("lose_request", False, "succeeded", []),
        ("lose_request", True, "reused", ["effect_lost"]),
    ],
)
def test_a_right_word_heals_and_a_wrong_one_is_found(
    cue: str, happened: bool, status: str, found: list[str]
) -> None:
    scenario = labkit.find("effects.manual").but(name=f"effects.{cue}", script=(cue,))
    run = queue(scenario).resolve(happened=happened)
    assert run.result == {"c1": "manual intervention", "c2": status}
    assert [finding.name for finding in run.findings] == found
    text = queue(scenario).text()
    assert f"your word: it {'happened' if happened else 'did not happen'}" in text
    assert f"'c2': '{status}'" in text


def test_each_thing_has_a_word_of_its_own_and_the_run_goes_on_with_those_there_are() -> None:
    shown = queue(two_wait())
    first, second = shown.items
    assert [shown.items[each].call["order"] for each in (first, second)] == ["order-7", "order-8"]
    shown.resolve(happened=True, digest=first)
    assert shown.said == {first: True}
    assert "Find out and say what happened" in shown.text()
    assert shown.run.result["c3"] == "reused"
    assert shown.run.result["c4"] == "manual intervention"
    run = shown.resolve(happened=False, digest=second)
    assert (run.result["c3"], run.result["c4"]) == ("reused", "succeeded")
    assert run.findings == ()
    assert "and so it goes on" in shown.text()
    assert len(shown.books().text().splitlines()) == 2
    assert shown.books(second).text() == f"the books on {second}: nothing"
    with pytest.raises(Unknown, match="there is no digest 'x'"):
        shown.resolve(happened=True, digest="x")


def test_a_word_outlives_the_queue_and_the_kernel_and_can_be_changed(home: pathlib.Path) -> None:
    queue().resolve(happened=False)
    (kept,) = Answers(home).all().items()
    assert kept[0] == f"queue/effects.manual/{next(iter(queue().items))}"
    assert "your word: it did not happen" in queue().text()
    assert "your word: none yet" in queue("effects.wrong_person").text()
    queue().resolve(happened=True)
    assert "your word: it happened" in queue().text()


def test_a_scenario_in_which_nothing_waits_is_refused_with_one_in_which_something_does() -> None:
    for name in ("effects.happened", "retry.stall", "sessions.busy", "leases.killed"):
        with pytest.raises(SimulationError, match=f"nothing waits in {name}: try 'effects.manual'"):
            labkit.queue(name)
    with pytest.raises(Unknown, match="there is no scenario 'x'"):
        labkit.queue("x")
    with pytest.raises(SimulationError, match="give it a run or a scenario's name, not 42"):
        labkit.queue(42)  # type: ignore[arg-type]


def test_a_run_has_the_queue_of_its_scenario() -> None:
    assert queue(labkit.simulate("effects.manual")).text() == queue().text()


def press(shown: Queue, number: int, label: str) -> None:
    """Press a button of thing `number`."""
    rows = [each for each in shown.widget.children if hasattr(each, "children")]
    {each.description: each for each in rows[number].children}[label].click()


def test_the_buttons_ask_the_books_and_say_it_of_their_own_thing() -> None:
    shown = queue(two_wait())
    told, _, _, books, _, _, others, message = shown.widget.children
    press(shown, 0, "Ask the service's books")
    assert "send_mail, order-7, 5, at 0.2 s" in books.value
    assert others.value == ""
    press(shown, 1, "It did not happen")
    assert list(shown.said.values()) == [False]
    press(shown, 0, "It did not happen")
    assert "effect_repeated" in told.value
    press(shown, 0, "It happened")
    assert "findings  none" in told.value
    assert message.value == ""


def test_each_button_names_its_thing_in_a_tooltip() -> None:
    shown = queue()
    row: Any = next(each for each in shown.widget.children if hasattr(each, "children"))
    about = f"send_mail, order-7, 5 ({next(iter(shown.items))})"
    told = {each.description: each.tooltip for each in row.children}
    assert told == {label: f"{label}: {about}" for label in told}
    assert list(told) == ["Ask the service's books", "It happened", "It did not happen"]
    forms = shown._repr_mimebundle_()
    assert forms["text/plain"] == shown.text()
    assert "application/vnd.jupyter.widget-view+json" in forms
    assert repr(shown) == "<queue of effects.manual>"
