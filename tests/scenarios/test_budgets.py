"""What each layer sends and uses, alone and on one budget; a storm in figures; a promise kept."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from labkit.recovery.budget import BudgetLimits
from labkit.scenarios.budget_judges import BUDGET_JUDGES
from labkit.scenarios.budgets import CAPACITY, COUNTS_ONLY, peak, row
from labkit.scenarios.catalogue import find, names, simulate
from labkit.scenarios.framework_retries import table
from labkit.simulation import Run
from labkit.simulation.judge import judged
from tests.simulation import pythons
from tests.simulation.kit import trace

BUDGETS = [name for name in names() if name.startswith("budgets.")]

# scenario -> requests, the most retries in a second, clients answered and failed, seconds
FIGURES: dict[str, tuple[Any, ...]] = {
    "nested": (36, 2, 0, 1, 29.8),
    "nested_shared": (4, 2, 0, 1, 2.6),
    "plain": (36, 2, 0, 1, 29.8),
    "plain_shared": (4, 2, 0, 1, 2.6),
    "storm": (820, 200, 180, 20, 58.5),
    "storm_jitter": (676, 76, 200, 0, 26.2),
    "storm_budget": (240, 17, 0, 200, 4.1),
    "per_call": (4, 1, 1, 0, 43.5),
    "deadline": (1, 0, 1, 0, 9.5),
    "langgraph": (36, 2, 0, 1, 29.8),
    "langgraph_shared": (4, 2, 0, 1, 2.6),
    "langgraph_replayed": (2, 0, 0, 0, 0.8),
    "langgraph_keyed": (1, 0, 0, 0, 0.4),
}
FOUND = {
    "nested": ["retries_multiplied"],
    "plain": ["retries_multiplied"],
    "storm": ["retries_in_step", "load_multiplied"],
    "storm_jitter": ["load_multiplied"],
    "per_call": ["deadline_overrun"],
    "langgraph": ["retries_multiplied"],
    "langgraph_replayed": ["effect_repeated"],
}


def of(name: str, **inputs: Any) -> Run:
    run = simulate(f"budgets.{name}", **inputs)
    assert run.error is None
    return run


def used(run: Run) -> dict[str, dict[str, Any]]:
    """The budget's report, by layer."""
    return {row.pop("layer"): row for row in map(dict, run.result)}


def test_every_scenario_stands_in_the_table_of_figures() -> None:
    assert [f"budgets.{name}" for name in FIGURES] == BUDGETS


@pytest.mark.parametrize("name", FIGURES)
def test_a_scenario_shows_the_figures_and_findings_of_its_claim(name: str) -> None:
    run = of(name)
    assert tuple(row(run).values()) == (name, *FIGURES[name])
    assert [finding.name for finding in run.findings] == FOUND.get(name, [])


@pytest.mark.parametrize("name", BUDGETS)
def test_every_scenario_is_repeatable_and_can_be_stepped(name: str) -> None:
    run = simulate(name, seed=3)
    assert simulate(name, seed=3).hash == run.hash
    if name not in ("budgets.storm", "budgets.storm_jitter"):  # 60,000 places, as in the third
        assert len(run.recorded) > 3  # and so the recorded run was the same
    assert [e for e in run.trace if e.kind in ("refused", "left_over", "unhandled")] == []


CHILD = "import sys, labkit\nfor name in sys.argv[1:]: print(labkit.simulate(name).hash)"


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    told = pythons.run(sys.executable, "-c", CHILD, *BUDGETS, PYTHONHASHSEED="1")
    assert told.split() == [simulate(name).hash for name in BUDGETS]


# --- nested


@pytest.mark.parametrize("name", ["nested", "plain"])
def test_naive_layers_multiply_and_each_says_what_it_added(name: str) -> None:
    layers = used(of(name))
    assert {path: told["requests"] for path, told in layers.items()} == dict.fromkeys(layers, 36)
    node, tool, client = (
        layers[f"run/node{end}"]["retries"] for end in ("", "/tool", "/tool/client")
    )
    assert (node - tool, tool - client, client) == (2, 9, 24)


@pytest.mark.parametrize("name", ["nested_shared", "plain_shared"])
def test_one_budget_sends_what_it_allows_and_every_layer_gives_up(name: str) -> None:
    run = of(name)
    assert used(run)["run/node/tool/client"]["requests"] == 4
    (error,) = [event for event in run.trace if event.kind == "error"]
    why = [note for note in error["why"] if note.startswith("gave up in")]
    assert why == [
        "gave up in run/node/tool after attempt 2: requests",
        "gave up in run/node after attempt 1: requests",
    ]


def test_the_error_of_the_unmodified_client_is_its_own() -> None:
    (error,) = [event for event in of("nested_shared").trace if event.kind == "error"]
    assert "the server is overloaded" in error["text"]


@pytest.mark.parametrize("requests", [1, 2, 3, 5, 7, 35, 36])
@pytest.mark.parametrize("name", ["nested", "plain"])
def test_no_budget_is_passed_whatever_it_is(name: str, requests: int) -> None:
    limits = BudgetLimits(requests=requests, retries=40, per_tool=40)
    run = of(name, policy=limits)
    assert sum(event.kind == "request" for event in run.trace) == requests
    assert used(run)["run"]["requests"] == requests


@pytest.mark.parametrize("limits", [{"retries": 2}, {"seconds": 3.5}])
@pytest.mark.parametrize("name", ["nested", "plain"])
def test_a_limit_of_the_run_ends_all_layers_at_once(name: str, limits: dict[str, Any]) -> None:
    many = {"requests": 40, "retries": 40, "per_tool": 40} | limits
    run = of(name, policy=BudgetLimits(**many))
    assert sum(event.kind == "request" for event in run.trace) == 3
    assert run.time < 3.5


def test_a_tools_own_limit_ends_the_tool_and_the_node_around_it_tries_for_nothing() -> None:
    layers = used(of("nested", policy=BudgetLimits(retries=40, per_tool=3)))
    assert layers["run"] == layers["run/node"] == {"requests": 3, "retries": 4, "waited": 3.5}
    assert layers["run/node/tool"]["retries"] == 2


# --- storm and deadline


def test_without_chance_the_clients_come_back_at_the_same_instants() -> None:
    times = [event.time for event in of("storm").trace if event.kind == "request"]
    assert [(time, times.count(time)) for time in sorted(set(times))] == [
        (0.0, 200),
        (4.1, 200),
        (12.2, 200),
        (28.3, 200 - CAPACITY),
        (58.4, 200 - 2 * CAPACITY),
    ]


def test_a_shared_retry_budget_ends_the_others_at_once() -> None:
    run = of("storm_budget")
    failed = [event.time for event in run.trace if event.kind == "http_error"]
    assert failed.count(0.1) == 200
    assert used(run)["run"]["retries"] == 40


def test_the_promise_is_kept_to_the_end_of_handing_back() -> None:
    late, kept = of("per_call"), of("deadline")
    assert (late.text, kept.text) != ("found", "found")
    assert late.time > 4 * 10.0 > 10.0 >= kept.time


def test_a_place_in_the_queue_that_lasts_too_long_leaves_no_time_to_ask() -> None:
    run = of("deadline", policy=BudgetLimits(seconds=4.0, hand_back=1.0))
    assert [event.kind for event in run.trace if event.kind == "request"] == []
    assert run.time == 3.5


# --- figures and judges


def asked(*rows: tuple[float, int]) -> Any:
    """A trace of requests, each (time, attempt)."""
    return trace(*((at, "provider", "request", {"attempt": attempt}) for at, attempt in rows))


@pytest.mark.parametrize(
    ("rows", "most"),
    [
        ((), 0),
        (((0.0, 1), (0.0, 1)), 0),
        (((0.0, 2),), 1),
        (((0.0, 2), (0.99, 3), (1.0, 2)), 2),
        (((0.0, 2), (0.6, 2), (1.2, 2), (1.5, 2), (2.2, 2)), 3),
    ],
)
def test_the_peak_counts_retries_within_any_one_second(rows: Any, most: int) -> None:
    assert peak(asked(*rows)) == most


def found(events: Any) -> list[tuple[str, int]]:
    return [(finding.name, finding.event) for finding in judged(BUDGET_JUDGES, events)]


def test_more_requests_than_the_most_patient_layer_makes_alone_are_multiplied() -> None:
    layers = [(0.0, "layer", "begins", {"attempts": attempts}) for attempts in (2, 3)]
    requests = [(float(n), "provider", "request", {"attempt": n}) for n in range(1, 5)]
    assert found(trace(*layers, *requests)) == [("retries_multiplied", 5)]
    assert found(trace(*layers, *requests[:3])) == []
    assert found(trace(*requests)) == []  # no layers, nothing that could multiply


def test_ten_retries_at_one_instant_are_in_step_and_first_requests_are_not() -> None:
    assert found(asked(*[(1.0, 1)] * 20, *[(2.0, 2)] * 10)) == [("retries_in_step", 29)]
    assert found(asked(*[(1.0, 1)] * 20, *[(2.0, 2)] * 9)) == []


def test_more_retries_than_questions_are_a_load_of_their_own() -> None:
    retries = [(2.0 + n / 100, 2) for n in range(11)]
    assert found(asked(*[(1.0, 1)] * 10, *retries)) == [("load_multiplied", 20)]
    assert found(asked(*[(1.0, 1)] * 10, *retries[:10])) == []
    assert found(asked((1.0, 1), *retries)) == []  # one client, whose retries are its own affair


def test_a_promise_is_overrun_by_whatever_the_page_gets_later() -> None:
    asks = (1.0, "user", "asks", {"within": 2.0})
    for kind in ("shown", "error"):
        assert found(trace(asks, (3.1, "page", kind))) == [("deadline_overrun", 1)]
    assert found(trace(asks, (3.0, "page", "shown"), (9.0, "lab", "end"))) == []
    assert found(trace((3.1, "page", "shown"))) == []


def test_each_finding_has_a_cure_in_one_line() -> None:
    cures = [finding.cure for name in FIGURES for finding in of(name).findings]
    assert len(cures) == 8
    assert all(cure and "\n" not in cure and len(cure) < 90 for cure in cures)


def test_an_account_that_only_counts_refuses_nothing() -> None:
    assert min(COUNTS_ONLY.requests, COUNTS_ONLY.retries, COUNTS_ONLY.per_tool) == 10**9
    assert find("budgets.nested").policy is COUNTS_ONLY


# --- frameworks


def test_the_table_has_a_row_a_framework_and_langgraphs_is_read_from_its_runs() -> None:
    rows = table()
    assert [told["framework"] for told in rows] == [
        "LangGraph",
        "smolagents",
        "OpenAI Agents SDK",
        "DeepSeek Harness",
    ]
    assert all(tuple(told) == tuple(rows[0]) for told in rows)
    assert list(rows[0].values())[1:] == [
        "node policy, around tool and client: 36 requests",
        "nobody; handed in: 4 requests",
        "none",
        "begins 2 times: 2 effects; with the executor: 1",
        "what the node holds; retry_on can ask it",
    ]
    assert all(told.startswith("look: ") for row in rows[1:] for told in list(row.values())[1:])


def test_the_node_that_runs_again_with_a_key_is_given_the_first_runs_result() -> None:
    run = of("langgraph_keyed")
    assert sum(event.kind == "node" for event in run.trace) == 2
    assert run.result == "This was done before, and not again; its result was: open_ticket 1"


WITHOUT = """
import sys
for gone in ("langgraph", "openai", "httpx2"): sys.modules[gone] = None
import labkit
for name in ("budgets.nested", "budgets.langgraph", "budgets.langgraph_keyed"):
    print(type(labkit.simulate(name).error).__name__)
print(labkit.simulate("budgets.plain").result[0]["requests"])
"""


def test_without_a_library_its_scenarios_say_how_to_install_it_and_the_plain_ones_run() -> None:
    told = pythons.run(sys.executable, "-c", WITHOUT)
    assert told.split() == ["SDKMissing", "FrameworkMissing", "FrameworkMissing", "36"]
