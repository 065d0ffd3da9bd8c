"""The dispatcher: order within a session, a few at a time in all, and every message once."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.recovery.dispatch import (
    LIMIT,
    LIMIT_VARIABLE,
    Concurrency,
    Dispatcher,
    limit_from_environment,
)
from labkit.recovery.errors import PolicyError, RecoveryError
from labkit.recovery.mailbox import Inbound, Mailbox
from tests.simulation.kit import virtually

from .dispatching import Arrival, Desk, Handled, broken, close, dispatch

WORDS = ("m", "/stop", "/stop all", "/new", "/status")
BUSY = [
    Arrival(0, "A", "a0"),
    Arrival(0, "A", "a1"),
    Arrival(0, "B", "b0"),
    Arrival(0, "A", "a2"),
    Arrival(0.5, "A", "/new"),
    Arrival(0.5, "A", "a3"),
    Arrival(0.5, "C", "c0 fails"),
    Arrival(1.05, "B", "/stop 1"),
    Arrival(1.5, "A", "/stop all"),
    Arrival(1.5, "A", "a4"),
    Arrival(1.6, "B", "b1"),
    Arrival(1.7, "A", "/status"),
    Arrival(1.8, "C", "/stop 2"),
    Arrival(1.9, "C", "c1"),
    Arrival(2.4, "C", "c2"),
]


def went(desk: Desk, session: str = "A") -> list[tuple[str, str]]:
    return [(one.text, one.how) for one in desk.ledger if one.session == session]


def arrivals(*texts: str, at: float = 0, session: str = "A") -> list[Arrival]:
    return [Arrival(at, session, text) for text in texts]


# --- whatever arrives


def named(number: int, word: str) -> str:
    """A text of its own for each: what follows a command is no part of it."""
    return f"/stop all{' ' * number}" if word == "/stop all" else f"{word} {number}"


def few() -> Iterator[list[Arrival]]:
    """Two messages, then every choice of three more, at every choice of moments."""
    kinds = [(session, word) for session in "AB" for word in WORDS[:4]]
    moments = ((0, 0, 0), (0.5, 0, 0), (0.5, 0.6, 0), (1.05, 0, 1.2))
    for chosen, waits in itertools.product(itertools.product(kinds, repeat=3), moments):
        times = itertools.accumulate(waits)
        rest = enumerate(zip(times, chosen, strict=True))
        yield [
            *arrivals("first", "second"),
            *(Arrival(at, who, named(number, word)) for number, (at, (who, word)) in rest),
        ]


def test_every_message_of_any_few_is_handled_once_and_in_order() -> None:
    count = 0
    for some in few():
        desk = dispatch(some, limit=1, room=1)
        assert broken(desk) == [], some
        count += 1
    assert count > 2_000


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 0.1, 0.5, 1.0, 1.15]), st.sampled_from("ABC"),
                  st.sampled_from(WORDS)),
        max_size=12,
    ),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from([1, 2, 20]),
)  # fmt: skip
def test_every_message_of_any_many_is_handled_once_and_in_order(
    drawn: list[tuple[float, str, str]], limit: int, room: int
) -> None:
    times = itertools.accumulate(wait for wait, _, _ in drawn)
    some = [
        Arrival(at, who, named(number, word))
        for number, (at, (_, who, word)) in enumerate(zip(times, drawn, strict=True))
    ]
    assert broken(dispatch(some, limit=limit, room=room)) == []


async def close_alone(desk: Desk) -> None:
    """Close it while messages are still taken in."""
    await desk.close()


@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("act", [close, close_alone])
def test_a_close_at_any_step_loses_nothing(limit: int, act: Callable[[Desk], Any]) -> None:
    closed, hows = 0, set()
    for step in range(dispatch(BUSY, limit=limit, room=1).steps):
        desk = dispatch(BUSY, limit=limit, room=1, at_step=step, act=act)
        assert broken(desk) == [], step
        closed += desk.closed is not None  # at the last steps there was nothing left to do
        hows.update(one.how for one in desk.ledger)
    assert closed > 80
    assert hows >= {"turn", "dropped", "unanswered"}


@pytest.mark.parametrize("limit", [0, 1])
@pytest.mark.parametrize("session", ["A", "B"])
def test_a_stop_at_any_step_loses_nothing(limit: int, session: str) -> None:
    async def stop(desk: Desk) -> None:
        await desk.dispatcher.stop(session)

    for step in range(dispatch(BUSY, limit=limit, room=1).steps):
        desk = dispatch(BUSY, limit=limit, room=1, at_step=step, act=stop)
        assert broken(desk) == [], step


# --- ways


def ways(desk: Desk) -> list[tuple[str, str]]:
    return [(told["message"], told["way"]) for kind, told in desk.events if kind == "routed"]


def test_which_way_a_message_went_is_told() -> None:
    some = arrivals("m1") + arrivals("m2", "m3", "/status", at=0.5) + arrivals("/new", at=0.6)
    desk = dispatch(some, room=1)
    assert ways(desk) == [
        ("m1", "turn"),
        ("m2", "mailbox"),
        ("m3", "line"),
        ("/status", "at once"),
        ("/new", "line"),
    ]
    assert went(desk) == [("m1", "turn"), ("m2", "injected"), ("m3", "turn"), ("/new", "turn")]


def test_what_is_left_in_the_mailbox_comes_before_what_waits_in_line() -> None:
    some = arrivals("m1") + arrivals("m2", at=0.5) + arrivals("m3", "m4", at=1.5)
    desk = dispatch(some + arrivals("m5", "/new", at=1.6), room=2)
    assert [text for text, _ in went(desk)] == ["m1", "m2", "m3", "m4", "m5", "/new"]
    assert ways(desk)[2:6] == [
        ("m3", "mailbox"),
        ("m4", "mailbox"),
        ("m5", "line"),
        ("/new", "line"),
    ]
    assert ways(desk)[6:8] == [("m3", "leftover"), ("m4", "leftover")]


def test_a_leftover_starts_a_turn_of_its_own() -> None:
    desk = dispatch(arrivals("m1") + arrivals("m2", at=0.5) + arrivals("m3", at=1.5))
    assert went(desk) == [("m1", "turn"), ("m2", "injected"), ("m3", "turn")]
    assert ways(desk)[-1] == ("m3", "leftover")


def test_a_message_never_overtakes_a_command_that_waits() -> None:
    desk = dispatch(arrivals("m1") + arrivals("/new", "m2", at=0.5))
    assert went(desk) == [("m1", "turn"), ("/new", "turn"), ("m2", "turn")]


def test_a_turn_that_fails_is_told_to_its_user_and_the_next_one_runs() -> None:
    desk = dispatch(arrivals("it fails", "/new"))
    assert desk.answers == [("it fails", "That went wrong (LookupError). Please try again.")]
    assert went(desk) == [("it fails", "turn"), ("/new", "turn")]
    ends = [told["outcome"] for kind, told in desk.events if kind == "turn_end"]
    assert ends == ["failed", "done"]


def test_what_made_a_turn_fail_is_told_whole_and_all_who_wrote_in_it_get_a_short_line() -> None:
    failed: list[tuple[str, str, str]] = []
    answers: list[tuple[str, str]] = []

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        dispatcher.take(Inbound("A", "and mine?", "terminal"))
        mailbox.take()
        raise OSError("the disk is full")

    dispatcher = Dispatcher(
        handle,
        answer=lambda message, text: answers.append((message.channel, text)),
        observe=lambda kind, error="", told="", **_: failed.append((kind, error, told)),
    )

    async def work() -> None:
        dispatcher.take(Inbound("A", "hello", "tcp"))
        await dispatcher.idle()

    virtually(work())
    short = "That went wrong (OSError). Please try again."
    assert ("turn_failed", "OSError", "the disk is full") in failed
    assert answers == [("tcp", short), ("terminal", short)]


def test_an_empty_message_is_a_message() -> None:
    desk = Desk([])

    async def work() -> None:
        desk.dispatcher.take(Inbound("A", "  "))
        await desk.dispatcher.idle()

    virtually(work())
    assert went(desk) == [("  ", "turn")]


# --- the lock and the gate


def test_sessions_run_side_by_side_up_to_the_limit_and_each_alone() -> None:
    some = [Arrival(0, name, f"{name} {number}") for number in range(2) for name in "ABCDE"]
    desk = dispatch(some, limit=3, room=0)
    assert desk.most[""] == 3
    assert all(desk.most[name] == 1 for name in "ABCDE")
    assert [text for at, text in desk.starts if at == 0] == ["A 0", "B 0", "C 0"]


@pytest.mark.parametrize("limit", [0, -1])
def test_without_a_limit_all_sessions_run_at_once(limit: int) -> None:
    some = [Arrival(0, str(number), f"m {number}") for number in range(50)]
    assert dispatch(some, limit=limit).most[""] == 50


def test_a_place_is_free_again_after_a_failure_and_after_a_stop() -> None:
    some = [
        Arrival(0, "A", "it fails"),
        Arrival(0, "B", "b"),
        Arrival(0, "C", "c"),
        Arrival(0.5, "B", "/stop"),
    ]
    desk = dispatch(some, limit=1)
    started = {text: at for at, text in desk.starts}
    assert started == {"it fails": 0, "b": 0.2, "c": 0.7}


def test_a_session_that_waits_at_the_gate_holds_up_no_other_message() -> None:
    some = [Arrival(0, "A", "a"), Arrival(0, "B", "b")]
    asked = [Arrival(0.1, "A", "/status"), Arrival(0.1, "B", "/status")]
    desk = dispatch(some + asked, limit=1)
    assert [text for _, text in desk.answers] == [
        "This session is busy, 0 waiting behind it.",
        "This session is waiting for its turn, 0 waiting behind it.",
    ]


# --- commands


def test_a_stop_ends_the_turn_and_leaves_what_waits_in_order() -> None:
    some = arrivals("m1") + arrivals("m2", "/new", "m3", "/stop", at=0.5)
    desk = dispatch(some)
    assert desk.answers == [("/stop", "Stopped 1 turn. 3 waiting.")]
    turns = [(text, "turn") for text in ("m1", "m2", "/new", "m3")]
    assert went(desk) == turns


def test_stop_all_drops_what_waits_and_says_how_many() -> None:
    some = arrivals("m1") + arrivals("m2", "/new", "m3", "/stop all", at=0.5)
    desk = dispatch(some)
    assert desk.answers == [("/stop all", "Stopped 1 turn. Dropped 3 waiting.")]
    assert went(desk) == [
        ("m1", "turn"),
        ("m2", "dropped"),
        ("/new", "dropped"),
        ("m3", "dropped"),
    ]


def test_what_comes_after_stop_all_is_not_dropped_though_it_comes_at_the_same_moment() -> None:
    desk = dispatch(arrivals("m1") + arrivals("m2", "/stop all", "m3", at=0.5))
    assert went(desk) == [("m1", "turn"), ("m2", "dropped"), ("m3", "turn")]


def test_nothing_is_stopped_where_nothing_runs() -> None:
    desk = dispatch(arrivals("/stop", "/status"))
    assert desk.answers == [
        ("/stop", "Nothing was stopped."),
        ("/status", "This session is idle."),
    ]


def test_a_turn_whose_answer_was_being_saved_is_not_stopped() -> None:
    desk = dispatch(arrivals("m1") + arrivals("/stop", at=1.05))
    assert desk.answers == [("/stop", "Nothing was stopped.")]
    assert [told["outcome"] for kind, told in desk.events if kind == "turn_end"] == ["done"]


def test_a_stop_ends_no_turn_of_another_session() -> None:
    some = [Arrival(0, "A", "a"), Arrival(0, "B", "b"), Arrival(0.5, "A", "/stop")]
    desk = dispatch(some)
    ends = {told["session"]: told["outcome"] for kind, told in desk.events if kind == "turn_end"}
    assert ends == {"A": "stopped", "B": "done"}


def test_the_answer_to_a_stop_comes_when_the_turn_has_cleaned_up() -> None:
    desk = dispatch(arrivals("m1") + arrivals("/stop", at=0.5))
    kinds = [kind for kind, _ in desk.events]
    assert kinds == ["routed", "turn_start", "routed", "turn_end"]
    assert desk.active["A"] == 0


def test_a_stop_at_the_gate_keeps_the_message_as_unanswered() -> None:
    some = [Arrival(0, "A", "a"), Arrival(0, "B", "b"), Arrival(0.5, "B", "/stop")]
    desk = dispatch(some, limit=1)
    assert went(desk, "B") == [("b", "unanswered")]
    assert desk.answers == [("/stop", "Stopped 1 turn.")]


def test_a_turn_is_stopped_once() -> None:
    some = [Arrival(0, "A", "a"), Arrival(0, "B", "b"), Arrival(0.5, "B", "/stop")]
    desk = dispatch([*some, Arrival(0.55, "B", "/stop ")], limit=1)  # it is being kept
    assert desk.answers == [("/stop ", "Nothing was stopped."), ("/stop", "Stopped 1 turn.")]


def test_a_dispatcher_need_not_keep_what_was_not_answered() -> None:
    async def work() -> list[str]:
        told: list[str] = []

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            await asyncio.sleep(1)

        dispatcher = Dispatcher(
            handle,
            answer=lambda message, text: told.append(text),
            concurrency=Concurrency(limit=1),
        )
        for session in "AB":
            dispatcher.take(Inbound(session, "Hi"))
        await asyncio.sleep(0.5)
        stopped = await dispatcher.stop("B")
        dispatcher.take(Inbound("A", "/new"))
        assert (stopped, await dispatcher.close()) == (1, 1)
        return told

    assert virtually(work()) == []


def test_a_text_that_only_begins_like_a_command_is_a_command_that_waits() -> None:
    desk = dispatch(arrivals("m1", "/stopwatch"))
    assert went(desk) == [("m1", "turn"), ("/stopwatch", "turn")]


# --- the end


def test_closing_stops_every_turn_and_says_how_many_ran() -> None:
    desk = Desk([], limit=0)

    async def work() -> None:
        for name in "ABCDE":
            desk.dispatcher.take(Inbound(name, f"m {name}"))
        await asyncio.sleep(0.5)
        await desk.close()

    virtually(work())
    assert desk.closed == 5
    ends = [told["outcome"] for kind, told in desk.events if kind == "turn_end"]
    assert ends == ["stopped"] * 5


def test_a_turn_that_was_stopped_ends_as_cancelled() -> None:
    desk = Desk([])

    async def work() -> list[bool]:
        desk.dispatcher.take(Inbound("A", "m1"))
        tasks = list(desk.dispatcher.lanes["A"].tasks)
        await asyncio.sleep(0.5)
        await desk.dispatcher.stop("A")
        return [task.cancelled() for task in tasks]

    assert virtually(work()) == [True]


def test_a_dispatcher_that_is_closed_starts_nothing_and_keeps_what_comes() -> None:
    desk = Desk([])

    async def work() -> None:
        await desk.dispatcher.close()
        desk.dispatcher.take(Inbound("A", "late"))
        await asyncio.sleep(1)
        assert desk.dispatcher.lanes == {}
        await desk.dispatcher.close()

    virtually(work())
    assert desk.ledger == [Handled("unanswered", "A", "late")]


def test_a_stop_that_is_still_in_the_queue_is_no_message_of_the_session() -> None:
    desk = Desk([])

    async def work() -> None:
        taking = asyncio.create_task(desk.dispatcher.run(desk.inbound))
        await asyncio.sleep(0)
        taking.cancel()
        for text in ("m1", "/stop"):
            desk.inbound.put_nowait(Inbound("A", text))
        await desk.dispatcher.close()

    virtually(work())
    assert desk.ledger == [Handled("unanswered", "A", "m1")]
    assert desk.answers == [("/stop", "Nothing was stopped.")]


def test_a_close_waits_for_the_commands() -> None:
    desk = Desk([])

    async def work() -> None:
        desk.dispatcher.take(Inbound("A", "/stop"))
        await desk.dispatcher.close()
        assert desk.answers == [("/stop", "Nothing was stopped.")]

    virtually(work())


def test_many_sessions_and_commands_that_came_and_went_leave_nothing() -> None:
    some = [Arrival(number % 7, str(number), f"m {number}") for number in range(300)]
    desk = dispatch([*some, *(Arrival(7, "A", f"/status {number}") for number in range(9))])
    assert desk.dispatcher.lanes == {}
    assert desk.dispatcher._acting == set()
    assert len(desk.answers) == 9
    assert len(desk.ledger) == 300


def test_a_cancel_of_the_loop_that_takes_messages_leaves_and_the_turns_go_on() -> None:
    async def work() -> tuple[bool, list[str]]:
        done: list[str] = []

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            await asyncio.sleep(5)
            done.append(message.text)

        dispatcher = Dispatcher(handle, answer=lambda message, text: None)
        inbound: asyncio.Queue[Inbound] = asyncio.Queue()
        taking = asyncio.create_task(dispatcher.run(inbound))
        inbound.put_nowait(Inbound("A", "m1"))
        await asyncio.sleep(1)
        taking.cancel()
        await asyncio.wait([taking])
        await dispatcher.idle()
        return taking.cancelled(), done

    assert virtually(work()) == (True, ["m1"])


# --- the limit


@pytest.mark.parametrize(
    ("told", "limit"), [(None, LIMIT), ("", LIMIT), (" 7 ", 7), ("0", 0), ("-1", -1)]
)
def test_the_limit_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, told: str | None, limit: int
) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    if told is not None:
        monkeypatch.setenv(LIMIT_VARIABLE, told)
    assert limit_from_environment() == limit


def test_a_limit_that_is_no_number_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "many")
    with pytest.raises(RecoveryError, match=f"{LIMIT_VARIABLE} is 'many': give a whole number"):
        limit_from_environment()


def test_the_default_is_three_turns_at_a_time() -> None:
    assert Concurrency().limit == LIMIT == 3


def test_an_answer_that_cannot_be_told_stops_nothing() -> None:
    told: list[tuple[str, str, str]] = []
    handled: list[str] = []

    def observe(kind: str, **data: Any) -> None:
        if kind == "not_told":
            told.append((kind, data["message"], data["error"]))

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        handled.append(message.text)
        raise ValueError(message.text)

    def answer(message: Inbound, text: str) -> None:
        raise ConnectionError("gone")

    async def program() -> dict[str, Any]:
        dispatcher = Dispatcher(handle, answer=answer, observe=observe)
        for text in ("a", "/help", "/status"):
            dispatcher.take(Inbound("A", text))
        await dispatcher.idle()
        await dispatcher.close()
        return dispatcher.lanes

    assert virtually(program()) == {}
    assert handled == ["a", "/help"]
    assert sorted(told) == [
        ("not_told", text, "ConnectionError") for text in ("/help", "/status", "a")
    ]


def test_a_message_that_cannot_be_kept_keeps_no_other_from_being_kept() -> None:
    kept: list[str] = []
    told: list[str] = []

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        await asyncio.Event().wait()

    async def unanswered(message: Inbound) -> None:
        if message.text == "b":
            raise OSError("the disk is full")
        kept.append(message.text)

    async def program() -> int:
        dispatcher = Dispatcher(
            handle,
            answer=lambda *_: None,
            unanswered=unanswered,
            concurrency=Concurrency(room=0),
            observe=lambda kind, **data: told.append(data["message"]) if kind == "not_kept" else 0,
        )
        for text in "abc":
            dispatcher.take(Inbound("A", text))
        await asyncio.sleep(0)
        return await dispatcher.close()

    assert virtually(program()) == 1
    assert (kept, told) == (["c"], ["b"])


@pytest.mark.parametrize(
    ("field", "value"), [("limit", "three"), ("limit", 2.5), ("room", -1), ("room", 1.0)]
)
def test_a_concurrency_that_makes_no_sense_names_its_field(field: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=f"{field} is {value!r}, and must be a whole number"):
        Concurrency(**{field: value})
    assert Concurrency(limit=-1).limit == -1  # no limit


def test_what_is_more_than_an_error_leaves_a_turn_and_nobody_is_told_to_try_again() -> None:
    class Interrupt(BaseException):
        """As one of the keyboard is."""

    answers: list[str] = []

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        raise Interrupt

    async def work() -> BaseException | None:
        dispatcher = Dispatcher(handle, answer=lambda message, text: answers.append(text))
        dispatcher.take(Inbound("A", "m1"))
        (task,) = dispatcher.lanes["A"].tasks
        await asyncio.wait([task])
        return task.exception()

    assert isinstance(virtually(work()), Interrupt)
    assert answers == []


def test_a_command_is_one_whatever_white_space_is_around_it() -> None:
    desk = dispatch(arrivals("m1") + arrivals("\t/stop\n", at=0.5))
    assert desk.answers == [("\t/stop\n", "Stopped 1 turn.")]


def test_a_turn_that_waits_at_the_gate_is_none_that_a_close_has_stopped() -> None:
    desk = Desk([], limit=1)

    async def work() -> None:
        for name in "ABC":
            desk.dispatcher.take(Inbound(name, f"m {name}"))
        await asyncio.sleep(0.5)
        await desk.close()

    virtually(work())
    assert desk.closed == 1


def test_two_stops_of_one_turn_are_one() -> None:
    async def work() -> list[int]:
        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            try:
                await asyncio.sleep(10)
            finally:
                await asyncio.sleep(1)

        dispatcher = Dispatcher(handle, answer=lambda *_: None)
        dispatcher.take(Inbound("A", "a"))
        await asyncio.sleep(0.5)
        stops = [asyncio.create_task(dispatcher.stop("A")) for _ in range(2)]
        return [await stop for stop in stops]

    assert virtually(work()) == [1, 0]


def test_a_turn_that_never_began_is_not_told_as_ended() -> None:
    some = [Arrival(0, "A", "a"), Arrival(0, "B", "b"), Arrival(0.5, "B", "/stop")]
    desk = dispatch(some, limit=1)
    told = [(kind, data["message"]) for kind, data in desk.events if kind != "routed"]
    assert [kind for kind, message in told if message == "b"] == ["unanswered"]
    assert [kind for kind, message in told if message == "a"] == ["turn_start", "turn_end"]
