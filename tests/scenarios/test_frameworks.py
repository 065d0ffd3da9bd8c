"""What each implementation keeps of the same interrupted answer, and what it leaves undone."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from agents import ModelBehaviorError
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from labkit.providers.script import Script, script
from labkit.recovery.errors import ProviderError
from labkit.recovery.stream import RecoveryLimits
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.scenarios.catalogue import find, names, points, simulate
from labkit.scenarios.desk import Desk
from labkit.scenarios.frameworks import THREAD, Nodes, SDKDesk, State, graph, kept, row
from labkit.simulation import Fault, Observer, Run
from labkit.simulation.world import World

ROOT = Path(__file__).parents[2]
FRAMEWORKS = [name for name in names() if name.startswith("frameworks.")]
HALF = "Ticket 1 is open: VPN access, high priority. "
WHOLE = HALF + "IT answers within a day."
SESSION = "user, function_call, function_call_output"

# implementation -> kept by it after the cut, tool runs, text doubled, the author's job, left undone
BOTH = "effect_repeated, duplicate_text"
TABLE = {
    "raw": (
        "nothing",
        1,
        "no",
        "keep a record, check the call, choose the way back, wait",
        "nothing",
    ),
    "langgraph": ("question, call, result", 1, "yes", "begin again", "duplicate_text"),
    "langgraph_by_hand": (
        "question, call, result, status, draft, tries",
        1,
        "no",
        "keep the draft and count the tries, close the segment",
        "nothing",
    ),
    "langgraph_one_node": ("question", 2, "yes", "begin again", BOTH),
    "agents": (SESSION, 1, "yes", "begin again", "duplicate_text"),
    "agents_by_hand": (SESSION, 1, "no", "begin again, close the segment", "nothing"),
    "agents_silent_end": (f"{SESSION}, assistant", 1, "no", "nothing", "truncation_accepted"),
}  # fmt: skip


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_table_says_what_each_keeps_and_what_it_leaves_to_its_author(name: str) -> None:
    implementation, *told = row(simulate(name)).values()
    assert tuple(told) == TABLE[implementation]


def test_every_implementation_stands_in_the_table() -> None:
    assert [f"frameworks.{name}" for name in TABLE] == FRAMEWORKS


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if "silent" not in name])
def test_every_reader_has_the_whole_answer_in_the_end(name: str) -> None:
    run = simulate(name)
    assert run.error is None
    assert run.text.endswith(WHOLE)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_scenario_is_repeatable_and_can_be_stepped(name: str) -> None:
    run = simulate(name, seed=3)
    assert simulate(name, seed=3).hash == run.hash
    assert len(run.recorded) > 3  # and so the recorded run was the same
    assert [
        event for event in run.trace if event.kind in ("refused", "left_over", "unhandled")
    ] == []
    for mark in run.scenario.breakpoints:
        assert run.to(mark).place.breakpoint == mark


def child(code: str, **environment: str) -> list[str]:
    """The lines that a new process prints; `NAMES` there are the scenarios."""
    head = f"import sys, labkit\nNAMES = {FRAMEWORKS!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", head + code],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
        text=True,
        timeout=100,
    )
    return done.stdout.splitlines()


TELLTALE = """
import threading
def hook(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        print(event, flush=True)
sys.addaudithook(hook)
hashes = []
for name in NAMES:
    run = labkit.simulate(name)
    assert run.error is None, run.error
    assert [event for event in run.trace if event.kind == "refused"] == [], name
    hashes.append(run.hash)
print(sorted(thread.name for thread in threading.enumerate()))
print(hashes)
"""


@cache
def watched() -> list[str]:
    """What a process tells that plays them all where the environment asks for reports."""
    asks = {
        "LANGSMITH_TRACING": "true",
        "LANGCHAIN_TRACING_V2": "true",
        "LANGSMITH_API_KEY": "none",
        "OPENAI_API_KEY": "none",
        "OPENAI_AGENTS_DISABLE_TRACING": "false",
        "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1",  # not as here
    }
    return child(TELLTALE, **asks)


def test_the_same_seed_gives_the_same_trace_in_two_processes() -> None:
    assert watched()[-1] == str([simulate(name).hash for name in FRAMEWORKS])


# --- LangGraph


def test_a_draft_is_in_the_state_only_where_a_node_catches_the_cut_and_hands_it_in() -> None:
    plain, careful = (simulate(f"frameworks.{name}") for name in ("langgraph", "langgraph_by_hand"))
    assert HALF in plain.text
    assert {"draft", "status", "answer"} & set(kept(plain)) == set()
    assert kept(careful)["draft"] == HALF
    assert kept(careful)["status"] == "interrupted"
    assert [segment.text for segment in careful.segments] == [HALF, WHOLE]


class Brisk(Desk):
    """The desk in real time: its tool takes none, and its effects are kept in a list."""

    def __init__(self, played: Script, observe: Observer, effects: list[str]) -> None:
        super().__init__(played, observe)
        self.shown = ""

        async def create_ticket(arguments: Mapping[str, Any], key: str) -> str:
            effects.append(json.dumps(arguments))
            return "ticket 1 is open"

        self.tools = ToolRegistry(Tool(name="create_ticket", run=create_ticket))

    def page(self, kind: str, **told: Any) -> None:
        self.shown += told.get("text", "")


CALL = {
    "call": {"index": 0, "id": "call_1", "name": "create_ticket", "arguments": '{"title": "VPN"}'}
}
CALLED = [CALL, {"finish": "tool_calls"}]
CUT = [{"say": HALF}, {"drop": True}]
ANSWERED = [{"say": WHOLE}, {"finish": "stop"}]


async def in_a_process(
    file: Path, effects: list[str], attempts: list[Any], given: State | None, last: str = "answer"
) -> tuple[str, Any]:
    """What one process shows, and the state that it leaves in `file`; it may die of the cut."""
    played = script({"name": "made up", "attempts": attempts})
    observe = Observer(World(time=asyncio.get_running_loop().time, spend=lambda: True), "client")
    desk = Brisk(played, observe, effects)
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        app = graph(Nodes(desk, RecoveryLimits(), observe), ["call", "tool", last], saver)
        try:
            await app.ainvoke(given, THREAD)
        except ProviderError:
            assert last == "answer"  # the careful one lets none pass
        return desk.shown, await app.aget_state(THREAD)


def test_on_a_real_disk_the_finished_tool_is_kept_and_the_cut_node_begins_anew(
    tmp_path: Path,
) -> None:
    file, effects = tmp_path / "kept.sqlite", list[str]()
    question = State(question="How?")
    shown, state = asyncio.run(in_a_process(file, effects, [CALLED, CUT], question))
    assert (shown, len(effects)) == (HALF, 1)
    assert (state.next, set(state.values)) == (("answer",), {"question", "call", "result"})
    shown, state = asyncio.run(in_a_process(file, effects, [ANSWERED], None))
    assert (shown, len(effects)) == (WHOLE, 1)  # the tool not again, the text from its beginning
    assert (state.next, state.values["answer"]) == ((), WHOLE)


def test_on_a_real_disk_status_and_draft_are_there_because_a_node_handed_them_in(
    tmp_path: Path,
) -> None:
    file, effects = tmp_path / "kept.sqlite", list[str]()
    always_cut = [CALLED, CUT]
    shown, state = asyncio.run(
        in_a_process(file, effects, always_cut, State(question="How?"), "careful")
    )
    assert (shown, len(effects)) == (HALF * 3, 1)
    told = {name: state.values[name] for name in ("status", "draft", "tries")}
    assert told == {"status": "failed", "draft": HALF, "tries": 3}


# --- agent SDK


def test_the_session_has_the_question_once_and_the_answer_whole_in_the_end() -> None:
    run = simulate("frameworks.agents")
    last = [event for event in run.trace if event.actor == "framework"][-1]
    assert json.loads(last["user"]) == {"role": "user", "content": "How do I get VPN access?"}
    assert json.loads(last["assistant"])["content"][0]["text"] == WHOLE


def half_answer(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kept(run)["assistant"])
    return found


def test_half_an_answer_is_a_completed_one_to_the_session() -> None:
    told = half_answer(simulate("frameworks.agents_silent_end"))
    assert (told["content"][0]["text"], told["status"]) == (HALF, "completed")


def test_only_its_makers_own_address_is_held_to_a_finish_reason_by_the_sdk() -> None:
    class Official(SDKDesk):
        def __init__(self, played: Script, observe: Observer) -> None:
            super().__init__(played, observe)
            self.client.base_url = "https://api.openai.com/v1"

    run = simulate(find("frameworks.agents_silent_end").but(make=Official))
    assert isinstance(run.error, ModelBehaviorError)
    assert "assistant" not in kept(run)


def test_whoever_leaves_the_sdks_stream_leaves_no_task_behind() -> None:
    waits = [point for point in points("frameworks.agents") if point.task == "client"]
    assert len(waits) > 10
    for point in waits:
        run = simulate("frameworks.agents", faults=Fault("cancel", point.number, "client"))
        assert isinstance(run.error, asyncio.CancelledError)
        assert [event for event in run.trace if event.kind in ("left_over", "unhandled")] == []


# --- limits


@pytest.mark.parametrize("name", ["langgraph", "agents"])
def test_the_error_leaves_when_the_limit_allows_no_other_attempt(name: str) -> None:
    run = simulate(f"frameworks.{name}", policy=RecoveryLimits(recoveries=0))
    assert run.error is not None
    assert run.text == HALF
    assert [event for event in run.trace if event.kind == "again"] == []


def test_the_careful_node_says_failed_when_the_limit_is_reached() -> None:
    run = simulate("frameworks.langgraph_by_hand", policy=RecoveryLimits(recoveries=0))
    assert (run.error, kept(run)["status"], kept(run)["draft"]) == (None, "failed", HALF)


# --- what is not there, and what is not told


def test_without_its_library_a_run_says_how_to_install_it() -> None:
    hidden = "for gone in ('langgraph', 'agents'): sys.modules[gone] = None\n"
    code = "for name in NAMES: print(repr(labkit.simulate(name).error))"
    told = dict(zip(FRAMEWORKS, child(hidden + code), strict=True))
    assert told.pop("frameworks.raw") == "None"
    for name, line in told.items():
        library, extra = ("langgraph", "lab") if "langgraph" in name else ("openai-agents", "sdk")
        cure = f"run python -m pip install -e '.[{extra}]'"
        assert line == f'FrameworkMissing("{library} is not installed: {cure}")'


def test_no_framework_is_loaded_before_a_scenario_runs() -> None:
    heavy = "{'langgraph', 'langchain_core', 'langsmith', 'agents', 'openai', 'requests'}"
    assert child(f"labkit.names(); print({heavy} & set(sys.modules))") == ["set()"]


def test_nothing_is_reported_to_anybody_even_where_the_environment_asks_for_it() -> None:
    assert watched()[:-1] == ["['MainThread']"]
