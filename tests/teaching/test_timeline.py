"""The timeline says in words and in a picture what happened."""

from __future__ import annotations

import itertools
import subprocess
import sys
import warnings

import pytest

import labkit
from labkit.simulation import Fault
from labkit.teaching.chart import Chart
from labkit.teaching.phrases import cut
from labkit.teaching.timeline import LABEL, MOST_ROWS, reach, rows, story, timeline
from tests.teaching.test_views import EVIL, pictures, saying

SCENARIOS = [name for name in labkit.names() if not name.startswith("sdk.")]
# A picture takes longer than all else here, that of 200 clients longest: one scenario of three.
DRAWN = [
    pytest.param(name, marks=pytest.mark.slow) if number % 3 or "storm" in name else name
    for number, name in enumerate(SCENARIOS)
]


def test_the_text_form_tells_attempts_waits_segments_and_ends() -> None:
    text = timeline(labkit.simulate("retry.stall")).text()
    assert "0 to 5.7 s: request 1: stalled at 0.9 s" in text
    assert "5.7 to 6.28 s: waits 0.58 s (backoff)" in text
    assert "0.7 to 5.7 s: segment 1, closed by stall: 'Step 1 done. ', deltas: 1" in text
    assert "segment 2: 'Step 1 done. Step 2 done.', deltas: 2" in text
    assert "client ends: result" in text


def test_cancel_draft_effect_and_finding_are_told() -> None:
    text = timeline(labkit.simulate("interruption.stop")).text()
    assert "3.5 s: user cancels turn" in text
    assert "draft (stopped): 'The refund '" in text
    assert "effect: look_up" in text
    assert "duplicate_text: do not retry" in timeline(labkit.simulate("retry.naive")).text()


def test_a_pause_that_the_client_did_not_tell_of_is_seen() -> None:
    assert "pauses 1 s, without saying why" in timeline(labkit.simulate("retry.naive")).text()


def test_a_wait_that_is_cancelled_is_cut_short() -> None:
    number = next(
        point.number
        for point in labkit.points("retry.rising")
        if point.time == 6 and point.function == "stream_with_retry"
    )
    run = labkit.simulate("retry.rising", faults=[Fault("cancel", number)])
    assert ": waits 10 s (retry-after), cut short" in timeline(run).text()


@pytest.mark.parametrize("name", DRAWN)
def test_every_scenario_is_drawn_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart = timeline(labkit.simulate(name))
        data = chart._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain", "text/markdown"}
    assert "\n" not in data["text/markdown"]
    assert 1_000 < len(chart.png) < 300_000  # 16 workers tell a lot


def test_other_scripts_and_markup_are_drawn_as_text_and_told_whole() -> None:
    odd = f"\u4f60\u597d \U0001f469\u200d\U0001f4bb \u05e9\u05dc $x^2$ \x1b[31m {EVIL}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart = timeline(saying(odd))
        assert chart.png
    assert "\u4f60\u597d \U0001f469\u200d\U0001f4bb \u05e9\u05dc $x^2$ \\x1b[31m" in chart.text()
    assert EVIL in chart.text()


def test_a_screen_reader_is_given_the_text_form_in_place_of_the_picture() -> None:
    for chart in (timeline(saying(f'"quoted" {EVIL}')), labkit.chain("retry.guarded")):
        (image,) = pictures(chart._repr_mimebundle_()["text/markdown"])
        assert image["alt"] == chart.text()
        assert image["src"] == f"data:image/png;base64,{chart._repr_mimebundle_()['image/png']}"
        assert set(image) == {"style", "alt", "src"}


def test_equal_runs_give_equal_pictures() -> None:
    one, two = (timeline(labkit.simulate("retry.naive")).png for _ in range(2))
    assert one == two


def test_two_runs_share_one_time_axis_and_their_lanes() -> None:
    short, long = labkit.simulate("retry.guarded"), labkit.simulate("retry.naive")
    chart = timeline(short, beside=long)
    upper, lower = chart.figure.axes
    assert upper.get_xlim() == lower.get_xlim()
    assert [t.get_text() for t in upper.get_yticklabels()] == [
        t.get_text() for t in lower.get_yticklabels()
    ]
    assert "retry.guarded: ends with ProviderError" in chart.text()
    assert "retry.naive: ends at 3.4 s" in chart.text()


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_label_stands_on_another_label_or_bar_of_its_row(name: str) -> None:
    run = labkit.simulate(name)
    items = story(run)
    for lane in dict.fromkeys(item.lane for item in items):
        for row in rows(items, lane, run.time)[:MOST_ROWS]:
            extents = sorted(reach(item, run.time)[:2] for item in row)
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(extents))


def test_every_item_has_a_row_also_in_a_crowd() -> None:
    items = story(labkit.simulate("retry.hammer")) * 9
    found = rows(items, "provider", 1.2)
    assert len(found) == MOST_ROWS + 1
    assert sum(map(len, found)) == sum(item.lane == "provider" for item in items)


def test_state_is_never_told_by_colour_alone() -> None:
    looks: dict[tuple[str, str], set[str]] = {}
    for run in map(labkit.simulate, SCENARIOS):
        for item in story(run):
            assert item.label
            looks.setdefault((item.lane, item.sign or item.pattern), set()).add(item.colour)
    marks = {look: colours for look, colours in looks.items() if look[0] not in ("provider",)}
    assert all(len(colours) == 1 for colours in marks.values())


def test_a_run_without_time_and_a_run_of_many_pieces_are_drawn() -> None:
    assert timeline(saying("at once")).png
    assert len(timeline(saying(*["x"] * 2_000)).png) < 60_000


def test_pyplot_is_not_loaded() -> None:
    program = "import labkit, sys; labkit.timeline(labkit.simulate('retry.stall')).png;"
    program += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_chart_in_a_list_is_one_line() -> None:
    chart = timeline(labkit.simulate("retry.stall"))
    assert isinstance(chart, Chart)
    assert repr(chart) == "<timeline of retry.stall: ends at 7.28 s>"


@pytest.mark.parametrize("name", ["turn.reference", "turn.trusting", "sessions.busy"])
def test_every_mark_of_a_turn_has_its_label(name: str) -> None:
    run = labkit.simulate(name)
    (axes,) = timeline(run).figure.axes
    drawn = sorted(text.get_text() for text in axes.texts)
    assert drawn == sorted(cut(item.label, LABEL) for item in story(run))


def test_tools_stand_in_their_order_also_where_a_row_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = labkit.simulate("turn.reference")
    found = [[item.label[:2] for item in row] for row in rows(story(run), "tools", run.time)]
    assert found == [["c1"], ["c2"], ["c3"], ["c4"]]
    monkeypatch.setattr("labkit.teaching.timeline.MOST_ROWS", 3)
    few = [[item.label[:2] for item in row] for row in rows(story(run), "tools", run.time)]
    assert few == [["c1", "c4"], ["c2"], ["c3"]]  # from above again


def test_the_bars_of_a_lane_come_before_its_marks() -> None:
    run = labkit.simulate("sessions.busy")
    signs = [{bool(item.sign) for item in row} for row in rows(story(run), "page", run.time)]
    assert signs == [{False}] * 3 + [{True}] * 2


def test_tool_calls_are_bars_and_one_that_was_cut_says_so() -> None:
    told = [item for item in story(labkit.simulate("turn.stop")) if item.lane == "tools"]
    assert [(i.label, i.start, i.end) for i in told] == [
        ("c1 look_up: done", 0.8, 1.3),
        ("c2 read_policy: done", 0.8, 1.3),
        ("c3 add_note: cut", 1.3, 1.5),
    ]


def test_a_service_with_effects_is_told_in_lanes_of_its_own() -> None:
    told = timeline("effects.called_off").text().splitlines()
    for line in (
        "  model         0 s: calls open_ticket, order-7, 5 (c1)",
        "  worker of c1  0 s: looks up the key: execute",
        "                10 s: try 1 ends: timeout",
        "                11.6 s: try 2 ends",
        "  service       0 s: a request meets the cue late",
        "                10.2 s: is asked to call it off, and says: not done",
        "  waits         10.2 to 11.2 s: waits 1 s (backoff)",
    ):
        assert line in told
    assert sum("wait" in line for line in told) == 1


def test_an_effect_has_its_order_and_the_dead_and_the_person_have_words() -> None:
    for name, line in (
        ("died", "  worker-0      1 s: dies after it has sent its request"),
        ("died", "  kept          0.2 s: effect: charge, order-7"),
        ("wrong_person", "  person        40 s: says whether it happened: False"),
        ("wrong_person", "  service       0 s: a request meets the cue lose_answer"),
        ("wrong_person", "                10.2 s: is asked, and says: it cannot be asked"),
        ("wrong_person", "                10.2 s: asks the service: bad_request"),
    ):
        assert line in timeline(f"effects.{name}").text().splitlines()
    assert "effect: add_note\n" in timeline("turn.reference").text()  # it has no order
