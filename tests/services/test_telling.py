"""What is kept and told of one answer, in which order, and in how many calls."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from labkit.recovery.stream import StreamEvent, StreamRequest, StreamRun, apply_event
from labkit.recovery.stream.store import StaleRecord
from labkit.services.telling import Telling
from labkit.stores.memory import MemoryStreamStore
from tests.simulation.kit import virtually

from .playing import ANN


def grown(run: StreamRun, text: str) -> StreamRun:
    return apply_event(run, StreamEvent(run.next_sequence, text_delta=text), now=0.0)


def begun() -> tuple[StreamRun, MemoryStreamStore, Telling]:
    store = MemoryStreamStore()
    kept = store.create(StreamRun("run-1", ANN, StreamRequest("Why?")))
    return kept, store, Telling(kept, "run-1.a")


def calling(
    store: MemoryStreamStore, calls: list[str]
) -> Callable[[StreamRun], Awaitable[StreamRun]]:
    async def save(run: StreamRun) -> StreamRun:
        calls.append(run.text)
        await asyncio.sleep(1)
        return store.save(run)

    return save


def test_what_has_gathered_is_kept_in_one_call_and_told_after_it() -> None:
    kept, store, telling = begun()
    calls: list[str] = []
    one = telling.save(grown(kept, "It "))
    telling.page("text_delta", text="It ")
    telling.save(grown(one, "was "))
    telling.page("text_delta", text="was ")
    telling.end()
    assert telling.log.last == 0
    virtually(telling.write(kept, calling(store, calls)))
    assert (calls, telling.segments, telling.log.last) == (["It was "], ["It was "], 2)
    assert store.load("run-1", ANN).version == 2


def test_records_that_come_later_are_based_on_what_is_kept() -> None:
    kept, store, telling = begun()

    async def work() -> None:
        writing = asyncio.create_task(telling.write(kept, calling(store, [])))
        run = kept
        for text in ("It ", "was ", "sent."):
            run = telling.save(grown(run, text))
            await asyncio.sleep(5)
        telling.end()
        await writing

    virtually(work())
    assert store.load("run-1", ANN) == replace(telling.run, version=4, stored_chunks=3)


def test_what_came_with_a_record_that_is_refused_is_not_told() -> None:
    kept, store, telling = begun()
    store.save(grown(kept, "another's "))
    telling.save(grown(kept, "It "))
    telling.page("text_delta", text="It ")
    with pytest.raises(StaleRecord):
        virtually(telling.write(kept, calling(store, [])))
    assert telling.log.last == 0


def test_each_save_says_how_many_pieces_are_stored_already() -> None:
    kept, store, telling = begun()
    stored: list[int] = []

    async def save(run: StreamRun) -> StreamRun:
        stored.append(run.stored_chunks)
        return store.save(run)

    async def work() -> None:
        writing = asyncio.create_task(telling.write(kept, save))
        run = kept
        for text in ("It ", "was ", "sent."):
            run = telling.save(grown(run, text))
            await asyncio.sleep(1)
        telling.end()
        await writing

    virtually(work())
    assert stored == [0, 1, 2]


def test_a_view_does_not_change_with_what_is_told_later() -> None:
    telling = begun()[2]
    view = telling.view()
    telling.tell("text_delta", text="It was sent.")
    assert view["segments"] == [""]
