"""Records the lines that a run passes in the watched files.

Only line events count, a line counts as the first of its statement, and one equal to the frame's
previous one is dropped: so the places are the same with `sys.settrace` (Python 3.11) and with `sys.monitoring` (3.12 and later). A line is
seen before it runs.
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
    """Gives each frame a serial number and drops repeated lines.

    Frames are known by address and never held: holding one would keep its locals alive and so
    change the run. A new call at an old address gets a new number.
    """

    def __init__(self, files: Files, on_line: OnLine) -> None:
        self._files = files
        self._on_line = on_line
        self._serial = 0
        self._numbers: dict[int, int] = {}
        self._lines: dict[int, int] = {}

    def watches(self, code: CodeType) -> bool:
        return code.co_filename in self._files and not code.co_name.startswith(("<", "__"))

    def begin(self, frame: FrameType) -> None:
        self._serial += 1
        self._numbers[id(frame)] = self._serial
        self._lines.pop(id(frame), None)

    def line(self, frame: FrameType, line: int) -> None:
        address = id(frame)
        line = self._files[frame.f_code.co_filename].get(line, line)
        if self._lines.get(address) != line:
            self._lines[address] = line
            back = frame.f_back
            if back is None or back.f_code.co_filename not in self._files:
                caller = 0
            else:
                caller = self._numbers.get(id(back), 0)
            self._on_line(frame, self._numbers.get(address, 0), caller, line)


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
        raise RecorderBusy("a debugger or a coverage tool is tracing: restart without it to step")

    def local(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            frames.line(frame, frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event != "call" or not frames.watches(frame.f_code):
            return None
        if frame.f_lineno == frame.f_code.co_firstlineno:  # else a coroutine goes on
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
    free = [number for number in range(6) if monitoring.get_tool(number) is None]
    if not free:
        raise RecorderBusy("all of Python's monitoring slots are taken: end a debugger or profiler")
    tool, events = free[-1], monitoring.events
    me = threading.get_ident()
    watched: list[CodeType] = []

    def start(code: CodeType, _: int) -> Any:
        if not frames.watches(code):
            return monitoring.DISABLE
        if threading.get_ident() == me:
            if code not in watched:
                watched.append(code)
                monitoring.set_local_events(tool, code, events.LINE)
            frames.begin(sys._getframe(1))
        return None

    def line(code: CodeType, number: int) -> Any:
        if threading.get_ident() == me:
            frames.line(sys._getframe(1), number)

    monitoring.use_tool_id(tool, "labkit")
    try:
        monitoring.restart_events()
        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)
        yield
    finally:
        monitoring.set_events(tool, 0)
        for code in watched:
            monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, events.PY_START, None)
        monitoring.register_callback(tool, events.LINE, None)
        monitoring.free_tool_id(tool)
