"""The length of a lease against its two costs, read from runs."""

from __future__ import annotations

from typing import Any

import pytest

import labkit
from labkit.recovery.errors import PolicyError
from labkit.runs.manager import RunPolicy
from labkit.scenarios.leases import POLICY
from labkit.simulation import SimulationError
from labkit.teaching import lease_lengths as module
from labkit.teaching.lease_lengths import BOUNDS, DEFAULT, LENGTHS, PANELS, lease_lengths
from tests.teaching.test_views import pictures

FOUND = {
    5: {"lease": 5, "recovery": 5.4, "false": 6},
    30: {"lease": 30, "recovery": 28.4, "false": 2},
}


@pytest.fixture
def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each length costs, as if it had been tried."""
    monkeypatch.setattr(module, "sweep", lambda lengths: [FOUND[length] for length in lengths])


def test_both_costs_are_read_from_runs_and_pull_in_opposite_directions() -> None:
    text = lease_lengths([3, 20]).text().splitlines()
    short, long = (line.replace(",", "").split() for line in text[1:])
    assert (short[0], long[0]) == ("3", "20")
    assert float(short[4]) < float(long[4])
    assert int(short[6]) > int(long[6])


@pytest.mark.usefixtures("swept")
def test_it_says_how_long_it_takes_before_and_where_it_is_after_each_length(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def sweep(lengths: list[float]) -> list[Any]:
        said.append(capsys.readouterr().out)
        return [FOUND[int(length)] for length in lengths]

    monkeypatch.setattr(module, "sweep", sweep)
    lease_lengths([30, 5])
    assert said == ["a second or two for each lease, in seconds:", " 5"]
    assert capsys.readouterr().out == " 30\n"


@pytest.mark.usefixtures("swept")
def test_the_words_and_the_two_panels_say_the_same_with_the_default_marked() -> None:
    chart = lease_lengths([5, 30, 30])
    assert chart.text().splitlines() == [
        "lengths of a lease; the default is 30 s",
        "    5 s: recovery after  5.4 s, 6 runs are taken from a worker that only stood still",
        "   30 s: recovery after 28.4 s, 2 runs are taken from a worker that only stood still",
    ]
    above, below = chart.figure.axes
    assert above.get_xlim() == below.get_xlim()
    for axes, up in ((above, [5.4, 28.4]), (below, [6, 2])):
        line, default = axes.get_lines()
        assert (list(line.get_xdata()), list(line.get_ydata())) == ([5, 30], up)
        assert list(default.get_xdata()) == [DEFAULT, DEFAULT]
        assert axes.get_ylabel()
    assert "default: 30 s" in [text.get_text() for text in above.texts]
    assert below.get_xlabel() == "length of the lease (seconds)"
    assert len({sign for _, sign, _ in PANELS.values()}) == 2


@pytest.mark.usefixtures("swept")
def test_its_picture_has_its_text_form_and_is_the_same_twice() -> None:
    one, two = lease_lengths([5, 30]), labkit.lease_lengths([5, 30])
    (image,) = pictures(one._repr_mimebundle_()["text/markdown"])
    assert image["alt"] == one.text()
    assert one.png == two.png


def test_the_default_is_the_managers_and_stands_among_the_lengths() -> None:
    assert RunPolicy().lease == DEFAULT
    assert DEFAULT in LENGTHS


def test_no_length_and_one_that_no_lease_can_have_are_refused() -> None:
    with pytest.raises(SimulationError, match="at least one length, in seconds"):
        lease_lengths([])
    with pytest.raises(PolicyError, match="lease"):
        lease_lengths([0])


@pytest.mark.parametrize("length", [0.01, 0.3, 0.99, 240.1, 400, 1e9])
def test_a_length_that_cannot_be_measured_here_is_refused_before_anything_is_told(
    length: float, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SimulationError, match="from 1 to 240 s can be measured here, not one of"):
        lease_lengths([30, length])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("length", BOUNDS)
def test_the_shortest_and_the_longest_lease_are_measured(length: float) -> None:
    (found,) = module.sweep([length])
    assert 0 < found["recovery"] <= length + POLICY.watchdog
    assert found["false"] <= 8


@pytest.mark.parametrize("wrong", [None, 30, "30"])
def test_what_is_no_list_of_lengths_is_refused_by_name(wrong: Any) -> None:
    with pytest.raises(SimulationError, match="give it a list of lengths in seconds, not"):
        lease_lengths(wrong)


def test_a_length_that_no_lease_has_is_refused_before_anything_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(PolicyError, match="lease is 0"):
        lease_lengths([30, 0])
    assert capsys.readouterr().out == ""
