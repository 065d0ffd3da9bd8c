"""A program with all that it has started: found, and ended as a whole.

To end a program alone leaves running what it has started. Three things tell what belongs to it: the
session that was made for it, a parent that belongs to it, and a mark in the environment, which is
inherited. So what has left the session, or has lost its parent, is found too. Whatever is found is
halted at once, so that it begets nothing more while the rest is looked for; then all is killed.

Not found is only what leaves the session, and its parent, and its environment. What exists on one
system only stands here, for this room: Windows has no sessions, and does with the other two.

    mark = new_mark()
    started = subprocess.Popen(argv, env=environment(mark), start_new_session=True)
    end_tree(started.pid, mark)
    started.wait()      # the program itself is still its starter's to reap
"""

import ctypes
import os
import secrets
import sys
import time
from contextlib import suppress
from typing import Any, Final

import psutil

MARK: Final = "LABKIT_PROGRAM"
# What a program may see of our own environment, which also holds the keys of providers.
KEPT: Final = "PATH HOME LANG LC_ALL TMPDIR TEMP TMP SYSTEMROOT COMSPEC PATHEXT USERPROFILE".split()

SEARCH: Final = 3.0  # seconds to find all of a tree
PATIENCE: Final = 0.2  # seconds until what was killed is dead
LOOK: Final = 0.001  # seconds between two looks
SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of Linux

Process = Any  # psutil ships no types


def new_mark() -> str:
    """A word that no other program has; it begins with who starts it."""
    return f"{os.getpid()}-{secrets.token_hex(8)}"


def environment(mark: str) -> dict[str, str]:
    """The variables of a program that is to be found again by `mark`."""
    return {MARK: mark, **{name: os.environ[name] for name in KEPT if name in os.environ}}


def tree(pid: int, mark: str) -> set[Process]:
    """Every process of the program that was started as `pid`, those included that have ended."""
    everybody = {p.pid: p for p in psutil.process_iter(["ppid", "environ"])}
    ours = {number for number, p in everybody.items() if _belongs(p, pid, mark)}
    while more := {n for n, p in everybody.items() if p.info["ppid"] in ours} - ours:
        ours |= more
    return {everybody[number] for number in ours}


def _belongs(process: Process, session: int, mark: str) -> bool:
    if (process.info["environ"] or {}).get(MARK) == mark:
        return True
    with suppress(AttributeError, OSError):  # no sessions on Windows; or it is gone
        return os.getsid(process.pid) == session
    return False


def end_tree(pid: int, mark: str) -> None:
    """Kill the program and all that it has started, and reap all but the program itself.

    It takes some milliseconds. What starts others for longer than `SEARCH` is given up, and what
    even a kill does not end after `PATIENCE`.
    """
    known: set[Process] = set()
    until = time.monotonic() + SEARCH
    while (fresh := tree(pid, mark) - known) and (not known or time.monotonic() < until):
        for process in fresh:
            with suppress(psutil.Error):
                process.suspend()
        known |= fresh
    _adopt_orphans(True)
    try:
        for process in known:
            with suppress(psutil.Error):
                process.kill()
        until = time.monotonic() + PATIENCE
        while any(map(_alive, known)) and time.monotonic() < until:
            time.sleep(LOOK)
        for number in {process.pid for process in known} - {pid}:
            with suppress(AttributeError, ChildProcessError):  # on Windows; or it is not ours
                os.waitpid(number, os.WNOHANG)
    finally:
        _adopt_orphans(False)


def _alive(process: Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def _adopt_orphans(ours: bool) -> None:
    """Whether a process of ours that loses its parent becomes our child, so that we can reap it.

    Else it goes to the first process, which in a container may be slow, or may reap nothing at all.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, int(ours), 0, 0, 0)
