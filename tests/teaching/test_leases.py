"""Who held which run when: leases, writes and workers as a chart, and the same in words."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import labkit
from labkit.simulation import Run, Scenario, SimulationError
from labkit.teaching.lease_story import AWAY, MARKS
from labkit.teaching.leases import LOOKS, UNDER, leases
from tests.teaching.test_views import pictures

LEASES = [name for name in labkit.names() if name.startswith("leases.")]
Row = tuple[float, str, str, dict[str, Any]]


def claimed(at: float, by: str, fence: int, until: float, run: str = "run-1") -> Row:
    told = {"run": run, "by": by, "fence": fence, "status": "running", "until": until}
    return (at, "store", "claimed", {**told, "event": "run_started", "seq": fence})


def renewed(at: float, by: str, until: float | None, run: str = "run-1") -> Row:
    return (at, "store", "renewed", {"run": run, "by": by, "fence": 1, "until": until})


def wrote(at: float, by: str, status: str, event: str = "node_finished", run: str = "run-1") -> Row:
    told = {"run": run, "by": by, "fence": 1, "status": status, "until": None}
    return (at, "store", "wrote", {**told, "event": event, "seq": 3})


def happened(*rows: Row, end: float = 20.0) -> Run:
    """A run in which all this was told, in this order."""

    async def client(made: Any, policy: Any, observe: Any) -> None:
        for at, actor, kind, data in rows:
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            observe.of(actor)(kind, **data)
        await asyncio.sleep(end - asyncio.get_running_loop().time())

    scenario = Scenario(
        name="own",
        claim="own",
        script=None,
        make=lambda script, observe: None,
        client=client,
    )
    return labkit.simulate(scenario)


def workers_axes(run: Run | str) -> Axes:
    return leases(run).figure.axes[0]


def bars(run: Run | str) -> list[Rectangle]:
    """The bars of the leases: they are lower than a lane."""
    patches = [each for each in workers_axes(run).patches if isinstance(each, Rectangle)]
    return [each for each in patches if 0 < each.get_height() < 0.5]


def test_a_lease_lasts_from_its_claim_to_the_end_of_its_last_renewal() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 11),
        renewed(4, "worker-1", 14),
        renewed(7, "worker-1", 17),
        claimed(18, "worker-2", 2, 28),
    )
    text = leases(run).text().splitlines()
    assert text == [
        "own: run-1 is running after 2 claims; ends at 20 s",
        "  worker-1  1 to 17 s: holds run-1 with fence 1, renewed 2 times; over at 17 s",
        "  worker-2  18 to 20 s: holds run-1 with fence 2; over at 28 s",
        "  findings  none",
    ]
    assert [(bar.get_x(), bar.get_width()) for bar in bars(run)] == [(1, 16), (18, 2)]


def test_a_lease_ends_with_the_move_that_gives_the_run_back() -> None:
    for status, move in (("completed", "run_completed"), ("queued", ""), ("failed", "run_failed")):
        run = happened(claimed(1, "worker-1", 1, 11), wrote(5, "worker-1", status, move))
        (told, *_) = [line for line in leases(run).text().splitlines() if "holds" in line]
        assert told.endswith(f"1 to 5 s: holds run-1 with fence 1; the run is {status}")


def test_a_cancel_of_the_owner_ends_the_lease_and_is_no_write_of_a_worker() -> None:
    asked = wrote(0.5, "ann", "queued", "run_created")
    cancelled = wrote(5, "ann", "cancelled", "run_cancelled")
    run = happened(asked, claimed(1, "worker-1", 1, 11), cancelled)
    text = leases(run).text()
    assert "1 to 5 s: holds run-1 with fence 1; the run is cancelled" in text
    assert "ann" not in text
    assert "write kept" not in text


def test_a_run_that_is_handed_back_or_cancelled_has_a_mark_of_its_own() -> None:
    ends = (("worker-1", "queued", "", "handed_back"), ("ann", "cancelled", "x", "cancelled"))
    for by, status, move, mark in ends:
        said = (5, "worker-1", "handed_back", {"run": "run-1"})  # by the worker itself, too
        run = happened(claimed(1, "worker-1", 1, 11), wrote(5, by, status, move), said)
        told = [line for line in leases(run).text().splitlines() if MARKS[mark] in line]
        assert told == [f"            5 s: {MARKS[mark]}"]
        assert marked(run) == [(LOOKS[mark][0], 5.0)]


def test_a_run_that_is_cancelled_before_anybody_has_it_is_nobodys_mark() -> None:
    other = claimed(6, "worker-1", 1, 16, run="run-2")
    run = happened(wrote(5, "ann", "cancelled", "run_cancelled"), other)
    assert "cancelled by its owner" not in leases(run).text()


def test_the_legend_says_what_is_pale_where_a_worker_is_away() -> None:
    for name, there in (("killed", True), ("shut_down", False)):
        (legend,) = leases(f"leases.{name}").figure.legends
        words = [text.get_text() for text in legend.get_texts()]
        assert ("pale, hatched: its worker is away" in words) == there


def test_no_mark_lies_under_the_words_of_a_lane() -> None:
    figure = leases("leases.cut_off").figure
    figure.canvas.draw()
    axes = figure.axes[0]
    (words,) = [text for text in axes.texts if text.get_text() == "cut off from the store"]
    top = words.get_window_extent().y1
    size = 8 * figure.dpi / 72 / 2  # half of a mark's height
    _, y = axes.transData.transform((15.0, UNDER))
    assert y - size >= top


def test_a_renewal_after_the_end_lengthens_nothing() -> None:
    done = wrote(5, "worker-1", "completed", "run_completed")
    run = happened(claimed(1, "worker-1", 1, 11), done, renewed(6, "worker-1", 16))
    assert "1 to 5 s: holds run-1 with fence 1; the run is completed" in leases(run).text()
    run = happened(claimed(1, "worker-1", 1, 11), renewed(6, "worker-1", None))
    assert "1 to 11 s: holds run-1 with fence 1; over at 11 s" in leases(run).text()


def test_two_leases_on_one_run_at_once_are_a_field_across_the_lanes_and_a_line() -> None:
    run = happened(claimed(1, "worker-1", 1, 11), claimed(3, "worker-2", 2, 13))
    assert leases(run).text().splitlines()[-1] == "  two leases on run-1 at once: 3 to 11 s"
    words = [text.get_text() for text in workers_axes(run).texts]
    assert "two leases on run-1 at once" in words
    other = happened(claimed(1, "worker-1", 1, 11), claimed(3, "worker-2", 1, 13, run="run-2"))
    after = happened(claimed(1, "worker-1", 1, 11), claimed(11, "worker-2", 2, 21))
    for calm in (other, after):
        assert "at once" not in leases(calm).text()
        assert not any("at once" in text.get_text() for text in workers_axes(calm).texts)


def test_each_moment_with_two_leases_is_told_once() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 11),
        claimed(2, "worker-2", 2, 6),
        claimed(3, "worker-3", 3, 5),
        claimed(15, "worker-2", 4, 19),
        claimed(16, "worker-1", 5, 18),
    )
    assert leases(run).text().splitlines()[-2:] == [
        "  two leases on run-1 at once: 2 to 6 s",
        "  two leases on run-1 at once: 16 to 18 s",
    ]


def test_a_worker_that_claims_its_run_again_has_one_lease_on_it() -> None:
    run = happened(claimed(1, "worker-1", 1, 11), claimed(3, "worker-1", 2, 13))
    assert [(bar.get_x(), bar.get_width()) for bar in bars(run)] == [(1, 2), (3, 10)]
    assert "at once" not in leases(run).text()


def test_of_many_leases_the_first_are_told_and_the_words_that_have_room() -> None:
    run = happened(*(claimed(n / 5, "worker-1", n, n / 5 + 0.1) for n in range(1, 60)))
    assert "            and 29 more of such lines" in leases(run).text().splitlines()
    words = [text.get_text() for text in workers_axes(run).texts]
    assert words[0] == "fence 1"
    assert 5 < len(words) < 30


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([(4, "worker-1", "killed", {})], "4 to 20 s: killed"),
        (
            [
                (4, "worker-1", "frozen", {"seconds": 5.0}),
                (6, "worker-1", "frozen", {"seconds": 6.0}),
                (12, "worker-1", "thawed", {}),
            ],
            "4 to 12 s: 2 × frozen",
        ),
        ([(4, "worker-1", "frozen", {"seconds": 60.0})], "4 to 20 s: frozen"),
        ([(4, "worker-1", "cut", {"seconds": 5.0})], "4 to 9 s: cut off from the store"),
        ([(4, "worker-1", "cut", {"seconds": 60.0})], "4 to 20 s: cut off from the store"),
    ],
    ids=["killed", "frozen longer", "frozen to the end", "cut", "cut to the end"],
)
def test_the_lane_of_a_worker_that_is_away_is_hatched_for_so_long(
    rows: list[Row], told: str
) -> None:
    run = happened(claimed(1, "worker-1", 1, 11), *rows)
    assert told in leases(run).text()
    hatched = [bar for bar in workers_axes(run).patches if bar.get_hatch()]
    assert hatched
    first = hatched[0]
    assert isinstance(first, Rectangle)
    start, _, end, *_ = told.replace("s:", "").split()
    assert (first.get_x(), first.get_x() + first.get_width()) == (float(start), float(end))


def test_each_way_of_being_away_has_a_pattern_and_a_word_of_its_own() -> None:
    assert len({pattern for _, pattern in AWAY.values()}) == len(AWAY)
    assert len({words for words, _ in AWAY.values()}) == len(AWAY)


def test_each_mark_has_a_shape_of_its_own() -> None:
    assert len({sign for sign, *_ in LOOKS.values()}) == len(LOOKS)
    assert list(LOOKS) == list(MARKS)


def marked(run: Run | str) -> list[tuple[str, float]]:
    """The sign of each mark in the lanes of the workers, and when."""
    return [
        (str(line.get_marker()), float(line.get_xdata()[0]))
        for line in workers_axes(run).get_lines()
        if str(line.get_marker()) != "None"
    ]


def test_a_write_is_kept_or_refused_or_into_the_run_of_another() -> None:
    refused = {"run": "run-1", "by": "worker-1", "fence": 1, "move": "step"}
    run = happened(
        claimed(1, "worker-1", 1, 5),
        wrote(2, "worker-1", "running"),
        claimed(6, "worker-2", 2, 16),
        wrote(7, "worker-1", "running"),
        (8, "store", "refused", refused),
        (9, "worker-1", "claim_lost", {"run": "run-1", "fence": 1}),
    )
    text = leases(run).text()
    assert "2 s: write kept (node_finished)" in text
    assert "7 s: write into another's run (node_finished)" in text
    assert "8 s: write refused (step)" in text
    assert "9 s: stops: its lease is lost" in text
    signs = {kind: sign for kind, (sign, *_) in LOOKS.items()}
    assert marked(run) == [
        (signs["kept"], 2.0),
        (signs["zombie"], 7.0),
        (signs["refused"], 8.0),
        (signs["claim_lost"], 9.0),
    ]


def test_what_is_alike_and_follows_one_another_is_one_line_with_its_number() -> None:
    silent = [
        (t, "worker-1", "not_written", {"run": "run-1", "fence": 1, "error": "StoreDown"})
        for t in (3, 4, 6)
    ]
    run = happened(claimed(1, "worker-1", 1, 11), *silent)
    assert "3 to 6 s: 3 × no answer to a write" in leases(run).text()


def test_what_a_worker_tells_of_a_write_is_not_counted_beside_the_stores_word() -> None:
    kept = (2.1, "worker-1", "kept", {"run": "run-1", "fence": 1, "status": "running", "seq": 3})
    run = happened(claimed(1, "worker-1", 1, 11), wrote(2, "worker-1", "running"), kept)
    assert len(marked(run)) == 1


def test_effects_and_findings_stand_in_lanes_of_their_own_with_a_line_at_each_finding() -> None:
    run = labkit.simulate("leases.goes_on")
    chart, (found,) = leases(run), run.findings
    text, at = chart.text(), run.trace[found.event].time
    assert "2 × send_mail\n" in text
    assert f"{found.name}: {found.cure}" in text
    above, below = chart.figure.axes
    assert [label.get_text() for label in below.get_yticklabels()] == ["effects", "findings"]
    dotted = [line for line in above.get_lines() if line.get_linestyle() == ":"]
    assert [list(line.get_xdata()) for line in dotted] == [[at, at]]


def test_a_lane_names_its_run_where_there_are_several() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 11),
        claimed(2, "worker-1", 1, 12, run="run-2"),
        (2, "ledger", "effect", {"name": "ship", "order": 2}),
        (4, "worker-1", "killed", {}),
    )
    names = [label.get_text() for label in workers_axes(run).get_yticklabels()]
    assert names == ["worker-1, run-1", "worker-1, run-2"]
    assert leases(run).text().count("4 to 20 s: killed") == 2
    assert leases(run).text().startswith("own: 2 runs after 2 claims; ends at 20 s")
    assert len({bar.get_facecolor() for bar in bars(run)}) == 2
    assert "2 s: ship, order 2" in leases(run).text()


def test_the_tenth_worker_comes_after_the_ninth() -> None:
    rows = [claimed(n, f"worker-{n}", 1, 20, run=f"run-{n}") for n in range(8, 12)]
    names = [label.get_text() for label in workers_axes(happened(*rows)).get_yticklabels()]
    assert [name.partition(",")[0] for name in names] == [f"worker-{n}" for n in range(8, 12)]


def test_the_picture_says_each_fence_and_the_legend_each_sign_that_is_there() -> None:
    figure = leases("leases.frozen").figure
    words = [text.get_text() for text in figure.axes[0].texts]
    assert [word for word in words if word.startswith("fence")] == ["fence 1", "fence 2"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[0] == "lease; a line: renewal"
    assert {"write kept", "write refused"} < set(legend)
    assert "write into another's run" not in legend


def test_two_runs_stand_on_one_time_axis_and_have_their_marks() -> None:
    chart = labkit.leases("leases.shut_down", "leases.killed", marks=("before: ", "after: "))
    one, other = chart.text().split("\n\n")
    assert one.startswith("before: leases.shut_down: run-1 is completed after 2 claims; ends at ")
    assert other.startswith("after: leases.killed: run-1 is completed after 2 claims; ends at ")
    first, *rest = chart.figure.axes
    assert {axes.get_xlim() for axes in rest} == {first.get_xlim()}
    assert first.get_title(loc="left") == one.splitlines()[0]


@pytest.mark.parametrize("name", LEASES)
def test_every_scenario_is_drawn_without_a_warning_and_told_in_words(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart = leases(name)
        (image,) = pictures(chart._repr_mimebundle_()["text/markdown"])
    assert image["alt"] == chart.text()


def test_its_picture_and_its_words_are_the_same_twice() -> None:
    one, two = leases("leases.frozen"), leases("leases.frozen")
    assert (one.png, one.text()) == (two.png, two.text())


def test_a_run_without_a_claim_is_refused_with_one_that_has_some() -> None:
    with pytest.raises(SimulationError, match=r"retry\.guarded has no leases: try 'leases.killed'"):
        labkit.leases("retry.guarded")


def test_what_is_told_by_others_is_shown_as_text() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 11), (2, "ledger", "effect", {"name": "<b>\u202ex", "order": 1})
    )
    assert "2 s: <b>\\u202ex" in leases(run).text()


def test_two_times_with_two_leases_that_touch_are_told_as_one() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 11),
        claimed(2, "worker-2", 2, 6),
        claimed(6, "worker-3", 3, 9),
    )
    last, before = leases(run).text().splitlines()[:-3:-1]
    assert last == "  two leases on run-1 at once: 2 to 9 s"
    assert "at once" not in before


def test_a_move_after_the_end_of_a_lease_does_not_lengthen_it() -> None:
    run = happened(claimed(1, "worker-1", 1, 11), wrote(15, "ann", "cancelled", "run_cancelled"))
    assert "1 to 11 s: holds run-1 with fence 1; the run is cancelled" in leases(run).text()


def test_two_leases_at_once_are_told_for_each_run_and_no_longer_than_the_run_lasts() -> None:
    run = happened(
        claimed(1, "worker-1", 1, 31, run="run-1"),
        claimed(2, "worker-2", 2, 32, run="run-1"),
        claimed(3, "worker-1", 1, 13, run="run-2"),
        claimed(4, "worker-2", 2, 14, run="run-2"),
    )
    assert leases(run).text().splitlines()[-2:] == [
        "  two leases on run-1 at once: 2 to 20 s",
        "  two leases on run-2 at once: 4 to 13 s",
    ]
