"""The minimal turn: what is saved when, and what an interruption leaves behind."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from labkit.recovery.turn import MOST_CALLS, Session, run_turn, stop
from labkit.simulation import Run

from .playing import FINISH, calls, play, refused, say, told

CALLS = {"finish": "tool_calls"}


def call(arguments: str, *, index: int = 0, name: str = "", call_id: str = "") -> dict[str, Any]:
    return {"call": {"index": index, "id": call_id, "name": name, "arguments": arguments}}


LOOK_UP = [call("{}", name="look_up", call_id="c1"), CALLS]
ANSWER = [say("It was "), say("sent."), FINISH]


async def look_up(name: str, arguments: str) -> str:
    return f"{name}({arguments})"


def turn(
    attempts: Sequence[Sequence[dict[str, Any]]],
    *,
    tool: Any = look_up,
    show: Callable[[str], object] | None = None,
) -> tuple[Session, Run]:
    """The session and the run of one turn; `show` is called with each text after the page."""
    sessions = []

    async def client(provider: Any, policy: Any, observe: Any) -> str:
        def shown(text: str) -> None:
            observe.of("page")("shown", text=text)
            if show is not None:
                show(text)

        session = Session(observe.of("session"))
        sessions.append(session)
        return await run_turn(
            "Where is it?",
            session,
            open_stream=provider.stream,
            tool=tool,
            show=shown,
            policy=policy,
            random=observe.random,
            observe=observe,
            now=observe.now,
        )

    run = play(attempts, client)
    return sessions[0], run


def test_an_answer_becomes_a_finished_turn() -> None:
    session, run = turn([ANSWER])
    assert run.result == "It was sent."
    assert session.turns == [("Where is it?", "It was sent.")]
    assert session.checkpoint == [("user", "Where is it?"), ("answer", "It was sent.")]
    assert session.drafts == []


def test_the_users_turn_is_saved_before_the_model_is_asked() -> None:
    _, run = turn([ANSWER])
    kinds = [event.kind for event in run.trace]
    assert kinds.index("checkpoint") < kinds.index("request")


def test_a_tools_result_is_saved_before_the_model_is_asked_again() -> None:
    session, run = turn([LOOK_UP, refused(400)])
    assert session.checkpoint == [("user", "Where is it?"), ("tool", "look_up({})")]
    assert (session.turns, session.drafts) == ([], [])
    assert told(run, "checkpoint", "step") == ["user", "tool"]


def test_the_pieces_of_a_call_are_joined_and_calls_side_by_side_are_kept_apart() -> None:
    session, _ = turn(
        [
            [
                call("", name="add", call_id="c1"),
                call("", index=1, name="mul", call_id="c2"),
                call('{"a":'),
                call('{"b":', index=1),
                call(" 1}"),
                call(" 2}", index=1),
                CALLS,
            ],
            ANSWER,
        ]
    )
    assert session.checkpoint[1:3] == [("tool", 'add({"a": 1})'), ("tool", 'mul({"b": 2})')]


def test_half_a_call_of_an_attempt_that_failed_is_dropped() -> None:
    whole = [call('{"code":"print(1)"}', name="run", call_id="c9"), CALLS]
    broken = [call('{"code":"pri', name="run", call_id="c1"), {"drop": True}]
    session, run = turn([broken, whole, ANSWER])
    assert session.checkpoint[1] == ("tool", 'run({"code":"print(1)"})')
    assert (calls(run), session.turns) == (3, [("Where is it?", "It was sent.")])


def test_text_before_a_tool_call_is_saved_and_is_no_part_of_the_answer() -> None:
    session, run = turn([[say("Let me look. "), *LOOK_UP], ANSWER])
    assert [kind for kind, _ in session.checkpoint] == ["user", "said", "tool", "answer"]
    assert (session.drafts, run.result) == ([], "It was sent.")


def test_an_error_after_text_leaves_a_draft_and_no_answer() -> None:
    session, run = turn([[say("It was "), {"error": {"code": "server_error"}}], ANSWER])
    assert session.drafts == [("It was ", "server")]
    assert (session.turns, calls(run)) == ([], 1)
    assert [kind for kind, _ in session.checkpoint] == ["user"]
    assert type(run.error).__name__ == "ProviderError"


def test_an_error_before_text_leaves_no_draft() -> None:
    session, _ = turn([refused(400)])
    assert session.drafts == []


def test_an_answer_that_ran_into_its_limit_is_a_draft_and_no_answer() -> None:
    session, run = turn([[say("It was "), {"finish": "length"}], ANSWER])
    assert (session.drafts, session.turns) == ([("It was ", "cut_off")], [])
    assert calls(run) == 1


def test_a_call_that_ran_into_the_limit_is_not_made() -> None:
    half = [
        call('{"path":"a.py","content":"import', name="write", call_id="c1"),
        {"finish": "length"},
    ]
    session, _ = turn([half, ANSWER])
    assert [kind for kind, _ in session.checkpoint] == ["user"]


def test_an_error_of_the_page_leaves_as_it_is_and_what_was_shown_is_a_draft() -> None:
    def breaks(text: str) -> None:
        raise OSError("the page is gone")

    session, run = turn([ANSWER], show=breaks)
    assert repr(run.error) == "OSError('the page is gone')"
    assert session.drafts == [("It was ", "failed")]
    assert told(run, "left", "how") == ["closed"]


def test_an_error_of_the_tool_leaves_and_what_was_done_before_is_kept() -> None:
    async def breaks(name: str, arguments: str) -> str:
        raise LookupError("no such order")

    session, run = turn([[say("Let me look. "), *LOOK_UP], ANSWER], tool=breaks)
    assert repr(run.error) == "LookupError('no such order')"
    assert session.checkpoint == [("user", "Where is it?"), ("said", "Let me look. ")]


def test_a_model_that_only_calls_tools_is_ended_and_every_result_is_kept() -> None:
    session, run = turn([LOOK_UP])
    assert type(run.error).__name__ == "TooManyCalls"
    assert (calls(run), len(session.checkpoint)) == (MOST_CALLS, MOST_CALLS + 1)


@pytest.mark.parametrize("obeys", [True, False])
def test_stop_waits_for_the_clean_up_and_says_whether_the_task_obeyed(
    obeys: bool,
) -> None:
    async def work(observe: Any) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            observe("cleaned")
            if obeys:
                raise

    async def client(provider: Any, policy: Any, observe: Any) -> bool:
        task = asyncio.create_task(work(observe), name="work")
        await asyncio.sleep(1)
        return await stop(task)

    run = play([ANSWER], client)
    assert (run.result, run.time) == (obeys, 2)
    assert any(event.kind == "cleaned" for event in run.trace)


def test_stop_of_a_finished_task_is_harmless() -> None:
    async def client(provider: Any, policy: Any, observe: Any) -> bool:
        task = asyncio.create_task(asyncio.sleep(0), name="work")
        await task
        return await stop(task)

    assert play([ANSWER], client).result is False
