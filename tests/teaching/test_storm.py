"""A storm of requests as bars: what a service got in each second, and the peak in words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import labkit
from labkit.scenarios.budgets import row
from labkit.simulation import Run, Scenario, SimulationError
from labkit.teaching.storm import LOOKS, rates, storm
from tests.teaching.test_views import pictures


def asking(*asked: Any, actor: str = "service", kind: str = "request", name: str = "own") -> Run:
    """A run in which a service is asked at these times, or (time, attempt)."""

    async def client(made: Any, policy: Any, observe: Any) -> None:
        for each in asked:
            time, attempt = each if isinstance(each, tuple) else (each, 1)
            await asyncio.sleep(time - asyncio.get_running_loop().time())
            observe.of(actor)(kind, attempt=attempt)

    scenario = Scenario(
        name=name, claim="own", script=None, make=lambda script, observe: None, client=client
    )
    return labkit.simulate(scenario)


def test_requests_are_counted_by_the_second_and_the_peak_is_quoted() -> None:
    chart = storm(asking(0, 0.5, (1, 2), 1.2, (1.5, 2), (1.99, 3), (2.1, 2), 4))
    assert chart.text().splitlines() == [
        "own: 8 requests; after a failure at most 3 within any one second",
        "  bars: whole seconds",
        "  from 0 s: 2 first tries",
        "  from 1 s: 1 first tries, 3 after a failure",
        "  from 2 s: 1 after a failure",
        "  from 4 s: 1 first tries",
    ]
    assert repr(chart) == f"<storm of {chart.text().splitlines()[0]}>"


def test_a_bar_is_a_second_with_first_tries_at_its_foot_and_the_others_above() -> None:
    chart = storm(asking(0, 0.5, (1, 2), 1.2, 3))
    (axes,) = chart.figure.axes
    bars = [(bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height()) for bar in axes.patches]
    assert bars[:4] == [(0, 0, 1, 2), (1, 0, 1, 1), (2, 0, 1, 0), (3, 0, 1, 1)]
    assert bars[4:] == [(0, 2, 1, 0), (1, 1, 1, 1), (2, 0, 1, 0), (3, 1, 1, 0)]
    assert axes.get_title(loc="left") == chart.text().splitlines()[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("virtual time (seconds)", "requests a second")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(LOOKS)
    assert {bar.get_hatch() for bar in axes.patches[:4]} != {
        bar.get_hatch() for bar in axes.patches[4:]
    }


def test_what_a_service_and_a_provider_get_counts_and_what_a_client_says_does_not() -> None:
    assert rates(asking(0, 0, 2))["first tries"] == [2, 0, 1]
    hammer = rates(labkit.simulate("retry.hammer"))
    assert hammer == {"first tries": [1], "after a failure": [4]}
    for other in (asking(0, actor="client"), asking(0, kind="answer")):
        with pytest.raises(SimulationError, match="this run of own sends no request"):
            storm(other)


@pytest.mark.parametrize("name", ["storm", "storm_jitter", "storm_budget"])
def test_the_storms_of_the_lesson_quote_the_peak_that_their_figures_have(name: str) -> None:
    run = labkit.simulate(f"budgets.{name}")
    most = row(run)["peak"]
    assert f"after a failure at most {most} within any one second" in storm(run).text()


def test_two_storms_share_both_axes_and_have_their_marks() -> None:
    chart = labkit.storm(
        asking(*[(0.1, 2)] * 30), asking(0, 7, name="calm"), marks=("before: ", "after: ")
    )
    above, below = chart.figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert above.get_ylim() == below.get_ylim()
    one, other = chart.text().split("\n\n")
    within = "within any one second"
    assert one.startswith(f"before: own: 30 requests; after a failure at most 30 {within}")
    assert other.startswith(f"after: calm: 2 requests; after a failure at most 0 {within}")


def test_its_picture_has_its_text_form_and_is_the_same_twice() -> None:
    one, two = storm("retry.hammer"), storm("retry.hammer")
    (image,) = pictures(one._repr_mimebundle_()["text/markdown"])
    assert image["alt"] == one.text()
    assert one.png == two.png
