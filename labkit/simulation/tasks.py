"""The tasks of one loop, in the order of their creation, each with a name of its own."""

import asyncio
from collections.abc import Coroutine
from typing import Any

_MANY = 100


class Tasks:
    """Names tasks and keeps those that are not done, or failed with nobody looking."""

    def __init__(self) -> None:
        self._all: list[asyncio.Task[Any]] = []
        self._prune_at = _MANY
        self._new: list[tuple[asyncio.Task[Any], str]] = []
        self._taken: dict[str, int] = {}  # name -> the last number given beside it

    def default_name(self, coroutine: Coroutine[Any, Any, Any]) -> str:
        """The coroutine's name, with a number where that is taken.

        To be asked for every task, also a named one: some versions of asyncio set the caller's name
        only after the loop has made the task.
        """
        return self._free(getattr(coroutine, "__name__", "task"))

    def add(self, task: asyncio.Task[Any], default: str) -> None:
        """Keep a new task, which had the name `default` to choose."""
        if len(self._all) > self._prune_at:
            self._all = [known for known in self._all if not known.done() or _unseen(known)]
            self._prune_at = _MANY + 2 * len(self._all)
        self._all.append(task)
        self._new.append((task, default))

    def name_new(self) -> None:
        """Give a number to each new task whose chosen name is taken."""
        for task, default in self._new:
            name = task.get_name()
            if name != default:
                task.set_name(self._free(name))
        self._new.clear()

    def pending(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done."""
        self.name_new()
        return [task for task in self._all if not task.done()]

    def unseen(self) -> list[asyncio.Task[Any]]:
        """The tasks that failed, and nobody has looked."""
        return [task for task in self._all if _unseen(task)]

    def _free(self, name: str) -> str:
        if name not in self._taken:
            self._taken[name] = 1
            return name
        self._taken[name] += 1
        return self._free(f"{name} {self._taken[name]}")


def _unseen(task: Any) -> bool:
    return bool(task.done() and task._log_traceback)  # asyncio's own mark for its warning
