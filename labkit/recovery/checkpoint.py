"""The newest state of a session, and how it is written: one version after another.

A change counts at once, and its write is never left half done: a cancel that arrives meanwhile
leaves when the write has ended. The store refuses a write whose version is not the newest, so that
the late write of a turn that was stopped long ago cannot undo what came after it.

    checkpointer = Checkpointer(session, store.write)
    await checkpointer.save(begin_turn(checkpointer.session, "Where is it?"), "user")
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from .cancel import to_the_end
from .session import Draft, Session, StaleSession

Write = Callable[[Session], Awaitable[int]]


class Checkpointer:
    """Holds `session`. `write(session)` stores it and gives its new version.

    `observe("checkpoint", step=...)` is told after each write that finished a step, and
    `observe("draft", ...)` of text that was shown and never became an answer.
    """

    def __init__(
        self, session: Session, write: Write, observe: Callable[..., object] | None = None
    ) -> None:
        self.session = session
        self._write = write
        self._observe = observe
        self._writing = asyncio.Lock()

    async def save(self, changed: Session, step: str = "") -> None:
        """Take `changed` as the session and write it; a `step` is told when it is written.

        Writes follow one another, and each holds whatever has changed by then. Raises what the
        store raises, such as `StaleSession`: the change is kept here, and the next write brings it.
        """
        drafts = changed.drafts[len(self.session.drafts) :]
        self.session = changed
        await to_the_end(self._save(step, drafts), name=f"save {step or 'draft'}")

    async def _save(self, step: str, drafts: Sequence[Draft]) -> None:
        async with self._writing:
            version = await self._write(self.session)
            self.session = replace(self.session, version=version)  # breakpoint: checkpoint saved
        if self._observe is None:
            return
        for draft in drafts:
            self._observe("draft", text=draft.text, reason=draft.reason)
        if step:
            self._observe("checkpoint", step=step, version=version)


class MemorySessions:
    """A store that forgets with its process; `delay` is how long each write takes, in seconds."""

    def __init__(self, delay: float = 0.0) -> None:
        self.kept: dict[str, Session] = {}
        self._delay = delay

    def load(self, session_id: str) -> Session:
        """The session, or a new one."""
        return self.kept.get(session_id, Session(session_id))

    async def write(self, session: Session) -> int:
        """Keep it and give its version; raises `StaleSession` where another write came first."""
        if self._delay:
            await asyncio.sleep(self._delay)
        version = next_version(session, self.load(session.session_id))
        self.kept[session.session_id] = replace(session, version=version)
        return version


def next_version(session: Session, stored: Session) -> int:
    """The version that `session` is stored as; raises `StaleSession` if it knows not the newest."""
    if session.version != stored.version:  # breakpoint: version check
        told = f"version {session.version} of session {session.session_id!r}"
        raise StaleSession(f"{told} is not the newest, which is {stored.version}: load it again")
    return stored.version + 1
