"""Controls: one callback at a time, whatever thread it comes on, and lists that follow a model."""

from __future__ import annotations

from threading import Event, Thread

import traitlets

from labkit.teaching.controls import choice, heard, html

from .conftest import Turns


def test_a_button_that_is_pressed_while_a_picture_is_drawn_waits_for_it(turns: Turns) -> None:
    drawing, pressed = Event(), Event()
    overtaken = []

    def draw() -> None:
        drawing.set()
        assert turns.waited_for.wait(30)
        overtaken.append(pressed.is_set())

    def press() -> None:
        pressed.set()
        turns.waited_for.set()  # only where it did not wait: else it was set before

    threads = [Thread(target=heard(act, html())) for act in (draw, press)]
    threads[0].start()
    assert drawing.wait(30)
    threads[1].start()
    for thread in threads:
        thread.join(30)
    assert overtaken == [False]
    assert pressed.is_set()


def test_a_callback_may_cause_another_one() -> None:
    done = []
    inner = heard(lambda: done.append("inner"), html())
    heard(lambda: (inner(), done.append("outer")), html())()
    assert done == ["inner", "outer"]


def test_an_error_is_told_and_frees_the_way_for_the_next_callback() -> None:
    message = html()
    heard(lambda: 1 / 0, message)()
    assert 'role="alert"' in message.value
    assert "ZeroDivisionError: division by zero" in message.value
    later = Thread(target=heard(lambda: None, message))
    later.start()
    later.join(30)
    assert message.value == ""


class Model(traitlets.HasTraits):
    size = traitlets.Enum(("small", "large"), default_value="large")


def test_a_list_has_the_values_of_its_model_and_they_follow_each_other() -> None:
    model = Model()
    made = choice(model, "size")
    assert (made.description, made.options, made.value) == ("size", ("small", "large"), "large")
    made.value = "small"
    assert model.size == "small"
    model.size = "large"
    assert made.value == "large"
    assert choice(model, "size", "how large").description == "how large"
