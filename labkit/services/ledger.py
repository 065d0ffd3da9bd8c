"""A ledger of effects in a file, which all processes share, and a service that enters them.

Rules: nothing in the ledger is unique, so an effect that is had twice stands there twice; the
service can be asked what became of a request, and its "not done" holds for every earlier try: what
comes late with an older claim is refused.

    service = LedgerService(Ledger("effects.db"), "worker-1")
    await service.perform(request)             # "receipt 1"
    Ledger("effects.db").effects()             # [("acme/ship/7", "worker-1")]
"""

import asyncio
import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from labkit.recovery.errors import ProviderError
from labkit.recovery.service import DONE, NOT_DONE, Known, Request
from labkit.stores.errors import StoreError

BUSY: Final = 60.0  # seconds that a writer waits for its turn
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS effects (key TEXT, owner TEXT);
CREATE TABLE IF NOT EXISTS closed (key TEXT PRIMARY KEY, fence INTEGER, attempt INTEGER);
"""


class Ledger:
    """The effects of all processes, in the order in which they became real.

    Raises `StoreError` where the file cannot be opened, or is none.
    """

    def __init__(self, file: str | Path) -> None:
        if not isinstance(file, str | Path) or str(file) in ("", ":memory:"):
            told = "which all its processes share, such as 'effects.db'"
            raise StoreError(f"the ledger is {file!r:.60}, and must be a file {told}")
        self._file = file
        try:
            with closing(self._opened()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_TABLES)
        except sqlite3.Error as error:
            told = f"the ledger {file} cannot be opened ({error}): name another file"
            raise StoreError(told) from None

    def _opened(self) -> sqlite3.Connection:
        # What a killed process has written is safe with the system: no need to reach the disk.
        connection = sqlite3.connect(self._file, timeout=BUSY, isolation_level=None)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    @contextmanager
    def alone(self) -> Iterator[sqlite3.Connection]:
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
    """Enters effects for `owner`, who is one process."""

    atomic = False
    cancels = False
    remembers = math.inf

    def __init__(self, ledger: Ledger, owner: str) -> None:
        self._ledger = ledger
        self._owner = owner

    async def perform(self, request: Request) -> str:
        """Enter the effect; a claim older than the newest is refused."""
        return await asyncio.to_thread(self._perform, request)

    def _perform(self, request: Request) -> str:
        with self._ledger.alone() as connection:
            if not _admitted(connection, request):
                # Definite, and no retry mends it: a newer claim has the key.
                raise ProviderError("an older claim", kind="permission")
            return self._entered(connection, request)

    def _entered(self, connection: sqlite3.Connection, request: Request) -> str:
        connection.execute("INSERT INTO effects VALUES (?, ?)", (request.key, self._owner))
        return found(connection, request.key)

    async def look_up(self, request: Request) -> Known:
        """What became of it; "not done" closes the door to every try so far."""
        return await asyncio.to_thread(self._look_up, request)

    def _look_up(self, request: Request) -> Known:
        with self._ledger.alone() as connection:
            _close(connection, request)
            receipt = found(connection, request.key)
        return Known(DONE, receipt) if receipt else Known(NOT_DONE)

    async def call_off(self, request: Request) -> Known:
        """It cannot."""
        raise NotImplementedError


def found(connection: sqlite3.Connection, key: str) -> str:
    """The receipt of the first effect of a key, or ""."""
    first = "SELECT min(rowid) FROM effects WHERE key = ?"
    (row,) = connection.execute(first, (key,)).fetchone()
    return f"receipt {row}" if row else ""


def _admitted(connection: sqlite3.Connection, request: Request) -> bool:
    """Whether no newer claim, and no look-up, stands against this try."""
    last = "SELECT fence, attempt FROM closed WHERE key = ?"
    fence, attempt = connection.execute(last, (request.key,)).fetchone() or (0, 0)
    if (request.fence, request.attempt) <= (fence, attempt):  # breakpoint: older claim
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
