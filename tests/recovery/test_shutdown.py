"""The shutdown's table: the order, what is abandoned, what a hurry leaves out."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from labkit.recovery.shutdown import Step, StepEnd, shut_down
from tests.simulation.kit import virtually


class Parts:
    """Steps that write down what happens to them."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.over = False
        self.observed: list[dict[str, Any]] = []

    def takes(self, name: str, seconds: float) -> Callable[[], Coroutine[Any, Any, str]]:
        async def run() -> str:
            self.told.append(f"{name} begun")
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                if not self.over:
                    self.told.append(f"{name} cancelled")
                raise
            self.told.append(f"{name} done")
            return f"{name} said"

        return run

    def observe(self, kind: str, **details: Any) -> None:
        assert kind == "step"
        self.observed.append(details)


def shut(parts: Parts, steps: list[Step], *, hurry_at: float | None = None) -> list[StepEnd]:
    """Take the steps in virtual time; `hurry_at`: when somebody gets into a hurry."""

    async def work() -> list[StepEnd]:
        loop = asyncio.get_running_loop()
        hurry: asyncio.Future[None] = loop.create_future()
        if hurry_at == 0:
            hurry.set_result(None)
        elif hurry_at is not None:
            loop.call_later(hurry_at, hurry.set_result, None)
        ended = await shut_down(steps, hurry=hurry, observe=parts.observe)
        await asyncio.sleep(0)  # what was cancelled takes notice
        parts.over = True
        return ended

    ended: list[StepEnd] = virtually(work())
    return ended


def test_the_steps_are_taken_in_order_one_after_the_other() -> None:
    parts = Parts()
    ended = shut(parts, [Step("a", parts.takes("a", 2), 5), Step("b", parts.takes("b", 3), 5)])
    assert parts.told == ["a begun", "a done", "b begun", "b done"]
    assert ended == [StepEnd("a", "done", 2.0, "a said"), StepEnd("b", "done", 3.0, "b said")]
    assert parts.observed == [
        {"name": "a", "outcome": "done", "seconds": 2.0},
        {"name": "b", "outcome": "done", "seconds": 3.0},
    ]


def test_a_step_that_hangs_is_abandoned_at_its_limit_and_the_next_one_runs() -> None:
    parts = Parts()
    ended = shut(parts, [Step("a", parts.takes("a", 1e6), 5), Step("b", parts.takes("b", 1), 2)])
    assert ended == [StepEnd("a", "abandoned", 5.0), StepEnd("b", "done", 1.0, "b said")]
    assert parts.told == ["a begun", "b begun", "b done", "a cancelled"]


def test_an_abandoned_step_may_still_get_done_beside_the_next_ones() -> None:
    parts = Parts()
    ended = shut(parts, [Step("a", parts.takes("a", 6), 5), Step("b", parts.takes("b", 2), 5)])
    assert [end.outcome for end in ended] == ["abandoned", "done"]
    assert parts.told == ["a begun", "b begun", "a done", "b done"]


def test_a_step_that_swallows_its_cancel_holds_nothing_up() -> None:
    parts = Parts()

    async def stubborn() -> None:
        while True:
            try:
                await asyncio.sleep(1e6)
            except asyncio.CancelledError:
                parts.told.append("no")
                if len(parts.told) > 3:
                    raise

    ended = shut(parts, [Step("a", stubborn, 5)])
    assert ended == [StepEnd("a", "abandoned", 5.0)]
    assert set(parts.told) == {"no"}


def test_a_step_that_fails_or_is_cancelled_is_named_and_the_next_one_runs() -> None:
    parts = Parts()

    async def fails() -> None:
        raise OSError("no room")

    async def is_cancelled() -> None:
        raise asyncio.CancelledError

    steps = [Step("a", fails, 5), Step("b", is_cancelled, 5), Step("c", parts.takes("c", 1), 5)]
    ended = shut(parts, steps)
    assert [end.outcome for end in ended] == ["failed", "failed", "done"]
    assert [type(end.said) for end in ended[:2]] == [OSError, asyncio.CancelledError]


@pytest.mark.parametrize("hurry_at", [0, 1.0, 3.0])
def test_in_a_hurry_every_step_begins_and_only_those_that_must_are_waited_for(
    hurry_at: float,
) -> None:
    parts = Parts()
    steps = [
        Step("a", parts.takes("a", 2), 5),
        Step("b", parts.takes("b", 1e6), 5),
        Step("c", parts.takes("c", 1e6), 5),
        Step("flush", parts.takes("flush", 4), 5, always=True),
    ]
    ended = shut(parts, steps, hurry_at=hurry_at)
    first = StepEnd("a", "done", 2.0, "a said") if hurry_at > 2 else None
    assert ended == [
        first or StepEnd("a", "abandoned", hurry_at),
        StepEnd("b", "abandoned", max(hurry_at - 2, 0.0)),
        StepEnd("c", "abandoned", 0.0),
        StepEnd("flush", "done", 4.0, "flush said"),
    ]
    assert [told for told in parts.told if told.endswith("begun")] == [
        "a begun",
        "b begun",
        "c begun",
        "flush begun",
    ]


def test_a_hurry_does_not_lengthen_the_time_of_what_must_be_done() -> None:
    parts = Parts()
    steps = [Step("flush", parts.takes("flush", 1e6), 5, always=True)]
    assert shut(parts, steps, hurry_at=1.0) == [StepEnd("flush", "abandoned", 5.0)]


def test_what_was_abandoned_and_fails_later_leaves_no_complaint() -> None:
    parts = Parts()
    complaints: list[Any] = []

    async def fails_when_cancelled() -> None:
        try:
            await asyncio.sleep(1e6)
        except asyncio.CancelledError:
            raise OSError("too late") from None

    async def work() -> None:  # on a real loop, which complains; it waits for nothing
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        steps = [Step("a", fails_when_cancelled, 0)]
        await shut_down(steps, hurry=loop.create_future(), observe=parts.observe)
        for _ in range(3):
            await asyncio.sleep(0)
        gc.collect()

    asyncio.run(work())
    assert complaints == []


def test_a_listener_that_is_gone_and_a_step_that_cannot_begin_stop_nothing() -> None:
    parts = Parts()

    def refuses() -> Any:
        raise OSError("it cannot begin")

    def gone(kind: str, **details: Any) -> None:
        raise BrokenPipeError

    async def program() -> list[StepEnd]:
        steps = [Step("first", refuses, 1.0), Step("last", parts.takes("last", 0.1), 1.0)]
        hurry = asyncio.get_running_loop().create_future()
        return await shut_down(steps, hurry=hurry, observe=gone)

    first, last = virtually(program())
    assert (first.outcome, repr(first.said)) == ("failed", "OSError('it cannot begin')")
    assert (last.outcome, last.said) == ("done", "last said")
