"""Where the judges of sessions draw their lines, on traces made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from labkit.scenarios import session_judges
from labkit.scenarios.session_judges import SESSION_JUDGES
from labkit.simulation import Event
from tests.scenarios.test_sessions import FLAWS
from tests.simulation.kit import trace

Row = tuple[str, str, tuple[tuple[str, str], ...], str, str]
CRASH = (0, "lab", "fault", {"fault": "crash", "point": 3})


def user(text: str) -> Row:
    return ("user", text, (), "", "")


def said(text: str, *calls: tuple[str, str]) -> Row:
    return ("assistant", text, calls, "", "")


def tool(call_id: str, status: str) -> Row:
    return ("tool", "", (), call_id, status)


def left(
    *messages: Row, checkpoint: Any = None, running: Any = (), drafts: Any = ()
) -> tuple[Any, ...]:
    told = {"messages": messages, "checkpoint": checkpoint, "running": running, "drafts": drafts}
    return (9, "lab", "left", {"ann": tuple(told.items())})


def effect(name: str, **data: Any) -> tuple[Any, ...]:
    return (1, "ledger", "effect", {"name": name, **data})


def shown(text: str, session: str = "ann") -> tuple[Any, ...]:
    return (1, "page", "shown", {"text": text, "session": session})


def sends(text: str, session: str = "ann") -> tuple[Any, ...]:
    return (0, "user", "sends", {"session": session, "text": text})


def turn(kind: str, session: str = "ann", message: str = "") -> tuple[Any, ...]:
    return (0, "dispatcher", f"turn_{kind}", {"session": session, "message": message})


def names(events: Sequence[Event]) -> set[str]:
    return {finding.name for judge in SESSION_JUDGES for finding in judge(events)}


ASKED = said("", ("c1", "pay"))

CASES: dict[str, tuple[list[tuple[Any, ...]], set[str]]] = {
    "each call has its result": ([left(user("q"), ASKED, tool("c1", "done"))], set()),
    "a call without one": ([left(user("q"), ASKED)], {"call_unanswered"}),
    "a call with two": (
        [left(user("q"), ASKED, tool("c1", "done"), tool("c1", "done"))],
        {"call_unanswered"},
    ),
    "a result that nobody asked for": ([left(tool("c1", "done"))], {"call_unanswered"}),
    "an open turn may wait for one": ([left(checkpoint=(user("q"), ASKED))], set()),
    "an effect of a call that is unknown": (
        [CRASH, effect("pay"), left(user("q"), ASKED, tool("c1", "unknown"))],
        set(),
    ),
    "the same without a crash": (
        [effect("pay"), left(user("q"), ASKED, tool("c1", "unknown"))],
        {"result_lost"},
    ),
    "an effect of a call that runs": (
        [CRASH, effect("pay"), left(checkpoint=(ASKED,), running=("c1",))],
        set(),
    ),
    "an effect of a call that is not marked": (
        [CRASH, effect("pay"), left(checkpoint=(ASKED,))],
        {"effect_forgotten"},
    ),
    "an effect of a call that never began": (
        [CRASH, effect("pay"), left(ASKED, tool("c1", "not started"))],
        {"effect_forgotten"},
    ),
    "two effects of one call": (
        [CRASH, effect("pay"), effect("pay"), left(ASKED, tool("c1", "done"))],
        {"effect_forgotten"},
    ),
    "two effects and one result": (
        [
            effect("pay"),
            effect("pay"),
            left(said("", ("a", "pay"), ("b", "pay")), tool("a", "done"), tool("b", "unknown")),
        ],
        {"result_lost"},
    ),
    "text in a message": ([shown("It "), shown("was"), left(said("It was sent"))], set()),
    "text in a draft": ([shown("It "), shown("was"), left(drafts=("It was",))], set()),
    "text in the checkpoint": ([shown("It was"), left(checkpoint=(said("It was"),))], set()),
    "text in none": ([shown("It "), shown("was"), left(drafts=("It ",))], {"draft_lost"}),
    "text whose end is in none": ([shown("It was sent"), left(drafts=("It was",))], {"draft_lost"}),
    "two answers, each kept": (
        [
            shown("One."),
            (1, "page", "begins", {"session": "ann"}),
            shown("Two."),
            left(said("One."), said("Two.")),
        ],
        set(),
    ),
    "text of a session that is not stored": (
        [shown("It was", "bob"), left(user("q"))],
        {"draft_lost"},
    ),
    "results in another order": (
        [
            left(
                said("", ("a", "pay"), ("b", "pay")),
                tool("b", "done"),
                tool("a", "done"),
            )
        ],
        {"call_unanswered"},
    ),
    "a right order in which a text comes again": (
        [sends("ok"), sends("a2"), sends("ok"), left(user("ok"), user("a2"), user("ok"))],
        set(),
    ),
    "a command with a blank before it": ([sends(" /stop"), left()], set()),
    "two changes, one after the other": (
        [
            effect("note", notes=1),
            effect("note", notes=2),
            left(said("", ("a", "note"), ("b", "note")), tool("a", "done"), tool("b", "done")),
        ],
        set(),
    ),
    "two changes of the same": (
        [
            effect("note", notes=1),
            effect("note", notes=1),
            left(said("", ("a", "note"), ("b", "note")), tool("a", "done"), tool("b", "done")),
        ],
        {"lost_update"},
    ),
    "turns one after the other": (
        [turn("start"), turn("end"), turn("start"), turn("end")],
        set(),
    ),
    "turns of two sessions": ([turn("start"), turn("start", "bob")], set()),
    "two turns of one": ([turn("start"), turn("start")], {"session_overlap"}),
    "as many as the gate allows": (
        [(0, "dispatcher", "gate", {"limit": 2}), turn("start"), turn("start", "bob")],
        set(),
    ),
    "one more than that": (
        [(0, "dispatcher", "gate", {"limit": 1}), turn("start"), turn("start", "bob")],
        {"gate_exceeded"},
    ),
    "no gate": (
        [(0, "dispatcher", "gate", {"limit": 0}), turn("start"), turn("start", "bob")],
        set(),
    ),
    "messages in order": ([sends("a"), sends("b"), left(user("a"), user("b"))], set()),
    "a message that joined the open turn": (
        [sends("a"), sends("b"), left(checkpoint=(user("a"), user("b")))],
        set(),
    ),
    "a message that is gone": ([sends("a"), sends("b"), left(user("a"))], {"message_lost"}),
    "gone with the process": ([sends("a"), CRASH, left()], set()),
    "gone at a fault that is no crash": (
        [sends("a"), (0, "lab", "fault", {"fault": "cancel", "point": 3}), left()],
        {"message_lost"},
    ),
    "dropped, and told so": (
        [sends("a"), (1, "dispatcher", "dropped", {"session": "ann", "message": "a"}), left()],
        set(),
    ),
    "a command is no message": ([sends("/help"), left()], set()),
    "a message twice": ([sends("a"), left(user("a"), user("a"))], {"message_doubled"}),
    "the same words sent twice": (
        [sends("a"), sends("a"), left(user("a"), user("a"))],
        set(),
    ),
    "messages swapped": (
        [sends("a"), sends("b"), left(user("b"), user("a"))],
        {"message_reordered"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_judge_finds_this_and_nothing_else(name: str) -> None:
    events, found = CASES[name]
    assert names(trace(*events)) == found


def test_every_judge_has_a_case_and_the_lessons_show_those_that_naive_code_breaks() -> None:
    told = {judge.__name__ for judge in SESSION_JUDGES}
    assert told == set.union(*(found for _, found in CASES.values()))
    shown_in_lessons = set.union(*FLAWS.values()) - {"cancel_swallowed"}
    assert told - shown_in_lessons == {"call_unanswered", "gate_exceeded", "message_doubled"}


def test_messages_of_two_sessions_have_no_order_among_them() -> None:
    kept = {name: (("messages", (user(name),)), ("checkpoint", None)) for name in ("bob", "ann")}
    events = trace(sends("ann"), sends("bob", "bob"), (9, "lab", "left", kept))
    assert list(session_judges.message_reordered(events)) == []


def test_the_end_of_one_of_two_turns_leaves_the_other_one_running() -> None:
    events = trace(turn("start"), turn("start"), turn("end"), turn("start"))
    assert [found.event for found in session_judges.session_overlap(events)] == [1, 3]


def test_each_session_keeps_the_text_of_its_own_page() -> None:
    bob = (("messages", (said("It was"),)), ("checkpoint", None), ("running", ()), ("drafts", ()))
    ann = (("messages", (said("Hi"),)), ("checkpoint", None), ("running", ()), ("drafts", ()))
    left_behind = (9, "lab", "left", {"ann": ann, "bob": bob})
    events = trace(shown("Hi"), shown("It was", "bob"), left_behind)
    assert list(session_judges.draft_lost(events)) == []
