"""The report of a discussion, which can be audited: who said what, who did it, what it cost.

report(run, values, events)            # Markdown; every text in it is data
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..record import AgentRun, RunEvent
from .talk import PERSON

# What is a mark in Markdown or HTML anywhere, at the edge of a word, or where a block begins.
_MARKS: Final = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])|^[-+#=]")
_NUMBER: Final = re.compile(r"^(\d+)([.)])")
_APART: Final = ("node", "question", "ask", "answer", "error_code", "error_message")


def report(run: AgentRun, values: Mapping[str, Any], events: Sequence[RunEvent]) -> str:
    """In any state of the run; `values`: the state of its newest checkpoint, or {}."""
    return "\n".join([*_head(run, values), *_steps(values), *_end(run, values), *_events(events)])


def _head(run: AgentRun, values: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Report of run {plain(run.run_id)}"
    yield ""
    ended = run.end_reason or values.get("end_reason") or "not yet"
    told = {
        "Question": run.given["question"],
        "State": run.status,
        "Model": run.model,
        "End": ended,
        "Error": f"{run.error_code}: {run.error_message}" if run.error_code else "",
        "Cost of the steps that are kept": f"{values.get('tokens', 0)} tokens, "
        f"{values.get('requests', 0)} requests to models",
    }
    yield from (f"- {name}: {plain(text)}" for name, text in told.items() if text)
    yield ""
    if memories := values.get("memories"):
        yield from ("## Memories used", "", *(f"- {plain(each)}" for each in memories), "")


def _steps(values: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Steps", "")
    for number, turn in enumerate(values.get("turns", []), start=1):
        tools = f" (tools: {', '.join(map(plain, turn['tools']))})" if turn["tools"] else ""
        yield f"{number}. **{plain(turn['role'])}**{tools}: {plain(turn['text'])}"
    yield ""
    answers = [turn for turn in values.get("turns", []) if turn["role"] == PERSON]
    if answers:
        yield from ("## Answers of a person", "", *(f"- {plain(a['text'])}" for a in answers), "")


def _end(run: AgentRun, values: Mapping[str, Any]) -> Iterator[str]:
    yield from ("## Conclusion", "", plain(values.get("conclusion") or "(not finished)"), "")


def _events(events: Sequence[RunEvent]) -> Iterator[str]:
    starts = [event.data for event in events if event.type == "run_started"]
    yield from ("## Workers", "")
    for number, data in enumerate(starts, start=1):
        told = f"worker {data['worker']}, fence {data['fence']}, model {data['model']}"
        yield f"- start {number}: {plain(told)}"
    yield from ("", f"## Events ({len(events)})", "")
    last = ""
    for event in events:
        again = " after a retry" if last == "run_failed" else ""
        yield f"- #{event.seq} {plain(f'{event.type}{again} {_of(event.data)}')}"
        last = event.type
    yield ""


def _of(data: Mapping[str, Any]) -> str:
    """What tells two events of a kind apart."""
    told = [f"fence {data['fence']}"] if "fence" in data else []
    return ": ".join(told + [str(data[name]) for name in _APART if name in data])


def plain(text: str) -> str:
    """As one line of text: no mark in it is Markdown or HTML."""
    line = _MARKS.sub(r"\\\g<0>", " ".join(str(text).split()))
    return _NUMBER.sub(r"\1\\\2", line)
