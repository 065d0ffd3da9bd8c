"""The assembled gateway: what becomes of a message, also of one whose turn never began."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.dispatch import Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.session import Session, begin_turn, finish_turn
from labkit.scenarios.scripts import load
from labkit.services.turns import Turns
from labkit.stores.session_files import SessionFiles, SessionNotSaved
from tests.services.processes import until

HELLO = Inbound("ann", "hello", "tcp")
ANSWER = "The refund was sent on Monday."


def turns(files: SessionFiles, said: list[str], *, stopped: bool = True) -> Turns:
    def answer(message: Inbound, text: str) -> None:
        said.append(f"{message.session}: {text}")

    return Turns(load("plain-answer"), files, answer, 1_000, lambda: stopped)


def kept(folder: Path) -> list[tuple[str, str]]:
    """The rows of the session, as another process would find them."""
    files = SessionFiles(folder)
    session = files.load("ann")
    files.close()
    return [(message.role, message.content) for message in session.messages]


def test_a_turn_answers_and_is_kept(tmp_path: Path) -> None:
    said: list[str] = []
    files = SessionFiles(tmp_path)
    asyncio.run(turns(files, said).handle(HELLO, Mailbox()))
    files.close()
    assert said == ["ann: The refund was sent on Monday."]
    assert kept(tmp_path) == [("user", "hello"), ("assistant", "The refund was sent on Monday.")]


@pytest.mark.parametrize(("stopped", "why"), [(True, "stopped"), (False, "shutdown")])
def test_a_message_whose_turn_never_began_is_kept_with_the_reason(
    stopped: bool, why: str, tmp_path: Path
) -> None:
    files = SessionFiles(tmp_path)
    asyncio.run(turns(files, [], stopped=stopped).unanswered(HELLO))
    files.close()
    assert kept(tmp_path) == [
        ("user", "hello"),
        ("note", f"This turn ended without an answer: {why}."),
    ]


def test_each_answer_of_a_turn_goes_at_once_to_all_who_have_written_in_it(tmp_path: Path) -> None:
    told: list[tuple[str, str, int]] = []
    files, mailbox = SessionFiles(tmp_path), Mailbox()

    def answer(message: Inbound, text: str) -> None:
        told.append((message.channel, text, len(mailbox)))

    mailbox.offer(Inbound("ann", "and mine?", "terminal"))
    served = Turns(load("plain-answer"), files, answer, 1_000, lambda: True)
    asyncio.run(served.handle(HELLO, mailbox))
    files.close()
    assert told == [("tcp", ANSWER, 1), ("tcp", ANSWER, 0), ("terminal", ANSWER, 0)]


def test_a_channel_that_fails_ends_no_turn_and_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    failed: list[tuple[str, dict[str, Any]]] = []
    files, mailbox = SessionFiles(tmp_path), Mailbox()

    def answer(message: Inbound, text: str) -> None:
        if message.channel == "tcp":
            raise BrokenPipeError("nobody reads")
        said.append(text)

    mailbox.offer(Inbound("ann", "and mine?", "terminal"))
    served = turns(files, [])

    async def work() -> None:
        served.say = Dispatcher(
            served.handle,
            answer=answer,
            observe=lambda kind, **details: failed.append((kind, details)),
        ).say
        await served.handle(HELLO, mailbox)

    asyncio.run(work())
    files.close()
    assert said == [ANSWER]
    about = {"session": "ann", "message": "hello", "error": "BrokenPipeError"}
    assert failed == [("not_told", about)] * 2


@pytest.mark.parametrize(
    ("text", "begins"),
    [("/help", "Commands: "), ("  /help me", "Commands: "), ("/new x", "There is no /new. Comm")],
)
def test_a_command_is_answered_in_one_line_and_never_reaches_the_model(
    text: str, begins: str, tmp_path: Path
) -> None:
    said: list[str] = []
    files = SessionFiles(tmp_path)
    served = turns(files, said)

    async def work() -> None:
        await served.handle(Inbound("ann", text, "tcp"), Mailbox())
        await served.unanswered(Inbound("ann", text, "tcp"))

    asyncio.run(work())
    files.close()
    (told,) = said
    assert told.startswith(f"ann: {begins}")
    assert "\n" not in told
    assert all(command in told for command in ("/stop (", "/stop all (", "/status", "/help"))
    assert kept(tmp_path) == []


class Slow(SessionFiles):
    """A disk that gives a session only when it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked, self.let_go = threading.Event(), threading.Event()

    def load(self, session_id: str) -> Session:
        self.asked.set()
        assert self.let_go.wait(10)
        return super().load(session_id)


def test_a_message_that_is_stopped_while_its_session_loads_is_kept(tmp_path: Path) -> None:
    files = Slow(tmp_path)

    async def work() -> None:
        handling: asyncio.Task[Any] = asyncio.create_task(turns(files, []).handle(HELLO, Mailbox()))
        await until(files.asked.is_set)
        handling.cancel()
        await asyncio.sleep(0)
        files.let_go.set()
        await asyncio.wait([handling])
        assert handling.cancelled()

    asyncio.run(work())
    files.close()
    assert kept(tmp_path)[0] == ("user", "hello")


class SlowToKeep(SessionFiles):
    """A disk that takes its time for a turn that is whole."""

    async def write(self, session: Session) -> int:
        if session.turn is None:
            asyncio.get_running_loop().call_soon(self.handling.cancel)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return await super().write(session)

    handling: asyncio.Task[Any]


def test_an_answer_that_a_stop_came_too_late_for_is_told(tmp_path: Path) -> None:
    said: list[str] = []
    files = SlowToKeep(tmp_path)

    async def work() -> None:
        files.handling = asyncio.create_task(turns(files, said).handle(HELLO, Mailbox()))
        await asyncio.wait([files.handling])
        assert files.handling.cancelled()

    asyncio.run(work())
    files.close()
    assert said == ["ann: The refund was sent on Monday."]
    assert kept(tmp_path)[-1] == ("assistant", "The refund was sent on Monday.")


def test_of_many_sessions_those_that_were_idle_longest_are_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labkit.services.turns.KEPT", 2)
    files = SessionFiles(tmp_path)

    async def program() -> None:
        served = turns(files, [])
        for name in ("ann", "bob", "cleo", "dan", "ann"):
            await served.handle(Inbound(name, "hello", "tcp"), Mailbox())

    asyncio.run(program())
    assert files.flush_all() == 2
    other = SessionFiles(tmp_path)
    assert other.load("bob").messages[0].content == "hello"
    other.close()
    files.close()
    assert len(kept(tmp_path)) == 4  # ann's first turn was read again


def test_a_session_that_cannot_be_put_away_stays_and_its_turn_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(SessionFiles):
        def put_away(self, session_id: str) -> None:
            raise SessionNotSaved("the disk is full")

    monkeypatch.setattr("labkit.services.turns.KEPT", 1)
    said: list[str] = []
    files = Full(tmp_path)

    async def program() -> None:
        served = turns(files, said)
        for name in ("ann", "bob", "cleo"):
            await served.handle(Inbound(name, "hello", "tcp"), Mailbox())

    asyncio.run(program())
    assert len(said) == 3
    assert files.flush_all() == 3
    files.close()


def test_a_session_whose_turn_runs_is_not_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()

    async def held(text: str, checkpoint: Checkpointer, services: Any, mailbox: Mailbox) -> str:
        if text == "wait":
            await go_on.wait()
        begun = begin_turn(checkpoint.session, text)
        await checkpoint.save(finish_turn(begun, "done"), "answer")
        return "done"

    monkeypatch.setattr("labkit.services.turns.KEPT", 1)
    monkeypatch.setattr("labkit.services.turns.run_turn", held)
    files = SessionFiles(tmp_path)

    async def program() -> None:
        served = turns(files, [])
        await served.handle(HELLO, Mailbox())
        waiting = asyncio.create_task(served.handle(Inbound("ann", "wait", "tcp"), Mailbox()))
        await asyncio.sleep(0)
        for name in ("bob", "cleo"):
            await served.handle(Inbound(name, "hello", "tcp"), Mailbox())
        go_on.set()
        await waiting

    asyncio.run(program())
    files.close()
    assert [content for _, content in kept(tmp_path)] == ["hello", "done", "wait", "done"]


def test_one_session_that_cannot_be_put_away_keeps_no_other_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(SessionFiles):
        def put_away(self, session_id: str) -> None:
            if session_id == "ann":
                raise SessionNotSaved("the disk is full")
            super().put_away(session_id)

    monkeypatch.setattr("labkit.services.turns.KEPT", 2)
    files = Stuck(tmp_path)

    async def program() -> None:
        served = turns(files, [])
        for name in ("ann", "bob", "cleo", "dan", "eve", "fay"):
            await served.handle(Inbound(name, "hello", "tcp"), Mailbox())

    asyncio.run(program())
    assert files.flush_all() == 4  # ann, the two that were idle last, and one in her place
    files.close()
