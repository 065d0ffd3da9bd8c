"""A ledger in a file of its own, and three services that enter effects into it.

Nothing in the ledger is unique: an effect that is had twice stands there twice.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, NOT_DONE, Known, Request

Meet = Callable[[str, str], Awaitable[None]]  # (window, key): others may strike here

ASKABLE = "askable"  # not atomic; its "not done" is a promise
ATOMIC = "atomic"  # one key has one effect there; it cannot be asked
MUTE = "mute"  # neither
SERVICES = (ASKABLE, ATOMIC, MUTE)

_TABLES = """
CREATE TABLE IF NOT EXISTS effects (key TEXT, owner TEXT);
CREATE TABLE IF NOT EXISTS closed (key TEXT PRIMARY KEY, fence INTEGER, attempt INTEGER);
"""


class Ledger:
    """The effects of all processes, in the order in which they became real."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with closing(self._opened()) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_TABLES)

    def _opened(self) -> sqlite3.Connection:
        # What a killed process has written is safe with the system: no need to reach the disk.
        connection = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    @contextmanager
    def alone(self) -> Any:
        """A transaction with no other beside it."""
        with closing(self._opened()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def effects(self) -> list[tuple[str, str]]:
        """(key, owner) of each."""
        with closing(self._opened()) as connection:
            return list(connection.execute("SELECT key, owner FROM effects ORDER BY rowid"))


class LedgerService:
    """What has the effects: one of `SERVICES`, as one process sees it."""

    cancels = False
    remembers = math.inf

    def __init__(self, kind: str, ledger: Ledger, owner: str, meet: Meet) -> None:
        self.atomic = kind == ATOMIC
        self._kind = kind
        self._ledger = ledger
        self._owner = owner
        self._meet = meet

    async def perform(self, request: Request) -> str:
        """Enter the effect; others may strike before and after it."""
        await self._meet("claimed", request.key)
        result = await asyncio.to_thread(self._perform, request)
        await self._meet("done", request.key)
        return result

    def _perform(self, request: Request) -> str:
        with self._ledger.alone() as connection:
            if self._kind == ASKABLE and not _admitted(connection, request):
                # Definite, and no retry mends it: a newer claim has the key.
                raise ProviderError("an older claim", kind="permission")
            found = _found(connection, request.key)
            if found and self.atomic:
                return found
            connection.execute("INSERT INTO effects VALUES (?, ?)", (request.key, self._owner))
            return _found(connection, request.key)

    async def look_up(self, request: Request) -> Known:
        """What became of it; "not done" closes the door to every try so far."""
        if self._kind != ASKABLE:
            raise ProviderError("it cannot be asked", kind="server")
        return await asyncio.to_thread(self._look_up, request)

    def _look_up(self, request: Request) -> Known:
        with self._ledger.alone() as connection:
            _close(connection, request)
            found = _found(connection, request.key)
        return Known(DONE, found) if found else Known(NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        """It cannot."""
        raise NotImplementedError


def _found(connection: sqlite3.Connection, key: str) -> str:
    first = "SELECT min(rowid) FROM effects WHERE key = ?"
    (row,) = connection.execute(first, (key,)).fetchone()
    return f"receipt {row}" if row else ""


def _admitted(connection: sqlite3.Connection, request: Request) -> bool:
    """Whether no newer claim, and no look-up, stands against this try."""
    last = "SELECT fence, attempt FROM closed WHERE key = ?"
    fence, attempt = connection.execute(last, (request.key,)).fetchone() or (0, 0)
    if (request.fence, request.attempt) <= (fence, attempt):
        return False
    _close(connection, request._replace(attempt=max(0, request.attempt - 1)))
    return True


def _close(connection: sqlite3.Connection, request: Request) -> None:
    newer = "WHERE (excluded.fence, excluded.attempt) > (closed.fence, closed.attempt)"
    change = "UPDATE SET fence = excluded.fence, attempt = excluded.attempt"
    connection.execute(
        f"INSERT INTO closed VALUES (?, ?, ?) ON CONFLICT (key) DO {change} {newer}",
        (request.key, request.fence, request.attempt),
    )
