"""The gateway in virtual time: the order of its shutdown, each bound, a hurry, parts that fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any

import pytest

from labkit.recovery.dispatch import Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.shutdown import ABANDONED, DONE, FAILED, ShutdownLimits, StepEnd
from tests.services.parts import NEVER, FakeChannel, FakeTransport, Parts
from tests.simulation.kit import virtually

ORDER = [
    "cancel tasks",
    "gather tasks",
    "stop turns",
    "stop channel tcp",
    "stop channel terminal",
    "close transport tools",
    "flush sessions",
    "restore signal handlers",
]


def played(parts: Parts, *stops: float, **chosen: Any) -> list[StepEnd]:
    """Run a gateway in virtual time and call `stop` at these times; how its steps ended."""

    async def work() -> list[StepEnd]:
        gateway = parts.gateway(**chosen)
        for at in stops:
            asyncio.get_running_loop().call_later(at, gateway.stop)
        ended = await gateway.run(parts.restore)
        parts.told.append("the end")  # from now on a part that hangs may be cancelled
        return ended

    ended: list[StepEnd] = virtually(work())
    return ended


def outcomes(ended: list[StepEnd]) -> dict[str, str]:
    return {end.name: end.outcome for end in ended}


def test_it_ends_in_the_order_of_the_table() -> None:
    parts = Parts()
    ended = played(parts, 5)
    assert [end.name for end in ended] == ORDER
    assert {end.outcome for end in ended} == {DONE}
    assert parts.told == [
        "open tools",
        "run dispatcher",
        "run tcp",
        "run terminal",
        "end dispatcher",
        "end tcp",
        "end terminal",
        "close dispatcher",
        "stop tcp",
        "stop terminal",
        "close tools",
        "flush",
        "flushed",
        "restore",
        "the end",
    ]


def test_it_says_how_many_were_stopped_and_how_many_were_flushed() -> None:
    said = {end.name: end.said for end in played(Parts(), 5)}
    assert (said["cancel tasks"], said["stop turns"], said["flush sessions"]) == (3, 2, 3)


def test_a_transport_is_opened_and_closed_by_one_task_of_its_own() -> None:
    parts = Parts()
    transport = FakeTransport(parts)
    played(parts, 5, transports={"tools": transport})
    opened, closed = transport.tasks
    assert opened is closed
    assert opened is not None
    assert opened.get_name() == "transport tools"


LIMITS = ShutdownLimits(tasks=11, turns=12, channels=13, transports=14, sessions=15)
HANGS = [  # the part, the step that is abandoned, and after how many seconds
    ("end tcp", "gather tasks", LIMITS.tasks),
    ("close dispatcher", "stop turns", LIMITS.turns),
    ("stop tcp", "stop channel tcp", LIMITS.channels),
    ("close tools", "close transport tools", LIMITS.transports),
    ("open tools", "close transport tools", LIMITS.transports),
    ("flush", "flush sessions", LIMITS.sessions),
]


@pytest.mark.parametrize(("hangs", "step", "limit"), HANGS)
def test_a_part_that_hangs_is_abandoned_by_name_and_the_sessions_are_flushed(
    hangs: str, step: str, limit: float
) -> None:
    parts = Parts(hangs)
    ended = played(parts, 5, limits=LIMITS)
    assert [end.name for end in ended] == ORDER
    assert outcomes(ended) == {name: ABANDONED if name == step else DONE for name in ORDER}
    assert {end.name: end.seconds for end in ended}[step] == limit
    assert ("flushed" in parts.told) == (hangs != "flush")
    assert ("step", {"name": step, "outcome": ABANDONED, "seconds": limit}) in parts.noted
    assert "restore" in parts.told


def test_every_limit_is_provoked_once() -> None:
    assert {getattr(LIMITS, field.name) for field in fields(LIMITS)} == {at for _, _, at in HANGS}


def test_all_that_can_hang_together_still_leaves_the_sessions_flushed() -> None:
    parts = Parts()

    async def hangs() -> Any:
        await asyncio.sleep(NEVER)

    class Hangs(FakeChannel):
        async def stop(self) -> None:
            await hangs()

    class HangsToo(FakeTransport):
        async def __aexit__(self, *error: object) -> None:
            await hangs()

    ended = played(
        parts,
        5,
        channels=[Hangs(parts, "a"), Hangs(parts, "b")],
        transports={"c": HangsToo(parts), "d": HangsToo(parts)},
        limits=LIMITS,
    )
    assert [end.name for end in ended if end.outcome == ABANDONED] == [
        "stop channel a",
        "stop channel b",
        "close transport c",
        "close transport d",
    ]
    assert "flushed" in parts.told
    assert sum(end.seconds for end in ended) == 2 * LIMITS.channels + 2 * LIMITS.transports


def test_a_second_stop_waits_for_nothing_but_the_sessions() -> None:
    parts = Parts("close dispatcher")
    ended = played(parts, 5, 7)
    assert outcomes(ended) == {
        "cancel tasks": DONE,
        "gather tasks": DONE,
        "stop turns": ABANDONED,
        "stop channel tcp": DONE,
        "stop channel terminal": DONE,
        "close transport tools": ABANDONED,
        "flush sessions": DONE,
        "restore signal handlers": DONE,
    }
    assert sum(end.seconds for end in ended) == 2
    assert "flushed" in parts.told


def test_in_a_hurry_the_sessions_still_get_their_time_and_no_more() -> None:
    parts = Parts("flush")
    ended = played(parts, 5, 5, 6, 7, limits=LIMITS)
    assert {end.name: end.seconds for end in ended}["flush sessions"] == LIMITS.sessions
    assert outcomes(ended)["restore signal handlers"] == DONE


def test_a_stop_before_anything_runs_starts_nothing() -> None:
    parts = Parts("open tools")
    ended = played(parts, 0, limits=LIMITS)
    assert "running" not in [kind for kind, _ in parts.noted]
    assert not any(told.startswith("run") for told in parts.told)
    assert outcomes(ended)["flush sessions"] == DONE


def test_a_part_that_fails_ends_the_gateway_and_is_named() -> None:
    parts = Parts()

    class Fails(FakeChannel):
        async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
            await asyncio.sleep(3)
            raise OSError("the port is gone, key=sk-123")

    ended = played(parts, channels=[Fails(parts, "tcp")])
    assert parts.noted[1] == ("failed", {"part": "channel tcp", "error": "OSError"})
    assert outcomes(ended) == dict.fromkeys(outcomes(ended), DONE) | {"gather tasks": FAILED}


def test_a_transport_that_cannot_be_opened_ends_the_gateway_before_anything_runs() -> None:
    parts = Parts()

    class Fails(FakeTransport):
        async def __aenter__(self) -> FakeTransport:
            raise FileNotFoundError("no such program")

    ended = played(parts, transports={"tools": Fails(parts), "never": FakeTransport(parts)})
    assert parts.noted[0][1] == {"part": "transport tools", "error": "FileNotFoundError"}
    assert outcomes(ended)["close transport tools"] == FAILED
    assert parts.told[:1] == ["close dispatcher"]


def test_a_channel_that_is_through_ends_nothing() -> None:
    parts = Parts()

    class Ends(FakeChannel):
        async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
            """As a terminal whose input has ended."""

    ended = played(parts, 5, channels=[Ends(parts, "terminal"), FakeChannel(parts, "tcp")])
    assert "end tcp" in parts.told
    assert {end.outcome for end in ended} == {DONE}


@pytest.mark.parametrize(("cancels", "seconds"), [([5.0], 12.0), ([5.0, 7.0], 2.0)])
def test_a_cancel_is_a_stop_and_leaves_when_all_has_ended(
    cancels: list[float], seconds: float
) -> None:
    parts = Parts("close dispatcher")

    async def work() -> float:
        loop = asyncio.get_running_loop()
        running = asyncio.create_task(parts.gateway(limits=LIMITS).run())
        for at in cancels:
            loop.call_later(at, running.cancel)
        await asyncio.wait([running])
        assert running.cancelled()
        parts.told.append("the end")
        return loop.time()

    assert virtually(work()) == 5.0 + seconds
    assert "flushed" in parts.told


def test_a_part_that_fails_while_it_ends_is_no_second_stop() -> None:
    parts = Parts()

    class FailsAtTheEnd(FakeChannel):
        async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("too late")

    ended = played(parts, 5, channels=[FailsAtTheEnd(parts, "tcp")])
    assert outcomes(ended) == dict.fromkeys(outcomes(ended), DONE) | {"gather tasks": FAILED}


# --- with the parts of the lessons


def turns(handle: Callable[[Inbound, Mailbox], Any]) -> tuple[Dispatcher, list[str]]:
    said: list[str] = []
    return Dispatcher(handle, answer=lambda message, text: said.append(text)), said


class Puts(FakeChannel):
    """A channel whose user has written two messages in two sessions."""

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        for session in ("ann", "bob"):
            inbound.put_nowait(Inbound(session, "hello", self.name))
        await super().run(inbound)


def test_a_shutdown_cancels_the_turns_before_the_channels_stop() -> None:
    parts = Parts()

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        try:
            await asyncio.sleep(NEVER)
        finally:
            parts.told.append(f"stopped {message.session}")

    ended = played(parts, 5, dispatcher=turns(handle)[0], channels=[Puts(parts, "tcp")])
    assert parts.told.index("stopped bob") < parts.told.index("stop tcp")
    assert {end.name: end.said for end in ended}["stop turns"] == 2


def test_a_turn_that_does_not_end_is_abandoned_and_the_sessions_are_flushed() -> None:
    parts = Parts("the turn")

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        await parts.tell("the turn")

    ended = played(parts, 5, dispatcher=turns(handle)[0], channels=[Puts(parts, "tcp")])
    assert {end.name for end in ended if end.outcome == ABANDONED} == {"stop turns"}
    assert "flushed" in parts.told


@asynccontextmanager
async def with_a_task_group() -> Any:
    """As a transport over the pipes of a process; without the process."""
    import anyio

    async with anyio.create_task_group() as reading:
        reading.start_soon(anyio.sleep_forever)
        yield
        reading.cancel_scope.cancel()


def test_a_transport_with_a_task_group_is_closed_without_an_error() -> None:
    ended = played(Parts(), 5, transports={"tools": with_a_task_group()})
    assert {end.outcome for end in ended} == {DONE}


def test_naively_a_transport_that_is_closed_by_another_task_fails() -> None:
    async def work() -> None:
        transport = with_a_task_group()
        opening = asyncio.create_task(transport.__aenter__())
        await opening
        with pytest.raises(RuntimeError, match="a different task than it was entered in"):
            await transport.__aexit__(None, None, None)

    virtually(work())
