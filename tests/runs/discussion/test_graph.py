"""Who hands over to whom."""

from __future__ import annotations

from typing import Any

from labkit.runs.discussion.graph import graph_of
from labkit.runs.discussion.nodes import Nodes


def test_every_way_leads_back_to_the_coordinator_or_to_the_end() -> None:
    drawn = graph_of(Nodes(*([None] * 6))).compile().get_graph()  # type: ignore[arg-type]
    ways: dict[str, set[Any]] = {}
    for edge in drawn.edges:
        ways.setdefault(edge.source, set()).add(edge.target)
    assert ways == {
        "__start__": {"recall"},
        "recall": {"coordinator"},
        "coordinator": {"proposer", "critic", "ask_human", "summarise"},
        "proposer": {"tool", "coordinator"},
        "tool": {"coordinator"},
        "critic": {"coordinator"},
        "ask_human": {"coordinator"},
        "summarise": {"remember"},
        "remember": {"__end__"},
    }
