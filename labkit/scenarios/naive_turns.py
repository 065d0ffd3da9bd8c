"""Turns that each get one thing wrong, to be seen before the right one."""

import asyncio
from dataclasses import replace
from typing import Any

from labkit.recovery.checkpoint import Checkpointer
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.session import Session, close_turn

from .office import QUESTION, Office


class RollsBack(Checkpointer):
    """A stop puts the session back to where it was before the turn."""

    def __init__(self, session: Session, *more: Any) -> None:
        super().__init__(session, *more)
        self._before = session

    async def save(self, changed: Session, step: str = "") -> None:
        """Save, but at the end of a turn without an answer the state before it."""
        if step == "closed":
            version = self.session.version
            changed = Session(changed.session_id, version, self._before.messages)
        await super().save(changed, step)


class SavesLate(Checkpointer):
    """One checkpoint before the tools and one after all of them; a stop goes back to the first."""

    _late: Session | None = None  # what was stored before the tools

    async def save(self, changed: Session, step: str = "") -> None:
        """Save all but what happens between the tools of one answer."""
        if step == "closed" and self._late is not None:
            changed = _closed(self._late, changed)
        self._late = self._late or self.session if step in ("running", "tool") else None
        if step in ("running", "tool"):
            self.session = changed
        else:
            await super().save(changed, step)


def _closed(stored: Session, closed: Session) -> Session:
    """What a turn closed from the checkpoint that was stored would be."""
    again = close_turn(stored, "stopped")
    return replace(
        again, version=closed.version, messages=(*again.messages[:-1], closed.messages[-1])
    )


async def swallows(office: Office, policy: RetryPolicy) -> str:
    """The cancel becomes an error text, as if it had been any failure."""
    try:
        return await office.turn(QUESTION, policy)
    except asyncio.CancelledError as error:
        return f"Error: {type(error).__name__}"
