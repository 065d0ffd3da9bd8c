"""Refuses the outside world in a thread that runs a simulation.

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
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NoReturn

from .errors import Refused

_PROVIDER: Final = "use a fake provider"
_SERVICE: Final = "use a fake service"
_EVENTS: Final = {
    "socket.connect": ("a network connection", _PROVIDER),
    "socket.sendto": ("a network connection", _PROVIDER),
    "socket.sendmsg": ("a network connection", _PROVIDER),
    "socket.bind": ("a server", _PROVIDER),
    "socket.getaddrinfo": ("a name look-up", _PROVIDER),
    "socket.gethostbyname": ("a name look-up", _PROVIDER),
    "socket.gethostbyaddr": ("a name look-up", _PROVIDER),
    "socket.getnameinfo": ("a name look-up", _PROVIDER),
    "subprocess.Popen": ("a subprocess", _SERVICE),
    "os.system": ("a subprocess", _SERVICE),
    "os.fork": ("a subprocess", _SERVICE),
    "os.forkpty": ("a subprocess", _SERVICE),
    "os.exec": ("a subprocess", _SERVICE),
    "os.posix_spawn": ("a subprocess", _SERVICE),
    "_thread.start_new_thread": ("a thread", "start an asyncio task"),
    "_thread.start_joinable_thread": ("a thread", "start an asyncio task"),
    "time.sleep": ("time.sleep", "await asyncio.sleep"),
}

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
_once: Final = threading.Lock()
_hooks: Final[list[Any]] = []  # the one hook, once it is there; it cannot be removed


def refuse(what: str, cure: str) -> NoReturn:
    """Raise `Refused`, and note it first: the code under study may well swallow the error."""
    if _here.note is not None:
        _here.note(what)
    raise Refused(f"{what} was refused: a simulation has none; {cure}")


def refuse_inside() -> None:
    """Refuse a simulation within a simulation: the inner one would need a thread."""
    if _here.note is not None:
        refuse("a simulation", "await the inner client itself")


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event in _EVENTS and _here.note is not None and not _of_a_debugger(args):
        refuse(*_EVENTS[event])


def _of_a_debugger(args: tuple[Any, ...]) -> bool:
    """Whether it is a thread of debugpy's own: it starts some from the code that it traces."""
    function: Any = args[0] if args else None
    function = getattr(function, "original_func", function)  # debugpy wraps everybody's threads
    owner = type(function.__self__) if hasattr(function, "__self__") else function
    return str(getattr(owner, "__module__", "")).startswith(("pydevd", "_pydevd"))


def _install() -> None:
    with _once:
        if not _hooks:
            _hooks.append(_hook)
            sys.addaudithook(_hook)
            for version, module, name, event in _SILENT:
                if sys.version_info < version:
                    setattr(module, name, _asking(getattr(module, name), event))


def _asking(function: Callable[..., Any], event: str) -> Callable[..., Any]:
    @wraps(function)
    def asks(*args: Any, **options: Any) -> Any:
        _hook(event, args)
        return function(*args, **options)

    return asks


@contextmanager
def guarded(note: Note) -> Iterator[None]:
    """Refuse the outside world in this thread for the length of the block; `note` is told what."""
    _install()
    _here.note = note
    try:
        yield
    finally:
        _here.note = None
