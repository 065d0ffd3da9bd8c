"""Names the line at which a task stands.

`Task.get_stack()` stops at the outermost frame, and an async generator hides behind the object that
its `anext` returned; this follows the chain of awaits to the innermost frame outside asyncio and
outside this room.
"""

import asyncio
import gc
import pathlib
import sys
import types
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from .processes import owner

_NOBODYS: Final = (f"{pathlib.Path(asyncio.__file__).parent}/", f"{pathlib.Path(__file__).parent}/")
_STEPS: Final = 100
_MOST: Final = 8  # tasks that a message names


def where(task: asyncio.Task[Any], files: Collection[str] = ()) -> tuple[str, int, str]:
    """File, line and function at which `task` stands; ("", 0, "") when no frame is to be had.

    The innermost frame in one of `files`, where there is one, else the innermost of all.
    """
    found = readable = ("", 0, "")
    for frame in _frames(task):
        code = frame.f_code
        if not code.co_filename.startswith(_NOBODYS):
            found = (code.co_filename, frame.f_lineno, code.co_name)
            readable = found if code.co_filename in files else readable
    return readable if readable[0] else found


def describe(tasks: Sequence[asyncio.Task[Any]]) -> str:
    """One phrase for a message: the tasks' names, where they stand, and who stands still."""
    told = []
    for task in tasks[:_MOST]:
        file, line, function = where(task)
        place = f" at {pathlib.Path(file).name}:{line} in {function}" if file else ""
        process = owner(task)
        still = process is not None and process.state != "running"
        told.append(f"task {task.get_name()!r}{place}{f' ({process!r})' if still else ''}")
    if len(tasks) > _MOST:
        told.append(f"and {len(tasks) - _MOST} more")
    return "; ".join(told) or "no task"


def _frames(task: asyncio.Task[Any]) -> Iterator[types.FrameType]:
    """The frames of `task`, outermost first."""
    awaitable: Any = task.get_coro()
    if getattr(awaitable, "cr_running", False):
        yield from reversed(list(_up_to(awaitable.cr_frame)))
        return
    for _ in range(_STEPS):
        frame, awaitable = _inside(awaitable)
        if frame is not None:
            yield frame
        if awaitable is None:
            return


def _up_to(outermost: types.FrameType) -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = None if frame is outermost else frame.f_back


def _inside(awaitable: Any) -> tuple[types.FrameType | None, Any]:
    """The frame of `awaitable` and what it waits for in turn."""
    for prefix, inner in (("cr", "await"), ("ag", "await"), ("gi", "yieldfrom")):
        if hasattr(awaitable, f"{prefix}_frame"):
            return getattr(awaitable, f"{prefix}_frame"), getattr(awaitable, f"{prefix}_{inner}")
    if type(awaitable).__name__.startswith(("async_generator_", "anext_")):
        return None, next(filter(_is_link, gc.get_referents(awaitable)), None)
    return None, None


def _is_link(candidate: Any) -> bool:
    kinds = (types.AsyncGeneratorType, types.CoroutineType, types.GeneratorType)
    return isinstance(candidate, kinds) or type(candidate).__name__.startswith("async_generator_")
