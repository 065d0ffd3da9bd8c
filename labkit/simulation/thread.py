"""Runs one piece of work in a thread of its own, joined, and ends it at an interrupt.

A thread, since a notebook's own event loop is running already and asyncio allows one a thread.
"""

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Final, TypeVar

T = TypeVar("T")

_LOOK: Final = 0.2  # seconds; on Windows an interrupt is seen only between two looks
_PATIENCE: Final = 0.4  # seconds for the work to notice its flag
_THROWS: Final = 20  # one each 20 ms


def in_thread(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """Return what `work()` returns, or raise what it raises.

    On `KeyboardInterrupt` it calls `interrupt`, which sets a flag that the work looks at. Work that
    is stuck in plain Python and looks at nothing gets the exception thrown into it, again and again
    since it may catch it; after a second it is left behind. Then the `KeyboardInterrupt` leaves.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()  # after an interrupted join, 3.11 takes a living thread for dead

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    target = copy_context().run  # so that prints find their cell
    thread = threading.Thread(target=target, args=(body,), name="simulation", daemon=True)
    with _no_collection():
        try:
            thread.start()
            while not done.wait(_LOOK):
                pass
        except BaseException:
            interrupt()
            _end(thread, done)
            raise
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


@contextmanager
def _no_collection() -> Iterator[None]:
    """Switches the cycle collector off.

    When it runs depends on what the process did before, and it may close async generators.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def _end(thread: threading.Thread, done: threading.Event) -> None:
    done.wait(_PATIENCE)
    for _ in range(_THROWS):
        if done.is_set() or thread.ident is None:
            return
        raiser = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raiser(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
        done.wait(_PATIENCE / _THROWS)
