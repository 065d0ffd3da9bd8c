"""A strip tells each outcome by shape, colour and words; its ticks open the runs."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from typing import Any

import pytest
from matplotlib.colors import to_hex

import labkit
from labkit.simulation import Exploration, SimulationError
from labkit.teaching.said import texts
from labkit.teaching.strip import LOOKS, Strip, row_of, strip, struck_at
from tests.simulation.kit import two_workers
from tests.teaching.test_views import pictures


def explored(name: Any = "retry.hammer", **how: Any) -> Exploration:
    return labkit.explore(name, **{"faults": ("cancel", "crash", "disconnect", "stall"), **how})


def lines(figure: Any) -> dict[str, Any]:
    """The verdict that the legend names -> what is drawn of it."""
    return {line.get_label().partition(":")[0]: line for line in figure.axes[0].get_lines()}


def test_the_text_form_counts_and_names_what_did_not_hold() -> None:
    told = strip(explored()).text().splitlines()
    assert told[0] == "retry.hammer: 54 runs, 40 held, 5 broken, 9 unresolved"
    assert told[1:6] == [
        "  cancel while it waits  9 runs, 9 held",
        "  cancel as it wakes     9 runs, 9 held",
        "  crash                  18 runs, 18 held",
        "  disconnect             9 runs, 4 held, 5 broken",
        "  stall                  9 runs, 9 unresolved",
    ]
    assert told[6] == "  found without any fault, so not counted: retry_after_ignored"
    assert told[7] == "  1 × broken (retry_storm): disconnect, provider in role, 0.5 s"
    assert "  3 × unresolved (Deadlock): stall, provider in say, 0.7 to 1.1 s" in told


async def waits(provider: Any, policy: Any, observe: Any) -> str:
    try:
        await asyncio.sleep(1)
        await asyncio.sleep(  # breakpoint: the second wait
            1
        )
    except asyncio.CancelledError:
        pass
    return "done"


def test_a_break_is_told_by_task_function_and_breakpoint_and_no_line_number() -> None:
    text = strip(explored(faults="cancel", client=waits)).text()
    assert "1 × broken (cancel_swallowed): cancel while it waits, client in waits, 0 s" in text
    at = "client in waits at breakpoint 'the second wait', 1 s"
    assert f"1 × broken (cancel_swallowed): cancel while it waits, {at}" in text
    assert not re.search(r"line \d|point \d|\.py", text)


def test_a_kind_that_has_no_point_is_said() -> None:
    told = strip(explored("retry.stall", faults="all")).text().splitlines()
    assert "  no point for: kill, freeze, cut, lose, duplicate, reorder" in told
    assert "no point" not in strip(explored("retry.stall", faults="stall")).text()


def test_a_kill_and_a_freeze_of_a_process_have_rows_of_their_own() -> None:
    found = explored("retry.stall", faults=("kill", "freeze"), client=two_workers)
    shown = strip(found)
    assert list(shown.model.rows) == [
        f"process {what} {when}"
        for what in ("killed", "frozen")
        for when in ("while it waits", "as it wakes")
    ]
    told = shown.text()
    assert "unresolved (Deadlock): process killed as it wakes, worker-2 in work" in told
    for outcome in found.outcomes:
        place = struck_at(found.run(outcome), outcome).place
        assert place.task == outcome.point.task


def test_a_task_that_stands_in_no_function_is_told_without_one() -> None:
    async def client(provider: Any, policy: Any, observe: Any) -> None:
        await asyncio.create_task(asyncio.sleep(1), name="sleeper")

    shown = strip(explored("retry.stall", faults="cancel", client=client))
    words = []
    for position in range(shown.model.last + 1):
        shown.model.position = position
        words.append(shown.widget.children[3].value)
    assert "held: cancel while it waits, sleeper, 0 s" in "".join(words)


def test_few_lines_tell_of_many_outcomes() -> None:
    told = strip(explored("frameworks.langgraph", faults="all")).text().splitlines()
    one_by_one = [line for line in told if " × " in line]
    assert len(one_by_one) == 12
    assert re.fullmatch(r"  and \d+ more of such lines", told[-1])
    assert "broken" in one_by_one[0]  # before what is unresolved


def test_what_is_missed_left_out_or_interrupted_is_said() -> None:
    found = explored("retry.forgotten", faults="cancel", pairs=5)
    text = strip(found).text()
    assert f"  {found.missed} more did not strike" in text.splitlines()
    assert f"  {found.left_out} pairs were left out" in text.splitlines()
    caught: list[Exploration] = []

    def stop(done: int, of: int) -> None:
        raise KeyboardInterrupt

    try:
        explored(progress=stop)
    except KeyboardInterrupt as interrupt:
        caught.append(interrupt.exploration)  # type: ignore[attr-defined]  # as explore says
    assert "  interrupted, so not complete" in strip(caught[0]).text().splitlines()


def test_each_verdict_has_a_shape_and_a_colour_of_its_own() -> None:
    assert len({sign for sign, _, _ in LOOKS.values()}) == len(LOOKS)
    assert len({colour for _, colour, _ in LOOKS.values()}) == len(LOOKS)
    found = explored("retry.storm")
    drawn = lines(strip(found).chart.figure)
    colours = texts("timeline")["colours"]
    for verdict, (sign, colour, _) in LOOKS.items():
        line = drawn[verdict]
        assert (line.get_marker(), to_hex(line.get_color())) == (sign, colours[colour].lower())
        assert len(line.get_xdata()) == found.counts[verdict]


def test_a_tick_stands_in_its_row_behind_the_last_event_before_the_fault() -> None:
    found = explored()
    shown = strip(found)
    axes = shown.chart.figure.axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == list(shown.model.rows)
    broken = lines(shown.chart.figure)["broken"]
    heights = axes.get_yticks()
    told = {(each.event, heights[names.index(row_of(each))]) for each in found.of("broken")}
    assert set(zip(*broken.get_data(), strict=True)) == told


@pytest.mark.parametrize(("name", "first"), [("stream.half_call", "none"), ("retry.hammer", "0")])
def test_a_tick_ahead_of_every_event_has_a_label_too(name: str, first: str) -> None:
    found = explored(name, faults="cancel")
    figure = strip(found).chart.figure
    figure.draw_without_rendering()
    axis = figure.axes[0].xaxis
    told = dict(
        zip(axis.get_ticklocs(), (t.get_text() for t in axis.get_ticklabels()), strict=True)
    )
    assert next(iter(told.items())) == (min(0, *(each.event for each in found.outcomes)), first)
    assert len(told) > 5


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("turn.reference", {"faults": "cancel"}),
        ("retry.hammer", {"faults": "disconnect", "pairs": True}),
    ],
)
def test_ticks_behind_one_event_do_not_lie_on_one_another(name: str, how: Any) -> None:
    figure = strip(explored(name, **how)).chart.figure
    places = [at for line in lines(figure).values() for at in zip(*line.get_data(), strict=True)]
    axes = figure.axes[0]
    figure.draw_without_rendering()
    dots = sorted((round(x), y) for x, y in axes.transData.transform(places))
    for (x, y), (next_x, next_y) in pairwise(dots):
        assert next_x - x >= 5 or next_y - y >= 15  # dots, 100 an inch
    assert figure.get_figheight() < 12


def test_the_chosen_tick_has_a_ring_and_is_told_in_words() -> None:
    shown = strip(explored())
    picture, _, controls, told, opened = shown.widget.children
    before = picture.value
    (first,) = pictures(before)
    assert first["alt"] == shown.text()
    assert "broken (retry_storm): disconnect, provider in role" in told.value
    number = controls.children[0]
    number.value = 1
    assert shown.model.position == 0
    assert (number.min, number.max) == (1, 54)
    assert picture.value != before
    assert "tick 1 of 54 · held: cancel while it waits, client in hammers, 0 s" in told.value
    assert len(opened.children) == 1


def press(shown: Strip, label: str) -> None:
    {each.description: each for each in buttons(shown)}[label].click()


def buttons(shown: Strip) -> list[Any]:
    _, _, controls, _, _ = shown.widget.children
    return list(controls.children[1:-1])


def test_the_buttons_go_by_tick_by_row_and_by_what_did_not_hold() -> None:
    shown = strip(explored())
    model = shown.model
    labels = [each.description for each in buttons(shown)]
    assert labels == ["◀ Tick", "Tick ▶", "◀ Row", "Row ▶", "◀ Not held", "Not held ▶"]
    assert model.outcome.verdict == "broken"
    press(shown, "Row ▶")
    assert row_of(model.outcome) == "stall"
    press(shown, "Row ▶")
    assert row_of(model.outcome) == "stall"  # the last row
    press(shown, "◀ Tick")
    assert (row_of(model.outcome), model.outcome.verdict) == ("disconnect", "broken")
    for _ in range(9):
        press(shown, "◀ Not held")
    first = model.position
    assert (model.outcome.verdict, model.outcomes[first - 1].verdict) == ("broken", "held")
    press(shown, "Not held ▶")
    assert model.position == first + 1
    model.position = 10**6
    assert model.position == model.last


@pytest.mark.parametrize("name", ["retry.stall", "interruption.stop", "stream.kept"])
def test_a_tick_opens_the_run_at_the_place_where_its_fault_struck(name: str) -> None:
    found = explored(name, faults="all", pairs=20)
    for outcome in found.outcomes[::7]:
        run = found.run(outcome)
        place = struck_at(run, outcome).place
        strike = max(event.index for event in run.trace if event.kind == "fault")
        assert run.struck == outcome.faults
        if outcome.faults[-1].phase == "waking":
            continue
        later = [p for p in run.recorded if place.index < p.index and p.event < strike]
        assert place.event < strike
        assert all(p.task != place.task for p in later)
        if outcome.faults[-1].kind not in ("cancel", "timeout"):
            assert not later
            continue
        tasks = {p.task for p in run.recorded if p.event < strike}
        assert place.task == outcome.point.task or outcome.point.task not in tasks


WAKING = [("turn.reference", 1), ("sessions.busy", 4)]  # with the step from tick to tick


@pytest.mark.parametrize(
    ("name", "step"), [*WAKING, pytest.param("sessions.busy", 1, marks=pytest.mark.slow)]
)
def test_a_tick_as_it_wakes_opens_where_the_task_woke(name: str, step: int) -> None:
    found = explored(name, faults="cancel")
    opened = 0
    for outcome in [each for each in found.outcomes if each.faults[0].phase == "waking"][::step]:
        run = found.run(outcome)
        place = struck_at(run, outcome).place
        woken = [p for p in run.recorded if p.event > outcome.event and p.task == place.task]
        if place.task == outcome.point.task and place == (woken or [None])[0]:
            opened += 1
            assert place.time == outcome.time
        else:
            assert place == [p for p in run.recorded if p.event <= outcome.event][-1]
    assert opened * step > 20


def test_a_crash_opens_at_the_last_place_of_any_task() -> None:
    found = explored("sessions.busy", faults="crash")
    for outcome in found.outcomes[-12:]:
        run = found.run(outcome)
        assert struck_at(run, outcome).place == run.recorded[-1]
    assert any(each.point.task == "dispatcher" for each in found.outcomes[-12:])


def test_the_widget_says_what_did_not_count_and_what_the_verdicts_mean() -> None:
    def notes(name: str, **how: Any) -> str:
        return str(strip(explored(name, **how)).widget.children[1].value)

    told = notes("retry.hammer", faults="all")
    assert "found without any fault, so not counted: retry_after_ignored" in told
    assert "no point for: kill, freeze, cut, lose, duplicate, reorder" in told
    assert "unresolved: nobody can tell" in told
    assert "refused:" not in told
    assert "refused: the client ended with an error by which" in notes("turn.stop")


def test_where_all_held_the_buttons_to_what_did_not_are_grey() -> None:
    def grey(shown: Strip) -> list[str]:
        return [each.description for each in buttons(shown) if each.disabled]

    assert grey(strip(explored(faults="cancel"))) == ["◀ Not held", "Not held ▶"]
    assert grey(strip(explored(faults="stall"))) == []


def test_pairs_have_a_row_for_each_first_kind() -> None:
    found = explored("retry.stall", faults=("timeout", "stall"), pairs=30)
    rows = strip(found).model.rows
    assert [name for name in rows if "then" in name] == ["stall, then another"]
    assert sum(map(len, rows.values())) == found.struck
    assert all(len(each.faults) == 2 for each in rows["stall, then another"])
    events = [each.event for each in rows["stall, then another"]]
    assert events == sorted(events)


def test_what_is_no_exploration_is_refused() -> None:
    with pytest.raises(SimulationError, match=r"give it an exploration, labkit\.explore"):
        strip("retry.naive")  # type: ignore[arg-type]


def test_where_nothing_struck_there_is_nothing_to_draw() -> None:
    found = explored()
    empty = Exploration(found.scenario, found.policy, 0, {}, (), missed=3)
    with pytest.raises(
        SimulationError, match=r"nothing to draw, since no fault struck: .*3 missed"
    ):
        strip(empty)


def test_text_of_a_task_is_shown_as_text() -> None:
    async def client(provider: Any, policy: Any, observe: Any) -> None:
        await asyncio.create_task(asyncio.sleep(1), name="<b>task</b>")

    shown = strip(explored(labkit.find("retry.stall"), faults="cancel", client=client))
    for position in range(shown.model.last + 1):
        shown.model.position = position
        assert "<b>" not in shown.widget.children[3].value
