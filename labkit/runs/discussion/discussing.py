"""A discussion as a job: the graph, driven step by step, so that each is kept before the next.

Rules: a run's row names the checkpoint from which it goes on; a worker begins with a copy of that;
a store that is gone for a while is asked again, for as long as the lease lasts.

    job = partial(discuss, services)
    RunManager(store, {"discussion": job}, ...)
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command, StateSnapshot
from langsmith import tracing_context

from labkit.recovery.retry import Observe
from labkit.recovery.tools import ToolRegistry
from labkit.stores.errors import StoreDown

from ..job import Ask, Done, Step, Work
from ..jobs import Once
from ..record import AgentRun
from .checkpoints import AGAIN, Checkpoints
from .graph import graph_of
from .memory import Memories
from .models import Models
from .nodes import Nodes
from .speaking import Speaker
from .talk import storable

ROUNDS: Final = 3
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What a discussion needs. `clock()`: the run store's time, in seconds."""

    saver: BaseCheckpointSaver[Any]
    memories: Memories | None
    models: Models
    tools: ToolRegistry
    schemas: tuple[dict[str, Any], ...]
    once: Once
    clock: Callable[[], Awaitable[float]]
    random: Random
    observe: Observe = lambda kind, **details: None


async def discuss(
    services: Services,
    work: Work,
    *,
    nodes: type[Nodes] = Nodes,
    checkpoints: type[Checkpoints] = Checkpoints,
) -> AsyncGenerator[Step | Ask | Done, None]:
    """Go on with a discussion from where its run stands."""
    run = work.run
    kept = checkpoints(services.saver, run.run_id, work.fence, run.checkpoint, work.renewal)
    await _until_there(kept.take_over)
    app = graph_of(_nodes(services, run, nodes)).compile(checkpointer=kept)
    look = partial(app.aget_state, kept.config)
    state: StateSnapshot = await _until_there(look)
    while state.next or not state.values:
        before = state
        names = await _until_there(partial(_step, app, kept, _given(run, before)))
        state = await _until_there(look)
        told = _told(before.values, state.values)
        if state.interrupts:
            asks = [each.value for each in state.interrupts]
            waits = {**kept.named, "asks": asks}
            if told:  # one of several is done, the others wait
                yield Step("+".join(names), told, waits)
            named = ("id", "kind", "tool")
            shown = {"asks": [{n: each[n] for n in named if n in each} for each in asks]}
            yield Ask(" ".join(each["question"] for each in asks), waits, shown)
            return
        yield Step("+".join(names), told, kept.named)
    values = state.values
    result = {name: values.get(name) for name in ("conclusion", "tokens", "requests")}
    yield Done(result, values["end_reason"])


async def _step(app: Any, kept: Checkpoints, given: Any) -> list[str]:
    """One step of the graph, or those that run beside each other: their names."""
    names: dict[str, None] = {}
    with tracing_context(enabled=False):  # it reports to nobody, whatever the environment says
        async for update in app.astream(
            given, kept.config, stream_mode="updates", interrupt_after="*", durability="sync"
        ):
            names |= {name: None for name in update if not name.startswith("__")}
    return list(names)


def _given(run: AgentRun, state: StateSnapshot) -> Any:
    """What the graph is called with: the question, or a person's word, or nothing, to go on."""
    if not state.values:
        question = storable(run.given["question"])
        return {"question": question, "rounds": run.given.get("rounds", ROUNDS)}
    word: dict[str, Any] = run.answer if isinstance(run.answer, dict) else {}
    meant = [each.id for each in state.interrupts if each.value["id"] == word.get("ask")]
    return Command(resume={meant[0]: word}) if meant else None


def _told(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What an event tells of a step: what is new in the state."""
    turns = list(after.get("turns", []))
    for each in before.get("turns", []):  # of steps beside each other any may be done first
        if each in turns:
            turns.remove(each)
    told: dict[str, Any] = {
        name: after[name]
        for name in ("conclusion", "remembered", "memories")
        if name in after and name not in before
    }
    if turns:
        told |= {"role": turns[-1]["role"], "text": "\n".join(each["text"] for each in turns)}
        told["tools"] = [tool for each in turns for tool in each["tools"]]
    if after.get("decision") != before.get("decision"):
        told |= after["decision"]
    return told


async def _until_there(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask again while the database is gone; the loss of the lease ends that."""
    while True:
        try:
            return await ask()
        except StoreDown:
            await asyncio.sleep(AGAIN)


def _nodes(services: Services, run: AgentRun, nodes: type[Nodes]) -> Nodes:
    speaker = Speaker(
        services.models(run.model),
        random=services.random,
        observe=services.observe,
        pay=partial(services.models.pay, run.model),
        tools=services.schemas,
    )
    return nodes(run, speaker, services.memories, services.tools, services.once, services.clock)
