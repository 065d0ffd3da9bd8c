"""Sessions in a folder: one JSON-lines file each, replaced as a whole, owned by one process.

A process that dies at any moment leaves the old file or the new one. A file that is not whole all
the same is refused, and never written over: `recover` goes on with the lines before the damage and
keeps the damaged file beside the new one.

    files = SessionFiles(folder)
    session = files.load("telegram:42")                # owned from now on
    checkpointer = Checkpointer(session, files.write)
    files.flush_all()                                  # through to the disk
    files.close()                                      # others may load them now
"""

import asyncio
import errno
import hashlib
import os
import re
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from labkit.recovery.checkpoint import next_version
from labkit.recovery.session import Session, SessionError, StaleSession

from .session_lines import decoded, encoded

PATIENCE: Final = 1.0  # seconds that a flush waits for a write that is under way


class SessionInUse(SessionError):
    """Another process has this session: end that one, or wait until it lets go."""


class SessionTorn(SessionError):
    """The file is not whole, and was left as it is: put a copy in its place, or `recover` it."""


class SessionNotSaved(SessionError):
    """The disk refused; the old file is whole. Make room there: the next write brings all."""


@dataclass(slots=True)
class _Held:
    """A session that this process owns, as it was last asked to be written."""

    session: Session
    lock: sqlite3.Connection
    writing: threading.Lock = field(default_factory=threading.Lock)


class SessionFiles:
    """The sessions whose files are in `folder`, which is made if it is not there.

    `call(function, *arguments)` does what may block the loop: in a thread, or at once for virtual
    time. `failures`: what the last `flush_all` could not write.
    """

    def __init__(
        self, folder: str | Path, *, call: Callable[..., Awaitable[Any]] = asyncio.to_thread
    ) -> None:
        self.failures: list[Exception] = []
        self._folder = Path(folder)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._call = call
        self._held: dict[str, _Held] = {}
        self._loading = threading.Lock()

    def path(self, session_id: str) -> Path:
        """Where a session is kept: a name that is safe on every system, and nobody else's."""
        readable = re.sub("[^a-z0-9]+", "-", session_id.lower())[:40].strip("-") or "session"
        digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self._folder / f"{readable}.{digest}.jsonl"

    def load(self, session_id: str) -> Session:
        """The session as it was written last, or a new one; it is owned until `release`.

        Raises `SessionInUse` and `SessionTorn`, and an `OSError` of the disk.
        """
        return self._take(session_id, recover=False)

    def recover(self, session_id: str) -> Session:
        """Load what is whole of a torn file; as it is, it stays beside the new one."""
        return self._take(session_id, recover=True)

    async def write(self, session: Session) -> int:
        """Keep the session and give its version.

        Raises `StaleSession` where another write came first or the session is not loaded, and
        `SessionNotSaved`. A cancel leaves at once, and the write goes on in its thread.
        """
        version: int = await self._call(self._write, session)
        return version

    def flush_all(self) -> int:
        """Write each loaded session again, through to the disk; how many were written."""
        self.failures = []
        loaded = list(self._held.values())
        for held in loaded:
            try:
                self._flush(held)
            except Exception as error:  # the others are written all the same
                self.failures.append(error)
        return len(loaded) - len(self.failures)

    def release(self, session_id: str) -> None:
        """Let go of a session: another process may load it, and nothing of it stays in memory.

        What the disk has refused is lost with it: `flush_all` before.
        """
        held = self._held.get(session_id)
        if held:
            with held.writing:
                self._held.pop(session_id, None)
                held.lock.close()

    def put_away(self, session_id: str) -> None:
        """Write a session through to the disk and let go of it; it stays where that fails."""
        if held := self._held.get(session_id):
            self._flush(held)
            self.release(session_id)

    def close(self) -> None:
        """Let go of all sessions."""
        for session_id in list(self._held):
            self.release(session_id)

    # --- with the lock

    def _take(self, session_id: str, *, recover: bool) -> Session:
        with self._loading:
            held = self._held.get(session_id)
            if held:
                return held.session
            lock = self._lock(session_id)
            try:
                session = self._read(session_id, recover)
            except BaseException:
                lock.close()
                raise
            self._held[session_id] = _Held(session, lock)
            return session

    def _lock(self, session_id: str) -> sqlite3.Connection:
        """An open transaction of SQLite, which ends with its process on every system.

        Its file is never removed: whoever had just opened it would hold a lock on nothing.
        """
        path = self.path(session_id).with_suffix(".lock")
        lock = None
        try:
            lock = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
            lock.execute("PRAGMA journal_mode = OFF")
            lock.execute("BEGIN EXCLUSIVE")
            return lock
        except sqlite3.Error as error:
            if lock:
                lock.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                told = f"session {session_id!r} is in use by somebody else"
                raise SessionInUse(f"{told}: end that one, or wait until it lets go") from None
            told = f"session {session_id!r} cannot be locked: {error}"
            raise SessionError(f"{told}; look at {path}") from None

    def _read(self, session_id: str, recover: bool) -> Session:
        path = self.path(session_id)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return Session(session_id)
        session, damage = decoded(data, session_id)
        if damage and not recover:
            told = f"session {session_id!r} is not whole: {damage}; {path.name} is left as it is"
            raise SessionTorn(f"{told}: put a copy in its place, or call recover({session_id!r})")
        if damage:
            with _free(path).open("xb") as aside:
                aside.write(data)
            self._replace(session, durable=True)
        return session

    def _write(self, session: Session) -> int:
        held = self._held.get(session.session_id)
        with held.writing if held else nullcontext():
            if held is None or self._held.get(session.session_id) is not held:
                told = f"session {session.session_id!r} is not loaded here"
                raise StaleSession(f"{told}: load it again; this write would undo another's")
            version = next_version(session, held.session)
            held.session = session  # a flush brings it where the disk refuses it now
            self._replace(replace(session, version=version))
            held.session = replace(session, version=version)
            return version

    def _flush(self, held: _Held) -> None:
        if not held.writing.acquire(timeout=PATIENCE):
            told = f"session {held.session.session_id!r} was not saved"
            raise SessionNotSaved(f"{told}: a write of it has not ended; look at the disk")
        try:
            if self._held.get(held.session.session_id) is held:  # else it was let go meanwhile
                self._replace(held.session, durable=True)
        finally:
            held.writing.release()

    def _replace(self, session: Session, *, durable: bool = False) -> None:
        """The new file takes the old one's place in one step, or not at all.

        Its first name is always the same, so that what a crash leaves there is written over.
        """
        path = self.path(session.session_id)
        new = path.with_suffix(".new")
        try:
            with new.open("wb") as file:
                file.writelines(encoded(session))
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            new.replace(path)
            if durable:
                _sync(self._folder)
        except OSError as error:
            told = f"session {session.session_id!r} was not saved: {error.strerror or error}"
            cure = "make room there, and the next write brings all"
            raise SessionNotSaved(f"{told}; {cure}") from error
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)


def _free(path: Path) -> Path:
    """A name beside `path` that nothing has."""
    number = 1
    while (aside := path.with_suffix(f".torn-{number}")).exists():
        number += 1
    return aside


def _sync(folder: Path) -> None:
    """See the folder's new entry to the disk, where the system can do that for a folder."""
    try:
        opened = os.open(folder, os.O_RDONLY)
    except PermissionError:  # Windows opens no folder
        return
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without it
            raise
    finally:
        os.close(opened)
