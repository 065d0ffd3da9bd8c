"""Refuses the outside world in a thread that runs a simulation.

A virtual clock cannot wait for a socket, a thread, a process or a real sleep, so code that asks for
one gets `Refused` with the cure, instead of a run that hangs or differs the next time. Python's
audit events tell of all of them. An audit hook stays for the life of the process and so is added
once, when the first simulation starts; threads that run no simulation pass it untouched.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .errors import Refused

_CURES: Final = {
    "socket.connect": ("a network connection", "use a fake provider"),
    "socket.bind": ("a server", "use a fake provider"),
    "socket.getaddrinfo": ("a name look-up", "use a fake provider"),
    "subprocess.Popen": ("a subprocess", "use a fake service"),
    "os.system": ("a subprocess", "use a fake service"),
    "os.fork": ("a subprocess", "use a fake service"),
    "os.posix_spawn": ("a subprocess", "use a fake service"),
    "_thread.start_new_thread": ("a thread", "start an asyncio task"),
    "_thread.start_joinable_thread": ("a thread", "start an asyncio task"),
    "time.sleep": ("time.sleep", "await asyncio.sleep"),
}


class _Guarded(threading.local):
    active = False
    installed = False


_here: Final = _Guarded()
_install: Final = threading.Lock()
_hooks: Final[list[Any]] = []  # the one hook, once it is there; it cannot be removed


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if event in _CURES and _here.active:
        what, cure = _CURES[event]
        raise Refused(f"{what} was refused: a simulation has none; {cure}")


@contextmanager
def guarded() -> Iterator[None]:
    """Refuse the outside world in this thread for the length of the block."""
    with _install:
        if not _hooks:
            _hooks.append(_hook)
            sys.addaudithook(_hook)
    _here.active = True
    try:
        yield
    finally:
        _here.active = False
