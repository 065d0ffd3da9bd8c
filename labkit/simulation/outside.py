"""Refuses the outside world: to the thread that runs a simulation, and to its loop.

A virtual clock cannot wait for a socket, a thread, a process or a real sleep, so code that asks for
one gets `Refused` with the cure, instead of a run that hangs or differs the next time. Python's
audit events tell of them; where an older Python has no event for a thread or for `time.sleep`, the
function itself asks. Both stay for the life of the process and so are put in once, when the first
simulation starts; threads that run no simulation pass untouched.

Not refused: `time.time()` and the global `random`, which are harmless in a log line. Where they
decide anything, recording finds that the run differs and raises `NotDeterministic`. Nor are waits
that Python does not tell of, such as `threading.Event.wait`: await asyncio's own instead.
"""

import _thread
import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import cache, partial, wraps
from typing import Any, Final, NoReturn

from .errors import Refused

_EVENTS: Final = {  # audit events, by what they stand for and the cure
    ("a network connection", "use a fake provider"): "socket.connect socket.sendto socket.sendmsg",
    ("a server", "use a fake provider"): "socket.bind",
    ("a name look-up", "use a fake provider"): "socket.getaddrinfo socket.gethostbyname "
    "socket.gethostbyaddr socket.getnameinfo",
    ("a subprocess", "use a fake service"): "subprocess.Popen os.system os.fork os.forkpty os.exec "
    "os.posix_spawn",
    ("a thread", "start an asyncio task"): "_thread.start_new_thread _thread.start_joinable_thread",
    ("time.sleep", "await asyncio.sleep"): "time.sleep",
}
_REFUSALS: Final = {event: told for told, events in _EVENTS.items() for event in events.split()}

# Functions that have no audit event before a version of Python, and the event they stand for.
_SILENT: Final = (
    ((3, 12), threading, "_start_new_thread", "_thread.start_new_thread"),
    ((3, 12), _thread, "start_new_thread", "_thread.start_new_thread"),
    ((3, 13), time, "sleep", "time.sleep"),
)

Note = Callable[[str], object]


class _Here(threading.local):
    note: Note | None = None  # set while this thread runs a simulation


_here: Final = _Here()


def refuse(what: str, cure: str) -> NoReturn:
    """Raise `Refused`, and note it first: the code under study may well swallow the error."""
    if _here.note is not None:
        _here.note(what)
    raise Refused(f"{what} was refused: a simulation has none; {cure}")


def refuse_inside() -> None:
    """Refuse a simulation within a simulation: the inner one would need a thread."""
    if _here.note is not None:
        refuse("a simulation", "await the inner client itself")


@contextmanager
def guarded(note: Note) -> Iterator[None]:
    """Refuse the outside world in this thread for the length of the block; `note` is told what."""
    _install()
    _here.note = note
    try:
        yield
    finally:
        _here.note = None


@contextmanager
def loading() -> Iterator[None]:
    """Let a run import a library in the block: what an import asks of the machine is not the run's.

    A first run would ask where a second one does not, and so would not be the same.
    """
    note, _here.note = _here.note, None
    try:
        yield
    finally:
        _here.note = note


@cache  # once: a hook cannot be removed
def _install() -> None:
    sys.addaudithook(_hook)
    for version, module, name, event in _SILENT:
        if sys.version_info < version:
            setattr(module, name, _asking(getattr(module, name), event))


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event in _REFUSALS and _here.note is not None and not _of_a_debugger(args):
        refuse(*_REFUSALS[event])


def _asking(function: Callable[..., Any], event: str) -> Callable[..., Any]:
    @wraps(function)
    def asks(*args: Any, **options: Any) -> Any:
        _hook(event, args)
        return function(*args, **options)

    return asks


def _of_a_debugger(args: tuple[Any, ...]) -> bool:
    """Whether it is a thread of debugpy's own: it starts some from the code that it traces."""
    function: Any = args[0] if args else None
    function = getattr(function, "original_func", function)  # debugpy wraps everybody's threads
    owner = type(function.__self__) if hasattr(function, "__self__") else function
    return str(getattr(owner, "__module__", "")).startswith(("pydevd", "_pydevd"))


# Anything, to the type checker: it would ask here for all the methods of an asyncio loop.
_Loop: Any = asyncio.AbstractEventLoop


class Outside(_Loop):  # type: ignore[misc]  # see above
    """A loop that belongs to one thread and has no world around it: what it lacks is refused.

    `inline_executor`, when given, is told the function's name and lets executor calls run on the
    spot, as an unmodified SDK needs; without it they are refused.
    """

    def __init__(self, inline_executor: Callable[[str], object] | None = None) -> None:
        self._inline_executor = inline_executor
        self._thread = threading.get_ident()

    def call_soon_threadsafe(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Any:
        """As `call_soon`, from the loop's own thread only: another's timing is not repeatable."""
        if threading.get_ident() != self._thread:
            raise Refused("a call from another thread was refused: a simulation has one thread")
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Run `func` on the spot where the run allows it, else refuse."""
        name = _title(func)
        if self._inline_executor is None:
            refuse(f"a thread for {name!r}", "await an async function")
        self._inline_executor(name)
        future: asyncio.Future[Any] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    get_debug = staticmethod(bool)  # False: debug mode reads the wall clock

    def get_task_factory(self) -> None:
        """There is none: anyio asks, before it starts a task."""


def _title(function: Any) -> str:
    """The function's name; `asyncio.to_thread` wraps it as `partial(context.run, function)`."""
    while isinstance(function, partial):
        wrapped = function.args and getattr(function.func, "__name__", "") == "run"
        function = function.args[0] if wrapped else function.func
    return str(getattr(function, "__name__", "a function"))


def refusing(name: str) -> Callable[..., Any]:
    """A method of that name which says that a virtual loop has none."""

    def method(self: Outside, *args: Any, **options: Any) -> Any:
        refuse(f"the loop's {name}", "use a fake provider or service, or a task")

    return method
