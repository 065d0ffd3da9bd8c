"""Retries and keys in four frameworks: LangGraph's row is read from runs, the others are a reading.

A node of a graph may be tried again by the graph (`RetryPolicy`), and is run again from its
beginning when the graph goes on from a checkpoint. Neither knows of the loop in a tool, of a budget
or of a key: all three have to be handed in.

    table()            # rows for a data frame
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, TypedDict

from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.cancel import to_the_end
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.execution import Executor
from labkit.recovery.idempotency import Operation
from labkit.recovery.policy import ExecutionPolicy, RetryPolicy
from labkit.recovery.service import Request
from labkit.services.effects import EffectService
from labkit.simulation import Observer, Scenario, simulate
from labkit.stores.memory import MemoryKeyStore

from . import budgets
from .budgets import WAIT, Ask, Model, account, nested
from .frameworks import THREAD, library
from .rows import rows

POLICY: Final = ExecutionPolicy(retry=RetryPolicy(retry_on=TRANSIENT, jitter=0.0))
TICKET: Final = Operation(
    tenant="acme", name="open_ticket", resource="order-7", payload={"order": "order-7"}
)


class State(TypedDict, total=False):
    """What the graph keeps after a node that has ended."""

    order: str
    told: Any


async def invoked(node: Any, given: State | None, saver: Any, **options: Any) -> Any:
    """Run a graph of that one node, from the beginning or, with None, from its last checkpoint."""
    with library("langgraph", "lab"):
        from langgraph.graph import START, StateGraph
        from langsmith import tracing_context
    made: Any = StateGraph(State)
    made.add_node("node", node, **options).add_edge(START, "node")
    with tracing_context(enabled=False):
        return await made.compile(checkpointer=saver).ainvoke(given, THREAD)


async def graph_node(ask: Ask, attempts: int, layer: Budget, observe: Observer) -> None:
    """The graph's own loop in the place of ours: it asks the budget, since we hand that in.

    It asks after the last attempt too, which is no retry.
    """
    with library("langgraph", "lab"):
        from langgraph.types import RetryPolicy as NodePolicy
    observe.of("layer")("begins", name=layer.layer, attempts=attempts)
    failures = count(1)

    async def node(state: State) -> State:
        return {"told": await ask()}

    def again(error: Exception) -> bool:
        return next(failures) < attempts and not layer.retry(WAIT)

    policy = NodePolicy(
        max_attempts=attempts, initial_interval=WAIT, backoff_factor=1, jitter=False, retry_on=again
    )
    await invoked(node, {"order": "order-7"}, None, retry_policy=policy)


async def replayed(
    service: EffectService, limits: BudgetLimits, observe: Observer, *, keyed: bool = False
) -> str:
    """A node opens a ticket, breaks before it ends, and runs again from the last checkpoint."""
    with library("langgraph", "lab"):
        from langgraph.checkpoint.memory import InMemorySaver
    saver, runs, budget = InMemorySaver(), count(1), account(limits, observe)
    keys = MemoryKeyStore(asyncio.get_running_loop().time)
    chance, now = observe.random, observe.now
    executor = Executor(keys, owner="worker-1", policy=POLICY, random=chance, now=now)

    async def node(state: State) -> State:
        observe("node", run=(run := next(runs)))
        if keyed:
            outcome = await executor.execute(TICKET, service, budget, tenant="acme")
            told = outcome.told
        else:  # with the id of a call that the model has made in this run of the node
            told = await service.perform(Request(f"call-{run}", TICKET.payload, 1, 1))
        if run == 1:
            raise ProviderError("the connection was reset", kind="disconnect")
        return {"told": told}

    try:
        with suppress(ProviderError):
            await invoked(node, {"order": "order-7"}, saver)
        kept = await invoked(node, None, saver)
    finally:
        await to_the_end(service.idle())
    return str(kept["told"])


CLIENTS: Final[Mapping[str, tuple[Any, Any]]] = {
    "graph_node": (Model, partial(nested, asks="plain", around=graph_node)),
    "replayed": (lambda script, observe: EffectService("ticket", observe), replayed),
}


def scenarios() -> list[Scenario]:
    """Those that LangGraph's row is read from."""
    return budgets.scenarios(CLIENTS)


def table() -> list[dict[str, str]]:
    """One row a framework. LangGraph's is read from its four runs, the others say where to look."""
    runs = [simulate(each) for each in scenarios()]
    if broken := [run.error for run in runs if run.error]:
        raise broken[0]
    alone, shared = (sum(e.kind == "request" for e in run.trace) for run in runs[:2])
    naive, keyed = (len(run.ledger) for run in runs[2:])
    begun = sum(event.kind == "node" for event in runs[2].trace)
    langgraph = {
        "framework": "LangGraph",
        "who retries": f"node policy, around tool and client: {alone} requests",
        "who keeps the budget": f"nobody; handed in: {shared} requests",
        "key of a tool": "none",
        "a replayed node": f"begins {begun} times: {naive} effects; with the executor: {keyed}",
        "across the border": "what the node holds; retry_on can ask it",
    }
    return [langgraph, *rows("framework_retries").values()]
