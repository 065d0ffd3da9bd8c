"""The turn: what is saved when, and what an interruption at any step leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.recovery.checkpoint import MemorySessions
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.session import (
    ASSISTANT,
    DONE,
    NOT_STARTED,
    NOTE,
    TOOL,
    UNKNOWN,
    USER,
    Draft,
    Message,
    Session,
    StaleSession,
    begin_turn,
    close_turn,
)
from labkit.recovery.stream.record import ToolCall
from labkit.recovery.tools import Tool, ToolRegistry
from labkit.recovery.turn import MOST_CALLS, PATIENT

from .turns import QUESTION, REFERENCE, World, asks, broken, call, play_turn, say

ANSWER = [say("It was "), say("sent.")]
LOOK_UP = [call("c1")]


def roles(session: Session) -> list[str]:
    return [row.role for row in session.messages]


# --- a turn that nothing interrupts


def test_an_answer_becomes_a_question_and_an_answer_in_the_history() -> None:
    world = play_turn([ANSWER])
    assert world.answer == "It was sent."
    assert world.session.messages == (
        Message(USER, QUESTION),
        Message(ASSISTANT, "It was sent."),
    )
    assert (world.session.drafts, broken(world)) == ((), [])


def test_the_reference_turn_keeps_every_promise() -> None:
    world = play_turn(REFERENCE)
    assert broken(world) == []
    assert world.ran == ["a", "b", "c"]
    assert world.statuses() == {"a": DONE, "b": DONE, "c": DONE}
    assert world.answer == "It is sent."


def test_the_users_message_is_saved_before_the_model_is_asked() -> None:
    world = play_turn([ANSWER])
    kinds = [told.get("step", kind) for kind, told in world.told]
    assert kinds.index("user") < kinds.index("attempt")


def test_text_is_in_the_store_before_it_is_shown() -> None:
    stored: list[str] = []

    def show(text: str) -> None:
        kept = store.kept["ann"].turn
        stored.append(kept.draft if kept else "")

    store = MemorySessions(delay=0.05)
    play_turn([ANSWER], store=store, show=show)
    assert stored == ["It was ", "It was sent."]


def test_a_call_is_marked_before_it_begins_and_its_result_saved_before_the_next_one() -> None:
    seen: list[tuple[str, tuple[str, ...], list[str]]] = []
    store = MemorySessions(delay=0.05)

    def tools(world: World) -> ToolRegistry:
        async def run(arguments: Mapping[str, Any], key: str) -> str:
            kept = store.kept["ann"].turn
            assert kept is not None
            ended = [step.call_id for step in kept.steps if step.role == TOOL]
            seen.append((str(arguments["n"]), kept.running, ended))
            return "ok"

        return ToolRegistry(Tool(name="read", run=run))

    calls = [call("a", arguments='{"n": 1}'), call("b", arguments='{"n": 2}', index=1)]
    play_turn([calls, ANSWER], store=store, tools=tools)
    assert seen == [("1", ("a",), []), ("2", ("b",), ["a"])]


def test_each_finished_step_is_told_once_it_is_saved() -> None:
    world = play_turn(REFERENCE)
    calls = ["running", "running", "tool", "tool", "running", "tool"]
    assert world.steps_told() == ["user", "said", *calls, "answer"]


def test_the_pieces_of_a_call_are_joined_and_calls_side_by_side_are_kept_apart() -> None:
    pieces = [
        Delta("tool_call", "", index=0, call_id="a", name="read"),
        Delta("tool_call", "", index=1, call_id="b", name="write"),
        Delta("tool_call", '{"x":', index=0),
        Delta("tool_call", '{"y":', index=1),
        Delta("tool_call", " 1}", index=0),
        Delta("tool_call", " 2}", index=1),
    ]
    world = play_turn([pieces, ANSWER])
    made = [(call.name, call.arguments) for row in world.session.messages for call in row.calls]
    assert made == [("read", '{"x": 1}'), ("write", '{"y": 2}')]


def test_pieces_without_an_index_belong_to_the_call_whose_id_came_last() -> None:
    pieces = [
        Delta("tool_call", '{"x":', call_id="a", name="read"),
        Delta("tool_call", " 1}"),
        Delta("tool_call", '{"y":', call_id="b", name="write"),
        Delta("tool_call", " 2}"),
    ]
    world = play_turn([pieces, ANSWER])
    made = [(call.call_id, call.arguments) for row in world.session.messages for call in row.calls]
    assert made == [("a", '{"x": 1}'), ("b", '{"y": 2}')]


def test_half_a_call_of_an_attempt_that_failed_is_dropped() -> None:
    half = [call("c1", arguments='{"code":'), ProviderError("reset", kind="disconnect")]
    world = play_turn([half, [call("c9", arguments='{"x": 1}')], ANSWER])
    calls = [made.arguments for row in world.session.messages for made in row.calls]
    assert calls == ['{"x": 1}']
    assert broken(world) == []


def test_text_before_a_call_is_a_message_and_no_part_of_the_answer() -> None:
    world = play_turn([[say("Let me look. "), *LOOK_UP], ANSWER])
    assert roles(world.session) == [USER, ASSISTANT, TOOL, ASSISTANT]
    assert (world.session.drafts, world.answer) == ((), "It was sent.")


# --- a turn that an error ends


def test_an_error_after_text_leaves_a_draft_and_no_answer() -> None:
    world = play_turn([[say("It was "), ProviderError("failed", kind="server")], ANSWER])
    assert world.session.drafts == (Draft("It was ", "server"),)
    assert roles(world.session) == [USER, NOTE]
    assert isinstance(world.error, ProviderError)
    assert broken(world) == []


def test_an_error_before_text_leaves_no_draft_and_a_note_that_says_why() -> None:
    world = play_turn([[ProviderError("no", kind="bad_request")]])
    assert world.session.drafts == ()
    assert world.session.messages[-1] == Message(
        NOTE, "This turn ended without an answer: bad_request."
    )


def test_an_answer_that_ran_into_its_limit_is_a_draft_and_no_answer() -> None:
    world = play_turn([[say("It was "), Delta("finish", reason="length")], ANSWER])
    assert world.session.drafts == (Draft("It was ", "cut_off"),)
    assert roles(world.session) == [USER, NOTE]


def test_a_call_that_ran_into_the_limit_is_not_made() -> None:
    world = play_turn([[call("c1", arguments='{"a": '), Delta("finish", reason="length")], ANSWER])
    assert world.ran == []
    assert roles(world.session) == [USER, NOTE]


def test_an_error_of_the_page_leaves_as_it_is_and_what_was_to_be_shown_is_a_draft() -> None:
    def breaks(text: str) -> None:
        raise OSError("the page is gone")

    world = play_turn([ANSWER], show=breaks)
    assert repr(world.error) == "OSError('the page is gone')"
    assert world.session.drafts == (Draft("It was ", "failed"),)
    world = play_turn([[ANSWER[0], 5.0]], show=breaks)
    assert broken(world) == []


def test_a_stream_is_closed_before_an_error_of_the_page_leaves() -> None:
    order: list[str] = []

    async def ask(history: Sequence[Message], attempt: int) -> AsyncGenerator[Delta, None]:
        try:
            yield say("It was ")
            await asyncio.sleep(5)
        finally:
            order.append("closed")

    def breaks(text: str) -> None:
        raise OSError("the page is gone")

    class Noting(MemorySessions):
        async def write(self, session: Session) -> int:
            order.append("open" if session.turn else "ended")
            return await super().write(session)

    play_turn([], ask=ask, show=breaks, store=Noting())
    assert order == ["open", "open", "closed", "ended"]


def test_a_model_that_only_calls_tools_is_ended_and_every_result_is_kept() -> None:
    world = play_turn([LOOK_UP])
    assert type(world.error).__name__ == "TooManyCalls"
    assert len(world.ran) == MOST_CALLS
    assert roles(world.session) == [USER, *[ASSISTANT, TOOL] * MOST_CALLS, NOTE]
    assert broken(world) == []


# --- a cancel at every step


def cancelled(strikes: Collection[int], **options: Any) -> World:
    world = play_turn(REFERENCE, strikes=strikes, **options)
    assert world.struck == len(strikes), strikes
    assert isinstance(world.error, asyncio.CancelledError), (strikes, world.error)
    assert broken(world) == [], strikes
    return world


def test_a_cancel_at_any_step_keeps_what_happened_marks_the_rest_and_leaves() -> None:
    steps = play_turn(REFERENCE).steps
    ended: dict[str, set[str]] = {name: set() for name in "abc"}
    outcomes = set()
    for step in range(steps):
        world = cancelled([step])
        outcomes.add(roles(world.session)[-1])
        for name, status in world.statuses().items():
            ended[name].add(status)
    assert steps > 80
    assert ended["a"] == {NOT_STARTED, UNKNOWN, DONE}
    assert ended["b"] == {NOT_STARTED, UNKNOWN, DONE}
    assert ended["c"] == {NOT_STARTED, UNKNOWN, DONE}
    assert outcomes == {NOTE, ASSISTANT}


def test_a_second_cancel_at_any_later_step_changes_nothing_of_that() -> None:
    steps, pairs = play_turn(REFERENCE).steps, 0
    for first in range(steps):
        for second in range(first + 1, cancelled([first]).steps):
            cancelled([first, second])
            pairs += 1
    assert pairs > 1_000


def gives_up(world: World) -> ToolRegistry:
    """A tool that hangs until its limit."""

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        await asyncio.Event().wait()
        return ""

    return ToolRegistry(Tool(name="read", run=run, limit=0.2, concurrent=True))


OTHERS: Mapping[str, tuple[Sequence[Sequence[Any]], Mapping[str, Any]]] = {
    "a tool that is given up": ([[call("a"), call("b", index=1)], ANSWER], {"tools": gives_up}),
    "a refusal and a wait": ([[ProviderError("busy", status=503)], ANSWER], {}),
    "a stall": ([[10.0], ANSWER], {}),
    "an error after text": ([[say("It "), 0.1, ProviderError("failed", kind="server")]], {}),
    "no such tool": ([[call("a", "nothing"), call("b", index=1)], ANSWER], {}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_cancel_at_any_step_of_another_turn_leaves_and_nothing_is_lost(what: str) -> None:
    answers, options = OTHERS[what]
    steps = play_turn(answers, **options).steps
    for step in range(steps):
        world = play_turn(answers, strikes=[step], **options)
        assert isinstance(world.error, asyncio.CancelledError), step
        assert broken(world) == [], step
    assert steps > 10


PIECES = st.one_of(
    st.sampled_from([say("one "), say("two "), 0.1, 0.3]),
    st.builds(call, st.sampled_from(["", "a", "b"]), st.sampled_from(["read", "write", "none"]),
              index=st.integers(0, 3)),
)  # fmt: skip


@settings(max_examples=200)
@given(
    st.lists(st.lists(PIECES, max_size=4), max_size=3),
    st.sampled_from([0.0, 0.05]),
    st.lists(st.integers(0, 150), max_size=2),
)
def test_whatever_is_asked_and_wherever_it_is_cancelled_every_promise_is_kept(
    answers: list[list[Any]], delay: float, strikes: list[int]
) -> None:
    world = play_turn([*answers, ANSWER], strikes=strikes, store=MemorySessions(delay))
    told = broken(world)
    assert [one for one in told if "never ran" not in one] == []  # an id may have been made up
    assert isinstance(world.error, asyncio.CancelledError) or not world.struck


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.01, 0.5])
def test_nor_does_a_third_one_whatever_time_the_store_takes(delay: float) -> None:
    steps = play_turn(REFERENCE, store=MemorySessions(delay)).steps
    for first in range(0, steps, 3):
        two = cancelled([first], store=MemorySessions(delay)).steps
        for second in range(first + 1, two):
            three = cancelled([first, second], store=MemorySessions(delay)).steps
            for third in range(second + 1, three, 2):
                cancelled([first, second, third], store=MemorySessions(delay))


def test_a_cancel_that_comes_while_the_answer_is_saved_finds_a_whole_turn() -> None:
    steps = play_turn(REFERENCE).steps
    ends = [roles(cancelled([step]).session)[-1] for step in range(steps)]
    saving = [step for step in range(steps) if ends[step] == ASSISTANT]
    assert saving  # it has one outcome: `broken` holds a draft or note beside an answer for a fault
    assert saving == list(range(saving[0], steps))  # and the line between them is crossed once


def test_a_cancel_ends_the_tools_that_run_and_waits_for_their_clean_up() -> None:
    ends: list[str] = []

    def tools(world: World) -> ToolRegistry:
        async def run(arguments: Mapping[str, Any], key: str) -> str:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(arguments["clean"])
                ends.append(arguments["name"])
            return ""

        return ToolRegistry(Tool(name="read", run=run, concurrent=True))

    calls = [
        call("a", arguments='{"name": "a", "clean": 0.1}'),
        call("b", index=1, arguments='{"name": "b", "clean": 3}'),
    ]

    async def stops(world: World, task: asyncio.Task[Any]) -> None:
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert asyncio.get_running_loop().time() < 5  # the longer clean-up, and no more

    world = play_turn([calls], tools=tools, meanwhile=stops)
    assert ends == ["a", "b"]
    assert broken(world) == []


def stubborn(limit: float) -> Callable[[World], ToolRegistry]:
    """One tool that takes 100 s and heeds no cancel."""

    async def run(arguments: Mapping[str, Any], key: str) -> str:
        until = asyncio.get_running_loop().time() + 100
        while (left := until - asyncio.get_running_loop().time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        return "much too late"

    return lambda world: ToolRegistry(Tool(name="read", run=run, limit=limit))


def test_a_tool_that_does_not_end_when_it_is_cancelled_holds_the_turn_for_a_bounded_time() -> None:
    ended: list[float] = []

    async def stops(world: World, task: asyncio.Task[Any]) -> None:
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        ended.append(asyncio.get_running_loop().time())
        await asyncio.sleep(200)

    world = play_turn([LOOK_UP], tools=stubborn(1000), meanwhile=stops)
    assert ended[0] < 10
    assert world.statuses() == {"c1": UNKNOWN}
    assert world.unhandled == []
    assert world.stored == world.session


def test_a_tool_that_does_not_end_at_its_limit_holds_the_turn_for_a_bounded_time() -> None:
    async def waits(world: World, task: asyncio.Task[Any]) -> None:
        await asyncio.wait([task])
        assert asyncio.get_running_loop().time() < 20
        await asyncio.sleep(200)

    world = play_turn([LOOK_UP, ANSWER], tools=stubborn(1), meanwhile=waits)
    assert world.error is None
    assert world.statuses() == {"c1": UNKNOWN}
    assert world.unhandled == []
    assert world.stored == world.session


def test_why_a_turn_was_cancelled_is_what_its_services_say() -> None:
    for stopped, reason in ((True, "stopped"), (False, "shutdown")):
        world = play_turn(REFERENCE, strikes=[10], stopped=lambda stopped=stopped: stopped)
        assert reason in world.session.messages[-1].content


# --- a store that fails


class Failing(MemorySessions):
    """Takes a while over each write; those that `fails(number)` names are refused."""

    def __init__(self, fails: Any, error: type[Exception] = OSError) -> None:
        super().__init__(delay=0.05)
        self._fails, self._error, self.writes = fails, error, 0

    async def write(self, session: Session) -> int:
        self.writes += 1
        if self._fails(self.writes):
            await asyncio.sleep(0.02)
            raise self._error("the disk is full")
        return await super().write(session)


WRITES = 12


def test_a_write_that_is_refused_ends_the_turn_and_the_next_one_brings_all() -> None:
    for number in range(1, WRITES):  # but the answer's, see below
        world = play_turn(REFERENCE, store=Failing(lambda n, number=number: n == number))
        assert repr(world.error) == "OSError('the disk is full')", number
        assert broken(world) == [], number
    assert play_turn(REFERENCE, store=Failing(lambda n: n > WRITES)).answer == "It is sent."


@pytest.mark.parametrize("error", [OSError, StaleSession])
def test_a_store_that_refuses_everything_does_not_hide_its_error_and_memory_is_whole(
    error: type[Exception],
) -> None:
    for number in range(1, WRITES + 1):
        world = play_turn(REFERENCE, store=Failing(lambda n, number=number: n >= number, error))
        assert type(world.error) is error, number
        told = broken(world)
        assert all(one.startswith("stored") for one in told), (number, told)
        if number < WRITES:
            notes = getattr(world.error, "__notes__", [])
            assert notes == ["and the session was not saved: the disk is full"], number


def test_an_answer_whose_write_was_refused_is_a_draft_after_a_crash() -> None:
    world = play_turn(REFERENCE, store=Failing(lambda n: n == WRITES))
    assert world.stored is not None
    after = close_turn(world.stored, "crash")
    assert after.drafts == (Draft("It is sent.", "crash"),)
    assert world.session.messages[-1] == Message(ASSISTANT, "It is sent.")


def test_a_cancel_beside_a_refused_write_leaves_as_a_cancel() -> None:
    steps = play_turn(REFERENCE, store=Failing(lambda n: n >= 5)).steps
    for step in range(steps):
        world = play_turn(REFERENCE, strikes=[step], store=Failing(lambda n: n >= 5))
        assert isinstance(world.error, asyncio.CancelledError), step
        assert all(one.startswith("stored") for one in broken(world)), step


# --- the next turn, and what joins this one


def test_a_turn_that_a_crash_left_open_is_closed_before_the_next_one() -> None:
    left = begin_turn(Session("ann", version=0), "And the other one?")
    world = play_turn([ANSWER], session=left)
    assert roles(world.session) == [USER, NOTE, USER, ASSISTANT]
    assert "crash" in world.session.messages[1].content


def letters(*texts: str, room: int = 20) -> Mailbox:
    mailbox = Mailbox(room)
    for text in texts:
        assert mailbox.offer(Inbound("ann", text))
    return mailbox


def test_what_is_written_meanwhile_joins_the_turn_after_the_tools() -> None:
    world = play_turn([LOOK_UP, ANSWER], mailbox=letters("and mine?", "quick"))
    assert roles(world.session) == [USER, ASSISTANT, TOOL, USER, USER, ASSISTANT]
    assert [row.content for row in world.session.messages[3:5]] == ["and mine?", "quick"]


def test_an_answer_is_not_the_last_word_while_a_letter_is_unread() -> None:
    world = play_turn([ANSWER, [say("Yours too.")]], mailbox=letters("and mine?"))
    said = [row.content for row in world.session.messages]
    assert said == [QUESTION, "It was sent.", "and mine?", "Yours too."]
    assert world.answer == "Yours too."


def test_nothing_gets_in_once_the_turn_has_its_answer() -> None:
    mailbox, taken = Mailbox(), []

    class WritesLate(MemorySessions):
        async def write(self, session: Session) -> int:
            if session.turn is None:  # the answer, or a note
                taken.append(mailbox.offer(Inbound("ann", "late")))
            return await super().write(session)

    world = play_turn([ANSWER], mailbox=mailbox, store=WritesLate())
    assert (taken, len(mailbox)) == ([False], 0)
    assert broken(world) == []


def test_a_turn_ends_though_its_user_never_stops_writing() -> None:
    async def writes(world: World, task: asyncio.Task[Any]) -> None:
        number = 0
        while not task.done():
            number += world.mailbox.offer(Inbound("ann", f"and {number}?"))
            await asyncio.sleep(0.01)

    world = play_turn([[*ANSWER, 0.1]], mailbox=Mailbox(room=2), meanwhile=writes)
    assert roles(world.session).count(ASSISTANT) == PATIENT + 1
    assert broken(world) == []


def test_a_letter_that_was_taken_is_in_the_history_wherever_a_cancel_strikes() -> None:
    steps = play_turn([LOOK_UP, ANSWER], mailbox=letters("and mine?")).steps
    for step in range(steps):
        world = play_turn([LOOK_UP, ANSWER], mailbox=letters("and mine?"), strikes=[step])
        joined = [row.content for row in world.session.messages].count("and mine?")
        assert joined + len(world.mailbox) == 1, step
        assert broken(world) == [], step


# --- what is said


def texts(world: World) -> list[str]:
    return [row.content for row in world.session.messages if row.role == ASSISTANT and row.content]


def test_every_text_of_the_model_that_is_kept_is_said_wherever_a_cancel_strikes() -> None:
    steps, counts = play_turn(REFERENCE, mailbox=letters("and mine?")).steps, set()
    for step in range(steps):
        world = play_turn(REFERENCE, mailbox=letters("and mine?"), strikes=[step])
        assert world.said == texts(world), step
        counts.add(len(world.said))
    assert counts == {0, 1, 2}


def test_a_call_without_a_text_says_nothing() -> None:
    assert play_turn([LOOK_UP, ANSWER]).said == ["It was sent."]


def test_a_text_whose_write_was_refused_is_not_said() -> None:
    world = play_turn(REFERENCE, store=Failing(lambda n: n == WRITES))
    assert (world.said, texts(world)) == (["Let me look. "], ["Let me look. ", "It is sent."])


# --- bad input of a model


def ids(world: World) -> list[str]:
    return [made.call_id for row in world.session.messages for made in row.calls]


@pytest.mark.parametrize("given", [["", "", ""], ["x", "x", "x"], ["", "call", "call-2"]])
def test_calls_without_an_id_of_their_own_are_each_answered(given: Sequence[str]) -> None:
    calls = [call(name, index=number) for number, name in enumerate(given)]
    world = play_turn([calls, calls, ANSWER])
    assert len(set(ids(world))) == 6
    assert list(world.statuses().values()) == [DONE] * 6
    assert broken(world) == []


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("nothing", "{}", "no such tool"),
        ("read", "[1]", "not one complete JSON object"),
        ("read", '{"a": ', "not one complete JSON object"),
        ("read", "", "not one complete JSON object"),
        ("read", "null", "not one complete JSON object"),
        ("read", '{"a": NaN}', "not one complete JSON object"),
        ("read", "[" * 100_000, "not one complete JSON object"),
    ],
)
def test_a_call_that_cannot_run_is_a_result_and_the_turn_goes_on(
    name: str, arguments: str, reason: str
) -> None:
    world = play_turn([[call("c1", name, arguments)], ANSWER])
    (result,) = [row for row in world.session.messages if row.role == TOOL]
    assert result.status == "refused"
    assert reason in result.content
    assert (world.ran, world.answer) == ([], "It was sent.")


def test_an_empty_answer_is_an_answer() -> None:
    world = play_turn([[]])
    assert (world.answer, roles(world.session)) == ("", [USER, ASSISTANT])


def test_the_model_is_asked_with_the_steps_of_the_turn_so_far() -> None:
    asked: list[list[str]] = []
    script = asks(LOOK_UP, ANSWER)

    def listening(history: Sequence[Message], attempt: int) -> AsyncGenerator[Delta, None]:
        asked.append([row.role for row in history])
        return script(history, attempt)

    play_turn([], ask=listening)
    assert asked == [[USER], [USER, ASSISTANT, TOOL]]


def test_the_id_and_the_name_of_a_call_may_come_after_its_first_piece() -> None:
    pieces = [
        Delta("tool_call", '{"x":', index=0),
        Delta("tool_call", "", index=0, call_id="a", name="read"),
        Delta("tool_call", " 1}", index=0),
    ]
    world = play_turn([pieces, ANSWER])
    made = [call for row in world.session.messages for call in row.calls]
    assert made == [ToolCall("a", "read", '{"x": 1}')]


def test_a_turn_asks_its_model_eight_times_at_most() -> None:
    world = play_turn([LOOK_UP])
    assert [kind for kind, _ in world.told].count("attempt") == 8


def test_a_date_until_which_to_wait_is_read_by_the_turns_own_clock() -> None:
    date = {"retry-after": "Thu, 01 Jan 1970 00:00:07 GMT"}  # this clock says 1970
    world = play_turn([[ProviderError("busy", status=429, headers=date)], ANSWER])
    assert [told["seconds"] for kind, told in world.told if kind == "wait"] == [7]


def test_a_message_joins_the_turn_with_each_space_that_its_user_wrote() -> None:
    text = "  def f():\n      return 1\n"
    world = play_turn([LOOK_UP, ANSWER], mailbox=letters(text))
    assert text in [row.content for row in world.session.messages]
