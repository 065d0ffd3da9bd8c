"""The graph of a discussion: who hands over to whom.

app = graph_of(nodes).compile(checkpointer=saver)
"""

from collections.abc import Sequence
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from .nodes import ASK_HUMAN, FINISH, Nodes
from .talk import Talk


def graph_of(nodes: Nodes) -> StateGraph[Any, Any, Any, Any]:
    """The steps and their order; calls of one proposal run beside each other."""
    made: StateGraph[Any, Any, Any, Any] = StateGraph(Talk)
    names = "recall coordinator proposer tool critic ask_human summarise remember"
    steps: dict[str, Any] = {name: getattr(nodes, name) for name in names.split()}
    for name, step in steps.items():
        made.add_node(name, step)
    made.add_edge(START, "recall")
    made.add_edge("recall", "coordinator")
    made.add_conditional_edges(
        "coordinator", _after_decision, ["proposer", "critic", "ask_human", "summarise"]
    )
    made.add_conditional_edges("proposer", _after_proposal, ["tool", "coordinator"])
    for name in ("tool", "critic", "ask_human"):
        made.add_edge(name, "coordinator")
    made.add_edge("summarise", "remember")
    made.add_edge("remember", END)
    return made


async def _after_decision(talk: Talk) -> str:  # async: any other function gets a thread
    decision = talk["decision"]
    if decision["action"] == FINISH:
        return "summarise"
    return "ask_human" if decision["action"] == ASK_HUMAN else decision["target"]


async def _after_proposal(talk: Talk) -> Sequence[Send] | str:
    return [Send("tool", call) for call in talk["calls"]] or "coordinator"
