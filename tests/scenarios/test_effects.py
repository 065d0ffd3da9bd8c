"""The scenarios of calls with effects: each claim is what its run shows."""

from __future__ import annotations

import pytest

import labkit
from labkit.recovery import outcomes
from labkit.scenarios import effects
from labkit.scenarios.catalogue import find
from labkit.services.effects import CUES, KINDS
from labkit.simulation import Run

NAMES = [name for name in labkit.names() if name.startswith("effects.")]

# name -> the status of each call, the number of effects, and the findings
SHOWN: dict[str, tuple[list[str], int, list[str]]] = {
    "reference": (["succeeded", "reused", "succeeded"], 2, []),
    "refused": (["succeeded", "reused"], 1, []),
    "did_not_happen": (["succeeded"], 1, []),
    "happened": (["reconciled"], 1, []),
    "not_yet": (["reconciled"], 1, []),
    "called_off": (["succeeded"], 1, []),
    "manual": (["manual intervention", "reused"], 1, []),
    "wrong_person": (["manual intervention", "succeeded"], 2, ["effect_repeated"]),
    "rejected": (["rejected"], 0, []),
    "conflict": (["succeeded", "rejected"], 1, []),
    "at_once": (["succeeded", *["deduplicated"] * 3], 1, []),
    "died": (["reconciled", "reused"], 1, []),
    "forgot": (["manual intervention"], 1, []),
    "forgot_silently": (["succeeded"], 2, ["effect_repeated"]),
    "gives_up": (["failed"], 1, ["failure_told"]),
    "hopes": (["succeeded"], 0, ["effect_lost"]),
    "tries_again": (["succeeded"], 2, ["effect_repeated"]),
    "call_key": (["reconciled", "succeeded", "succeeded"], 3, ["effect_repeated"]),
    "payload_key": (["succeeded", "reused", "rejected"], 1, []),
    "next_answer": (["succeeded", "succeeded"], 1, ["effect_lost"]),
}


def test_every_scenario_is_shown_here() -> None:
    assert [f"effects.{name}" for name in SHOWN] == NAMES


@pytest.mark.parametrize("name", SHOWN)
def test_a_scenario_shows_what_it_claims(name: str) -> None:
    run = labkit.simulate(f"effects.{name}")
    statuses, count, findings = SHOWN[name]
    assert (list(run.result.values()), len(run.ledger)) == (statuses, count)
    assert [finding.name for finding in run.findings] == findings


@pytest.mark.parametrize("name", NAMES)
def test_every_breakpoint_of_interest_is_reached(name: str) -> None:
    run = labkit.simulate(name)
    reached = {place["breakpoint"] for place in run.places}
    assert set(find(name).breakpoints) <= reached


@pytest.mark.parametrize("happened", [True, False])
def test_the_word_of_the_person_decides_what_the_next_call_gets(happened: bool) -> None:
    scenario = effects.resolved_by(find("effects.manual"), happened=happened)
    run = labkit.simulate(scenario)
    assert run.result["c2"] == (outcomes.REUSED if happened else outcomes.SUCCEEDED)
    assert len(run.ledger) == (1 if happened else 2)


@pytest.mark.parametrize(
    ("name", "who"), [("forgot_silently", "service"), ("wrong_person", "person")]
)
def test_who_was_asked_and_told_wrongly_is_not_advised_to_ask(name: str, who: str) -> None:
    (found,) = labkit.simulate(f"effects.{name}").findings
    assert found.cure.startswith(f"the {who}'s word was wrong: ")


# --- the grid


def is_right(run: Run) -> bool:
    """Whether nothing happened twice, and nothing is missing but what a person looks at."""
    told = effects.figures(run)
    return not told["duplicates"] and not told["losses"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cue", CUES)
def test_with_a_key_of_the_order_nothing_is_doubled_and_nothing_lost(kind: str, cue: str) -> None:
    run = effects.cell("key of the order", cue, kind=kind)
    assert is_right(run)
    assert run.findings == ()
    real = {effect["order"] for effect in run.effects}
    assert "order-8" in real
    open_ones = effects.figures(run)["open"]
    missing = len(run.ledger) == 1
    in_doubt = kind == "mail" and cue not in ("ok", "refuse", "twice")
    assert open_ones == (2 if in_doubt else 0)  # both calls for the first order wait
    assert missing == (in_doubt and cue in ("lose_request", "fail_before"))


@pytest.mark.parametrize("way", [way for way in effects.WAYS if way != "key of the order"])
def test_every_other_way_is_wrong_for_some_cue(way: str) -> None:
    runs = [effects.cell(way, cue) for cue in CUES]
    assert not all(is_right(run) for run in runs)


@pytest.mark.parametrize("kind", KINDS)
def test_two_orders_that_are_meant_have_two_effects_where_all_goes_well(kind: str) -> None:
    run = effects.cell("key of the order", "ok", kind=kind)
    assert [effect["order"] for effect in run.effects] == ["order-7", "order-8"]


def test_the_amount_as_key_loses_an_order_that_was_meant() -> None:
    run = effects.cell("key of the amount", "ok")
    assert effects.figures(run)["losses"] == 1
    assert [effect["order"] for effect in run.effects] == ["order-7"]
