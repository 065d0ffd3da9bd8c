"""LangGraph's saver on SQLite, where no cancel and no error leaves a write half done.

Each of its writes is a statement and a commit on the one connection of the process. A cancel
between these two would leave the transaction open, and with it the lock of the whole database.
"""

from collections.abc import Coroutine
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from labkit.recovery.cancel import to_the_end


class WholeWrites(AsyncSqliteSaver):
    """The saver; a cancel leaves after the write that is under way."""

    async def aput(self, *given: Any, **more: Any) -> Any:
        """Keep a checkpoint."""
        return await to_the_end(self._whole(super().aput(*given, **more)), name="checkpoint")

    async def aput_writes(self, *given: Any, **more: Any) -> None:
        """Keep what a step has done."""
        await to_the_end(self._whole(super().aput_writes(*given, **more)), name="checkpoint")

    async def _whole(self, write: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await write
        except BaseException:
            async with self.lock:  # no other write is under way then
                await self.conn.rollback()
            raise
