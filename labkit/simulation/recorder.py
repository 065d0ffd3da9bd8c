"""Records the lines that a run passes in the watched files.

Only line events count, a line counts as the first of its statement, and one equal to the frame's
previous one is dropped: so the places are the same with `sys.settrace` (Python 3.11) and with
`sys.monitoring` (3.12 and later). A line is seen before it runs.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from .errors import SimulationError

Files = Mapping[str, Mapping[int, int]]  # file -> line -> first line of its statement
OnLine = Callable[[FrameType, int, int, int], None]  # frame, its number, its caller's, line


class RecorderBusy(SimulationError):
    """A debugger or a coverage tool holds Python's tracing: step without it, or use it alone."""


class _Frames:
    """Gives each frame a number and drops repeated lines.

    Frames are known by address and never held: holding one would keep its locals alive and so
    change the run. An address may be used again, but every watched frame begins anew here, so what
    is known of the address of a live one is its own.
    """

    def __init__(self, files: Files, on_line: OnLine) -> None:
        self.files = files
        self._on_line = on_line
        self._count = 0
        self._known: dict[int, list[Any]] = {}  # address -> number, last line, lines' statements
        self.codes: dict[int, CodeType] = {}  # a code object is slow to hash

    def watches(self, code: CodeType) -> bool:
        return code.co_filename in self.files and not code.co_name.startswith(("<", "__"))

    def begin(self, frame: FrameType) -> None:
        self._count += 1
        code = frame.f_code
        self._known[id(frame)] = [self._count, 0, self.files[code.co_filename].get]
        self.codes[id(code)] = code

    def line(self, frame: FrameType, line: int) -> None:
        known = self._known[id(frame)]
        first = known[2](line, line)
        if known[1] == first:
            return
        known[1] = first
        caller = frame.f_back
        if caller is None or id(caller.f_code) not in self.codes:
            self._on_line(frame, known[0], 0, first)
        else:
            self._on_line(frame, known[0], self._known[id(caller)][0], first)


@contextmanager
def recording(files: Files, on_line: OnLine) -> Iterator[None]:
    """Call `on_line` at each line of `files` that this thread passes in the block.

    Raises `RecorderBusy` where something else holds the tracing.
    """
    frames = _Frames(files, on_line)
    by_monitoring = sys.version_info >= (3, 12)
    with (_monitoring if by_monitoring else _settrace)(frames):
        yield


@contextmanager
def _settrace(frames: _Frames) -> Iterator[None]:
    if sys.gettrace() is not None:
        cure = "restart the kernel with the debugger off, then step"
        raise RecorderBusy(f"a debugger or a coverage tool is tracing: {cure}")

    files, on_line = frames.files, frames.line

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            on_line(frame, frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        # Comes for every call in this thread and for every wake-up: the quick questions first.
        if frame.f_trace is not None:
            return local
        code = frame.f_code
        if code.co_filename not in files or not frames.watches(code):
            return None
        frames.begin(frame)
        return local

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def _monitoring(frames: _Frames) -> Iterator[None]:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool, events = _free_tool(monitoring), monitoring.events
    me = threading.get_ident()

    def start(code: CodeType, _: int) -> Any:
        if not frames.watches(code):
            return monitoring.DISABLE
        if threading.get_ident() == me:
            if id(code) not in frames.codes:
                monitoring.set_local_events(tool, code, events.LINE)
            frames.begin(sys._getframe(1))
        return None

    def line(code: CodeType, number: int) -> None:
        if threading.get_ident() == me:
            frames.line(sys._getframe(1), number)

    try:
        monitoring.restart_events()
        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code in frames.codes.values():
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, events.PY_START, None)
        monitoring.register_callback(tool, events.LINE, None)
        monitoring.free_tool_id(tool)


def _free_tool(monitoring: Any) -> int:
    """Take a slot; two threads that record at once need one each."""
    for tool in reversed(range(6)):
        try:
            monitoring.use_tool_id(tool, "labkit")
        except ValueError:
            continue
        return tool
    raise RecorderBusy("all of Python's monitoring slots are taken: end a debugger or profiler")
