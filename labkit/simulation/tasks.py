"""What one loop holds: callbacks that wait for their turn, and tasks, each with its own name."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, Final

_MANY: Final = 100

Callback = Callable[..., object]


class Handle:
    """A callback that waits for its turn; `when` is 0 for one that is due now.

    asyncio's own would do, but is made of more calls, and a recording pays for each.
    """

    __slots__ = ("_args", "_callback", "_cancelled", "_context", "_when")

    def __init__(
        self, callback: Callback, args: tuple[Any, ...], context: Context | None, when: float = 0.0
    ) -> None:
        self._callback = callback
        self._args = args
        # An empty context is false, and still the one to use.
        self._context = copy_context() if context is None else context
        self._when = when
        self._cancelled = False

    def cancel(self) -> None:
        """Never run it; its slot is dropped when its turn comes, or when there are many."""
        self._cancelled = True
        self._args = ()

    def cancelled(self) -> bool:
        """Whether it was cancelled before it ran."""
        return self._cancelled

    def when(self) -> float:
        """The virtual time, in seconds, at which it is due."""
        return self._when


class Tasks:
    """Names tasks and keeps, in order, those that are not done, or failed with nobody looking."""

    def __init__(self) -> None:
        self._all: list[asyncio.Task[Any]] = []
        self._prune_at = _MANY
        self.new: list[tuple[asyncio.Task[Any], str]] = []
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
        self.new.append((task, default))

    def name_new(self) -> None:
        """Give a number to each new task whose chosen name is taken."""
        for task, default in self.new:
            name = task.get_name()
            if name != default:
                task.set_name(self._free(name))
        self.new.clear()

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
