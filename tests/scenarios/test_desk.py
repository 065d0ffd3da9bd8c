"""What a faulty connection of the desk's service brings, piece by piece."""

from __future__ import annotations

import json
from typing import Any

import labkit
from labkit.recovery.errors import ProviderError
from labkit.recovery.event_log import frames
from labkit.scenarios.desk import KeptDesk
from labkit.simulation import Fault, simulate


def numbers(fault: Fault) -> list[int]:
    """The numbers of the events that one connection brings."""
    found: list[int] = []

    async def reads(desk: KeptDesk, limits: Any, observe: Any) -> None:
        await desk.begin()
        found.extend([json.loads(event.data)["sequence"] async for event in desk.connect("")])

    simulate(labkit.find("stream.kept").but(client=reads), faults=fault)
    return found


def test_an_event_that_is_doubled_comes_twice() -> None:
    assert numbers(Fault("duplicate", 2)) == [0, 1, 2, 2, 3, 4, 5]


def test_an_event_that_is_late_comes_once_behind_the_next() -> None:
    assert numbers(Fault("reorder", 2)) == [0, 1, 3, 2, 4, 5]


def test_a_connection_that_is_cut_brings_the_first_half_of_a_frame() -> None:
    pieces: list[bytes] = []
    whole: list[bytes] = []

    async def reads(desk: KeptDesk, limits: Any, observe: Any) -> None:
        await desk.begin()
        try:
            async for piece in desk._sent(frames(desk.log)):
                pieces.append(piece)
        except ProviderError:
            whole.extend([frame async for frame in frames(desk.log)])

    simulate(labkit.find("stream.kept").but(client=reads), faults=Fault("cut", 2))
    assert [piece for piece in pieces if piece] == [*whole[:2], whole[2][: len(whole[2]) // 2]]
