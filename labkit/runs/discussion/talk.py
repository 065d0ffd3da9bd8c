"""What a discussion knows: its question, and every turn so far, as state of the graph.

Rules: lists only grow, so that steps that run beside each other take nothing from one another; a
text in the transcript that models read cannot pose as a turn of somebody else.

    talk = {"question": "Which database?", "rounds": 3, "turns": [turn("proposer", "SQLite")]}
    transcript(talk)                   # "Question: Which database?\n[proposer] SQLite"
"""

from collections.abc import Iterable, Mapping
from operator import add
from typing import Annotated, Any, Final, TypedDict

COORDINATOR: Final = "coordinator"
PROPOSER: Final = "proposer"
CRITIC: Final = "critic"
PERSON: Final = "person"
TOOL: Final = "tool"
CONSENSUS: Final = "consensus"
ROUNDS: Final = "rounds"
APPROVES: Final = "VERDICT: APPROVE"


class Turn(TypedDict):
    """What somebody said or did: `role`, `text`, and the names of the `tools` that were used."""

    role: str
    text: str
    tools: list[str]


class Call(TypedDict):
    """A call that the proposer wants; `until`: when its approval ends, by the store's time."""

    id: str
    tool: str
    arguments: dict[str, Any]
    until: float


class Talk(TypedDict, total=False):
    """The state of the graph. `calls`: of the newest turn; `remembered`: how many turns have been.

    `tokens` and `requests` count what models were asked for, in the steps that were kept.
    """

    question: str
    rounds: int
    memories: list[str]
    turns: Annotated[list[Turn], add]
    calls: list[Call]
    decision: dict[str, str]
    conclusion: str
    end_reason: str
    remembered: int
    tokens: Annotated[int, add]
    requests: Annotated[int, add]


def turn(role: str, text: str, tools: Iterable[str] = ()) -> Turn:
    """One turn."""
    return {"role": role, "text": text, "tools": list(tools)}


def storable(text: str) -> str:
    """As each database keeps it: without NUL and without half a pair, which PostgreSQL refuses."""
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


def transcript(talk: Talk) -> str:
    """What a model reads: one turn begins with `[role]`, and its further lines are indented."""
    lines = [f"Question: {_inside(talk['question'])}"]
    lines += [f"Remembered: {_inside(memory)}" for memory in talk.get("memories", [])]
    lines += [f"[{each['role']}] {_inside(each['text'])}" for each in talk.get("turns", [])]
    return "\n".join(lines)


def _inside(text: str) -> str:
    return "\n  ".join(text.splitlines())


def spoken(talk: Mapping[str, Any], role: str) -> list[Turn]:
    """The turns of one role."""
    return [each for each in talk.get("turns", []) if each["role"] == role]


def last_speaker(talk: Talk) -> Turn | None:
    """The newest proposal or critique."""
    both = [each for each in talk.get("turns", []) if each["role"] in (PROPOSER, CRITIC)]
    return both[-1] if both else None


def ended(talk: Talk) -> str:
    """Why no further round is needed: "consensus", "rounds", or ""."""
    last = last_speaker(talk)
    if last is None or last["role"] != CRITIC:
        return ""
    if last["text"].strip().splitlines()[-1:] == [APPROVES]:
        return CONSENSUS
    return ROUNDS if len(spoken(talk, PROPOSER)) >= talk["rounds"] else ""
