"""Names the line at which a suspended task waits.

`Task.get_stack()` stops at the outermost frame, and an async generator hides behind the object that
its `anext` returned; this follows the chain of awaits to the innermost frame outside asyncio.
"""

import asyncio
import gc
import pathlib
import types
from typing import Any, Final

_ASYNCIO: Final = str(pathlib.Path(asyncio.__file__).parent)
_STEPS: Final = 100


def _inside(awaitable: Any) -> tuple[types.FrameType | None, Any]:
    """The frame of `awaitable` and what it waits for in turn."""
    for prefix, inner in (("cr", "await"), ("ag", "await"), ("gi", "yieldfrom")):
        if hasattr(awaitable, f"{prefix}_frame"):
            return getattr(awaitable, f"{prefix}_frame"), getattr(awaitable, f"{prefix}_{inner}")
    if type(awaitable).__name__.startswith(("async_generator_", "anext_")):
        behind = [found for found in gc.get_referents(awaitable) if _is_link(found)]
        return None, behind[0] if behind else None
    return None, None


def _is_link(candidate: Any) -> bool:
    kinds = (types.AsyncGeneratorType, types.CoroutineType, types.GeneratorType)
    return isinstance(candidate, kinds) or type(candidate).__name__.startswith("async_generator_")


def where(task: asyncio.Task[Any]) -> tuple[str, int, str] | None:
    """File, line and function at which `task` waits; None when no frame is to be had."""
    found = None
    awaitable: Any = task.get_coro()
    for _ in range(_STEPS):
        if awaitable is None:
            break
        frame, awaitable = _inside(awaitable)
        if frame is not None and not frame.f_code.co_filename.startswith(_ASYNCIO):
            found = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
    return found


def describe(task: asyncio.Task[Any]) -> str:
    """One phrase for a message: the task's name and where it stands."""
    place = where(task)
    if place is None:
        return f"task {task.get_name()!r}"
    file, line, function = place
    return f"task {task.get_name()!r} at {pathlib.Path(file).name}:{line} in {function}"
