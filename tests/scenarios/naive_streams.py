"""Clients of the service desk that each get one thing wrong."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from labkit.recovery.deltas import Delta
from labkit.recovery.errors import ProviderError
from labkit.recovery.stream.continuation import Request
from labkit.scenarios.desk import QUESTION, Desk, KeptDesk
from labkit.simulation import Observer


def asked(desk: Desk, attempt: int) -> AsyncGenerator[Delta, None]:
    return desk.ask(Request(messages=()), attempt)


async def glues(desk: Desk, limits: Any, observe: Observer) -> None:
    """Asks again, and writes what comes behind what is there."""
    for attempt in (1, 2):
        try:
            async for delta in asked(desk, attempt):
                desk.page("text_delta", text=delta.text)
            return
        except ProviderError:
            continue


async def clears(desk: Desk, limits: Any, observe: Observer) -> None:
    """Asks again, and draws the page anew."""
    for attempt in (1, 2):
        try:
            async for delta in asked(desk, attempt):
                desk.page("text_delta", text=delta.text)
            return
        except ProviderError:
            desk.page("segment_end", reason="lost")
            desk.page("cleared")


async def runs_what_came(desk: Desk, limits: Any, observe: Observer) -> None:
    """Runs a tool with whatever arguments there are when the stream is over."""
    try:
        async for _ in asked(desk, 1):
            pass
    except ProviderError:
        observe.effect("create_ticket", arguments='{"title": "VPN ac')


async def runs_all_tools_again(desk: Desk, limits: Any, observe: Observer) -> None:
    """Starts from the question after each break, tools included."""
    for attempt in (1, 2, 3, 4):
        try:
            async for delta in asked(desk, attempt):
                if delta.kind == "finish" and delta.reason == "tool_calls":
                    observe.effect("create_ticket", title="VPN access")
        except ProviderError:
            continue


async def skips_the_gap(desk: KeptDesk, limits: Any, observe: Observer) -> None:
    """Shows what comes, in the order in which it comes, whatever its number."""
    await desk.begin(Request(messages=()))
    async for event in desk.connect(""):
        desk.page("text_delta", text=json.loads(event.data).get("text_delta", ""))


async def counts_what_it_received(desk: KeptDesk, limits: Any, observe: Observer) -> None:
    """Moves the cursor as soon as an event is there, and shows it a little later."""
    await desk.begin(Request(messages=()))
    cursor, waiting = "", ""
    for _ in range(2):
        try:
            async for event in desk.connect(cursor):
                desk.page("text_delta", text=waiting)
                cursor, waiting = event.id, json.loads(event.data).get("text_delta", "")
        except ProviderError:
            waiting = ""


async def goes_on_after_the_stop(desk: Desk, limits: Any, observe: Observer) -> None:
    """Takes a stop for one more break."""
    run = await desk.answer(limits, request=QUESTION, stop_at=1.5)
    assert run.status == "stopped"
    async for _ in asked(desk, 2):
        pass


# the judge's name -> the client, and the token of the run in whose place it runs
NAIVE: dict[str, tuple[Any, str]] = {
    "gap_spliced": (skips_the_gap, "stream.kept~lose@3"),
    "piece_doubled": (skips_the_gap, "stream.kept~duplicate@3"),
    "cursor_overshoot": (counts_what_it_received, "stream.kept~cut@3"),
    "half_call_run": (runs_what_came, "stream.half_call"),
    "effect_repeated": (runs_all_tools_again, "stream.tool_again"),
    "stop_overruled": (goes_on_after_the_stop, "stream.whole"),
    "text_cleared": (clears, "stream.again"),
    "duplicate_text": (glues, "stream.again"),
}
