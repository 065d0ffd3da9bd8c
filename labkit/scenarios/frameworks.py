"""The same interrupted answer in three implementations: raw API, LangGraph, an agent SDK.

One question, one tool whose ticket is real, and an answer that is cut midway. What a framework
holds is noted as "kept" of the actor "framework", so that the table can be read from runs:

    row(simulate("frameworks.langgraph"))["kept by it"]      # 'question, call, result'

No framework is imported before its scenario runs, and none may report to anybody: their tracing is
off, whatever the environment says. Without its library a run ends in `FrameworkMissing`.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypedDict

from labkit.providers.script import Script
from labkit.recovery.errors import ProviderError, RecoveryError
from labkit.recovery.stream import RecoveryLimits
from labkit.simulation import STREAM_JUDGES, Observer, Run, Scenario
from labkit.simulation.outside import loading

from . import sdk, streams
from .desk import QUESTION, Desk
from .rows import STREAMS, rows, scenario
from .stream_judges import RECOVERY_JUDGES

THREAD: Final = {"configurable": {"thread_id": "run-1"}}
TOOL: Final = "create_ticket"


class FrameworkMissing(RecoveryError):
    """The framework of this scenario is not installed: run the line that the message names."""


@contextmanager
def library(name: str, extra: str) -> Iterator[None]:
    """Import a framework in the block; raises `FrameworkMissing` where it is not installed."""
    try:
        with loading():
            yield
    except ModuleNotFoundError as missing:
        cure = f"python -m pip install -e '.[{extra}]'"
        raise FrameworkMissing(f"{name} is not installed: run {cure}") from missing


@dataclass
class Author:
    """What the author of an application does by hand, whatever the framework."""

    desk: Desk
    limits: RecoveryLimits
    observe: Observer

    async def run_tool(self, arguments: Mapping[str, Any]) -> str:
        """Run the tool."""
        tool = self.desk.tools.get(TOOL)
        assert tool is not None
        return await tool.run(arguments, "")

    async def until_whole(
        self, attempt: Callable[[bool], Awaitable[None]], broken: type[Exception]
    ) -> None:
        """Make attempts, the first with False, while they break and the limit allows."""
        for number in range(self.limits.recoveries + 1):
            try:
                await attempt(number > 0)
                return
            except broken as error:
                if number == self.limits.recoveries:
                    raise
                self.observe("again", after=type(error).__name__)

    def holds(self, pieces: Mapping[str, Any]) -> None:
        """Look at what the framework holds, and note it."""
        self.observe.of("framework")("kept", held=", ".join(pieces) or "nothing", **pieces)


# --- LangGraph


class State(TypedDict, total=False):
    """What is kept after each node that has ended. Which fields there are is the author's work."""

    question: str
    call: str
    result: str
    answer: str
    status: str
    draft: str
    tries: int


class Nodes(Author):
    """The steps of the graph; what a step hands in when it ends is all that is kept of it."""

    async def call(self, state: State) -> State:
        """Ask, and hand in the arguments of the call that the model makes."""
        deltas = [delta async for delta in self.desk.provider.stream()]
        return {"call": "".join(delta.text for delta in deltas if delta.kind == "tool_call")}

    async def tool(self, state: State) -> State:
        """Run that call."""
        return {"result": await self.run_tool(json.loads(state["call"]))}

    async def answer(self, state: State) -> State:
        """Show the answer as it comes; cut in the middle, it hands in nothing."""
        return {"answer": await self._shown([])}

    async def careful(self, state: State) -> State:
        """The same by hand: catch the cut, keep the draft, close its segment, count the tries."""
        pieces: list[str] = []
        tries = state.get("tries", 0) + 1
        try:
            return {"answer": await self._shown(pieces), "status": "completed", "tries": tries}
        except ProviderError as error:
            self.desk.page("segment_end", reason=error.kind)
            status = "interrupted" if tries <= self.limits.recoveries else "failed"
            self.observe("draft", status=status)
            return {"status": status, "draft": "".join(pieces), "tries": tries}

    async def all_at_once(self, state: State) -> State:
        """Naive: call, tool and answer as one step, which is kept whole or not at all."""
        called = await self.call(state)
        done = await self.tool(called)
        return {**called, **done, **await self.answer(done)}

    async def _shown(self, pieces: list[str]) -> str:
        async with aclosing(self.desk.provider.stream()) as deltas:
            async for delta in deltas:
                if delta.visible:
                    pieces.append(delta.text)
                    self.desk.page("text_delta", text=delta.text)
        return "".join(pieces)


def graph(nodes: Nodes, names: Sequence[str], saver: Any) -> Any:
    """The graph of those nodes, one after the other; the last is done again while interrupted."""
    with library("langgraph", "lab"):
        from langgraph.graph import END, START, StateGraph

    async def after_last(state: State) -> str:  # async: any other function gets a thread
        return names[-1] if state.get("status") == "interrupted" else END

    made = StateGraph(State)
    made.add_sequence([(name, getattr(nodes, name)) for name in names])
    made.add_edge(START, names[0]).add_conditional_edges(names[-1], after_last)
    return made.compile(checkpointer=saver)


async def langgraph(
    desk: Desk, limits: RecoveryLimits, observe: Observer, *, nodes: Sequence[str]
) -> None:
    """A graph of async nodes with a checkpointer, which goes on from the last checkpoint."""
    with library("langgraph", "lab"):
        from langgraph.checkpoint.memory import InMemorySaver
        from langsmith import tracing_context
    author = Nodes(desk, limits, observe)
    app = graph(author, nodes, InMemorySaver())

    async def attempt(again: bool) -> None:
        given = None if again else State(question=QUESTION.question)
        with tracing_context(enabled=False):
            async for saved in app.astream(given, THREAD, stream_mode="checkpoints"):
                author.holds(saved["values"])

    await author.until_whole(attempt, ProviderError)


# --- agent SDK


class SDKDesk(Desk):
    """The desk, with an unmodified `openai` client on the script."""

    def __init__(self, script: Script, observe: Observer) -> None:
        super().__init__(script, observe)
        with loading():
            self.client = sdk.make_client(script, observe)


async def agent_sdk(
    desk: SDKDesk, limits: RecoveryLimits, observe: Observer, *, segments: bool = False
) -> None:
    """The SDK's runner, streamed, on its own session; after a cut it runs again on that session.

    `segments`: the page closes what was shown before the next attempt.
    """
    with library("openai-agents", "sdk"):
        import agents
        from openai import OpenAIError
    author = Author(desk, limits, observe)

    @agents.function_tool
    async def create_ticket(title: str, priority: str) -> str:
        """Open a ticket."""
        return await author.run_tool({"title": title, "priority": priority})

    model = agents.OpenAIChatCompletionsModel("any", desk.client)
    agent = agents.Agent(name="service desk", model=model, tools=[create_ticket])
    session = agents.SQLiteSession("run-1")
    quiet = agents.RunConfig(tracing_disabled=True)

    async def attempt(again: bool) -> None:
        if again and segments:
            desk.page("segment_end", reason="disconnect")
        given: Any = [] if again else QUESTION.question  # the session has the question already
        running = agents.Runner.run_streamed(agent, given, session=session, run_config=quiet)
        try:
            async for event in running.stream_events():
                data: Any = getattr(event, "data", None)
                if getattr(data, "type", "") == "response.output_text.delta":
                    desk.page("text_delta", text=data.delta)
        finally:
            running.cancel()  # it is a task of its own, and would outlive us
            await asyncio.wait(filter(None, [running.run_loop_task]))
            held: dict[str, str] = {}
            for item in map(dict, await session.get_items()):
                kind = str(item.get("role") or item["type"])
                held[kind] = held.get(kind, "") + json.dumps(item)
            author.holds(held)

    try:
        await author.until_whole(attempt, OpenAIError)
    finally:
        session.close()


# --- the table


def kept(run: Run) -> dict[str, Any]:
    """What the framework held after the cut, before the next request; {} without a framework."""
    broke = (e.index for e in run.trace if e.actor == "provider" and e.kind in ("drop", "end"))
    cut = next(broke, len(run.trace))
    until = next((e.index for e in run.trace[cut:] if e.kind == "request"), len(run.trace))
    held = [e for e in run.trace[:until] if (e.actor, e.kind) == ("framework", "kept")]
    return dict(held[-1].data[1:]) if held else {}


_JOBS: Final = {  # what the author's own code was seen doing, by the kind of event
    "saved": "keep a record",
    "tool_pending": "check the call",
    "choice": "choose the way back",
    "wait": "wait",
    "again": "begin again",
    "draft": "keep the draft and count the tries",
    "segment_end": "close the segment",
}


def row(run: Run) -> dict[str, Any]:
    """One implementation in the table, read from its run alone."""
    begins = next((e["text"] for e in run.trace if e.actor == "provider" and e.kind == "say"), "")
    kinds = {event.kind for event in run.trace}
    return {
        "implementation": run.scenario.name.partition(".")[2],
        "kept by it": ", ".join(kept(run)) or "nothing",
        "tool runs": len(run.ledger),
        "text doubled": "yes" if begins and run.text.count(begins) > 1 else "no",
        "your own job": ", ".join(job for kind, job in _JOBS.items() if kind in kinds) or "nothing",
        "left undone": ", ".join(finding.name for finding in run.findings) or "nothing",
    }


def scenarios() -> list[Scenario]:
    """In the order of the table."""
    return [_scenario(f"frameworks.{name}", told) for name, told in rows("frameworks").items()]


# what makes the services, and the client on them
_IN: Final[Mapping[str, tuple[type[Desk], Callable[..., Awaitable[Any]]]]] = {
    "raw": (Desk, partial(streams.recovering, offers=(TOOL,), can_continue=True)),
    "langgraph": (Desk, langgraph),
    "agents": (SDKDesk, agent_sdk),
}


def _scenario(name: str, told: dict[str, Any]) -> Scenario:
    make, client = _IN[told["client"]]
    how = {key: told[key] for key in ("nodes", "segments") if key in told}
    return scenario(
        name,
        told,
        make=make,
        client=partial(client, **how),
        policy=RecoveryLimits(),
        judges=STREAM_JUDGES + RECOVERY_JUDGES,
        source=STREAMS,
        sdk=make is SDKDesk,
    )
