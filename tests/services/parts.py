"""Parts of a gateway that write down what happens to them, and hang where a test says so."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any

from labkit.recovery.mailbox import Inbound
from labkit.services.gateway import Gateway

NEVER = 10**6  # seconds


class Parts:
    """All that a gateway needs; `hangs` names the part that never comes to its end."""

    def __init__(self, hangs: str = "") -> None:
        self.told: list[str] = []
        self.noted: list[tuple[str, dict[str, Any]]] = []
        self._hangs = hangs

    async def tell(self, what: str) -> None:
        """Write it down; where it is the part that hangs, no cancel ends it."""
        self.told.append(what)
        while what == self._hangs:
            try:
                await asyncio.sleep(NEVER)
            except asyncio.CancelledError:
                if self.told[-1] == "the end":
                    raise

    async def until_cancelled(self, what: str) -> None:
        self.told.append(f"run {what}")
        try:
            await asyncio.Event().wait()
        finally:
            await self.tell(f"end {what}")

    def observe(self, kind: str, **details: Any) -> None:
        self.noted.append((kind, details))

    def gateway(self, **chosen: Any) -> Gateway:
        parts: dict[str, Any] = {
            "dispatcher": FakeDispatcher(self),
            "channels": [FakeChannel(self, "tcp"), FakeChannel(self, "terminal")],
            "transports": {"tools": FakeTransport(self)},
            "sessions": FakeSessions(self),
            "observe": self.observe,
            "call": self.call,
        }
        return Gateway(**(parts | chosen))

    async def call(self, function: Any) -> Any:
        """Instead of a thread."""
        await self.tell("flush")
        return function()

    def restore(self) -> None:
        self.told.append("restore")


class FakeDispatcher:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        await self._parts.until_cancelled("dispatcher")

    async def close(self) -> int:
        await self._parts.tell("close dispatcher")
        return 2


class FakeChannel:
    def __init__(self, parts: Parts, name: str) -> None:
        self._parts = parts
        self.name = name

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        await self._parts.until_cancelled(self.name)

    async def stop(self) -> None:
        await self._parts.tell(f"stop {self.name}")

    def send(self, session: str, text: str) -> None:
        self._parts.told.append(f"{self.name} {session}: {text}")


class FakeTransport(AbstractAsyncContextManager["FakeTransport"]):
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.tasks: list[asyncio.Task[Any] | None] = []

    async def __aenter__(self) -> FakeTransport:
        self.tasks.append(asyncio.current_task())
        await self._parts.tell("open tools")
        return self

    async def __aexit__(self, *error: object) -> None:
        self.tasks.append(asyncio.current_task())
        await self._parts.tell("close tools")


class FakeSessions:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def flush_all(self) -> int:
        self._parts.told.append("flushed")
        return 3
