"""Ends a learner's code that spins for ever in plain Python, where no event loop can see it.

within(3.0, lambda: may_retry(error, visible=True))     # its value, or `NeverEnds`
"""

import ctypes
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

T = TypeVar("T")

TRIES: Final = 5  # code that catches everything takes more than one
BREATH: Final = 0.1  # seconds for the code to end


class NeverEnds(Exception):
    """The code did not come back: look for a loop that nothing ends."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work()` returns or raises, in at most `seconds` of real time; else `NeverEnds`.

    It runs in a thread, which is stopped, with any simulation that it started, also when the
    kernel is interrupted.
    """
    outcome: Future[T] = Future()
    before = set(threading.enumerate())
    thread = threading.Thread(target=_run, args=(work, outcome), daemon=True)
    thread.start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():
            raise  # the work's own
        raise NeverEnds(
            f"It did not end within {seconds:g} s: is there a loop without end? "
            "If the next cell does not run, restart the kernel."
        ) from None
    finally:
        _stop(thread, before)


def _run(work: Callable[[], T], outcome: "Future[T]") -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)


def _stop(thread: threading.Thread, before: set[threading.Thread]) -> None:
    raiser = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for _ in range(TRIES):
        thread.join(BREATH)
        if not thread.is_alive():
            return
        inner = [t for t in set(threading.enumerate()) - before if t.name == "simulation"]
        for each in inner or [thread]:
            raiser(ctypes.c_ulong(each.ident or 0), ctypes.py_object(KeyboardInterrupt))
