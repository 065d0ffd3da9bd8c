"""Versions one after another: a late write never undoes a newer one, and a cancel tears none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from labkit.recovery.checkpoint import Checkpointer, MemorySessions, next_version
from labkit.recovery.session import (
    Session,
    StaleSession,
    begin_turn,
    close_turn,
    finish_turn,
    show,
)
from tests.simulation.kit import virtually

NEW = Session("ann")


def checkpointer(store: MemorySessions, told: list[Any] | None = None) -> Checkpointer:
    observe = None if told is None else lambda kind, **data: told.append((kind, data))
    return Checkpointer(store.load("ann"), store.write, observe)


def test_each_write_is_one_version_more_and_memory_knows_it() -> None:
    async def work() -> None:
        store = MemorySessions()
        keeper = checkpointer(store)
        for number in range(1, 4):
            await keeper.save(begin_turn(keeper.session, f"question {number}"))
            assert keeper.session.version == number
            assert store.kept["ann"] == keeper.session

    virtually(work())


def test_a_late_write_of_an_older_turn_is_refused_and_changes_nothing() -> None:
    async def work() -> None:
        store = MemorySessions(delay=1)
        late, new = checkpointer(store), checkpointer(store)
        await new.save(begin_turn(new.session, "new"))
        with pytest.raises(StaleSession, match=r"version 0 of session 'ann' is not the newest.*1"):
            await late.save(begin_turn(late.session, "old"))
        assert store.kept["ann"] == new.session

    virtually(work())


@pytest.mark.parametrize("version", [0, 2])
def test_only_the_newest_version_may_be_followed(version: int) -> None:
    with pytest.raises(StaleSession, match="load it again"):
        next_version(Session("ann", version=version), Session("ann", version=1))
    assert next_version(Session("ann", version=1), Session("ann", version=1)) == 2


def test_two_changes_at_once_are_written_one_after_the_other_and_both_are_kept() -> None:
    async def work() -> tuple[MemorySessions, Checkpointer]:
        store = MemorySessions(delay=1)
        keeper = checkpointer(store)
        first = asyncio.create_task(keeper.save(begin_turn(keeper.session, "Hi")))
        await asyncio.sleep(0.5)
        await keeper.save(show(keeper.session, "Hello"))
        await first
        return store, keeper

    store, keeper = virtually(work())
    assert keeper.session.version == 2
    assert store.kept["ann"] == keeper.session
    assert keeper.session.turn.draft == "Hello"


def test_a_cancel_leaves_when_the_write_has_ended_and_a_second_one_too() -> None:
    async def work() -> None:
        store = MemorySessions(delay=1)
        keeper = checkpointer(store)
        saving = asyncio.create_task(keeper.save(begin_turn(keeper.session, "Hi")))
        for _ in range(2):
            await asyncio.sleep(0.25)
            saving.cancel()
        await asyncio.wait([saving])
        assert saving.cancelled()
        assert asyncio.get_running_loop().time() == 1
        assert store.kept["ann"] == keeper.session
        assert keeper.session.version == 1

    virtually(work())


def test_a_change_counts_at_once_also_where_its_write_is_refused() -> None:
    async def work() -> None:
        store = MemorySessions()
        refused = [OSError("the disk is full")]

        async def write(session: Session) -> int:
            if refused:
                raise refused.pop()
            return await store.write(session)

        keeper = Checkpointer(NEW, write)
        with pytest.raises(OSError, match="full"):
            await keeper.save(begin_turn(NEW, "Hi"))
        assert keeper.session.history[0].content == "Hi"
        await keeper.save(show(keeper.session, "Hello"))
        assert store.kept["ann"] == keeper.session
        assert keeper.session.version == 1

    virtually(work())


def test_a_step_is_told_when_it_is_written_and_no_sooner() -> None:
    async def work() -> None:
        store, told = MemorySessions(delay=1), []
        keeper = checkpointer(store, told)
        saving = asyncio.create_task(keeper.save(begin_turn(keeper.session, "Hi"), "user"))
        await asyncio.sleep(0.5)
        assert told == []
        await saving
        assert told == [("checkpoint", {"step": "user", "version": 1})]
        await keeper.save(show(keeper.session, "Hel"))
        assert len(told) == 1
        await keeper.save(close_turn(keeper.session, "stopped"), "closed")
        assert told[1:] == [
            ("draft", {"text": "Hel", "reason": "stopped"}),
            ("checkpoint", {"step": "closed", "version": 3}),
        ]

    virtually(work())


def test_each_draft_is_told_once() -> None:
    async def work() -> list[str]:
        told: list[Any] = []
        keeper = checkpointer(MemorySessions(), told)
        for text in ("one", "two"):
            await keeper.save(show(begin_turn(keeper.session, "Hi"), text))
            await keeper.save(close_turn(keeper.session, "stopped"), "closed")
        return [data["text"] for kind, data in told if kind == "draft"]

    assert virtually(work()) == ["one", "two"]


def test_what_a_store_in_memory_keeps_nobody_can_change_from_outside() -> None:
    async def work() -> None:
        store = MemorySessions()
        keeper = checkpointer(store)
        await keeper.save(finish_turn(begin_turn(keeper.session, "Hi"), "Hello."))
        kept = store.load("ann")
        begin_turn(kept, "And now?")
        assert store.load("ann") == kept

    virtually(work())


def test_a_store_without_delay_does_not_wait() -> None:
    async def work() -> float:
        await MemorySessions().write(NEW)
        return asyncio.get_running_loop().time()

    assert virtually(work()) == 0


Write = Callable[[Session], Awaitable[int]]
