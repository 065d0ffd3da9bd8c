"""A strip tells each outcome by shape, colour and words; its ticks open the runs."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from matplotlib.colors import to_hex

import labkit
from labkit.simulation import Exploration, SimulationError
from labkit.teaching.said import texts
from labkit.teaching.strip import LOOKS, Strip, row_of, strip, struck_at
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
    assert "  no point for: cut, lose, duplicate, reorder" in told
    assert "no point" not in strip(explored("retry.stall", faults="stall")).text()


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
    told = {(each.point.event, names.index(row_of(each))) for each in found.of("broken")}
    assert {(int(x), y) for x, y in zip(*broken.get_data(), strict=True)} == told


def test_ticks_behind_one_event_stand_side_by_side() -> None:
    figure = strip(explored("interruption.stop", faults="cancel")).chart.figure
    places = [at for line in lines(figure).values() for at in zip(*line.get_data(), strict=True)]
    assert len(set(places)) == len(places)


def test_the_chosen_tick_has_a_ring_and_is_told_in_words() -> None:
    shown = strip(explored())
    picture, controls, _, told, opened = shown.widget.children
    before = picture.value
    (first,) = pictures(before)
    assert first["alt"] == shown.text()
    assert "broken (retry_storm): disconnect, provider in role" in told.value
    number = controls.children[0]
    number.value = 0
    assert shown.model.position == 0
    assert picture.value != before
    assert "tick 0 of 53 · held: cancel while it waits, client in hammers, 0 s" in told.value
    assert len(opened.children) == 1


def press(shown: Strip, label: str) -> None:
    buttons = {each.description: each for each in shown.widget.children[1].children[1:]}
    buttons[label].click()


def test_the_buttons_go_by_tick_by_row_and_by_what_did_not_hold() -> None:
    shown = strip(explored())
    model = shown.model
    labels = [each.description for each in shown.widget.children[1].children[1:]]
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
        strikes = [event.index for event in run.trace if event.kind == "fault"]
        assert run.struck == outcome.faults
        assert place.event < max(strikes)
        later = [p for p in run.recorded if p.index > place.index and p.event < max(strikes)]
        assert all(p.task != place.task for p in later)
        tasks = {p.task for p in run.recorded if p.event < max(strikes)}
        assert place.task == outcome.point.task or outcome.point.task not in tasks


def test_pairs_have_a_row_for_each_first_kind() -> None:
    found = explored("retry.stall", faults=("timeout", "stall"), pairs=30)
    rows = strip(found).model.rows
    assert [name for name in rows if "then" in name] == ["stall, then another"]
    assert sum(map(len, rows.values())) == found.struck
    assert all(len(each.faults) == 2 for each in rows["stall, then another"])
    events = [each.point.event for each in rows["stall, then another"]]
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
