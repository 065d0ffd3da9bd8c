"""Figures and cursors of a recovered answer are read from its trace."""

from __future__ import annotations

import pytest

import labkit
from labkit.scenarios.figures import cursors, figures
from labkit.simulation import Fault


def test_the_figures_of_a_continued_answer() -> None:
    told = figures(labkit.simulate("stream.cut"))
    assert told == {
        "cut by": "drop",
        "cut s": 1.9,
        "shown then": 70,
        "action": "request_continuation",
        "appended": 47,
        "tool calls": 0,
        "state": "done",
        "extra s": 2.3,
        "total s": 4.7,
        "tokens": 124,
        "thrown away": 3,
        "twice": 0,
    }


def test_tokens_are_those_of_requests_and_answers_four_characters_each() -> None:
    run = labkit.simulate("stream.whole")
    question = len("How do I get VPN access?")
    assert figures(run)["tokens"] == (question + len(run.text)) // 4
    assert figures(run)["thrown away"] == 0


def test_asking_again_throws_away_what_was_shown_and_continuing_costs_a_longer_request() -> None:
    again, on = (figures(labkit.simulate(f"stream.{name}")) for name in ("again", "cut"))
    assert again["thrown away"] == 70 // 4
    assert on["thrown away"] < again["thrown away"]
    assert on["tokens"] > again["tokens"]  # the draft and the instruction are sent as well


def test_an_answer_that_nothing_broke_has_no_cut() -> None:
    told = figures(labkit.simulate("stream.whole"))
    assert (told["cut by"], told["cut s"], told["action"], told["extra s"]) == ("", "", "none", 0)


def test_what_was_chosen_and_not_done_any_more_is_told_as_given_up() -> None:
    told = figures(labkit.simulate("stream.limit"))
    action = "2 × request_continuation, gave up: limit"
    assert (told["action"], told["state"]) == (action, "failed")


def test_a_repeated_effect_is_counted() -> None:
    from tests.scenarios.test_streams import naive

    assert figures(naive("effect_repeated"))["twice"] == 1
    assert figures(labkit.simulate("stream.tool_again"))["twice"] == 0


def test_the_cursors_part_where_the_connection_is_cut_and_meet_at_the_end() -> None:
    found = cursors(labkit.simulate("stream.kept", faults=Fault("cut", 3)).trace)
    assert {steps[-1][1] for steps in found.values()} == {117}

    def at(name: str, time: float) -> int:
        return max(place for moment, place in found[name] if moment <= time)

    assert [at(name, 2.2) for name in found] == [117, 83, 52, 52]


@pytest.mark.parametrize("name", ["whole", "cut", "half_call", "stop"])
def test_without_a_service_in_between_there_is_no_cursor_of_what_was_sent(name: str) -> None:
    assert cursors(labkit.simulate(f"stream.{name}").trace)["sent"] == []


def test_the_arguments_of_a_tool_call_are_counted_as_tokens_too() -> None:
    run = labkit.simulate("stream.tool_done")
    said = [e.get("text", "") for e in run.trace if e.kind in ("say", "call")]
    asked = sum(e["characters"] for e in run.trace if e.kind == "asked")
    assert figures(run)["tokens"] == (asked + len("".join(said))) // 4
