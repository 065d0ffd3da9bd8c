"""Runs one piece of work in a thread of its own, joined, and ends it at an interrupt.

A thread, since a notebook's own event loop is running already and asyncio allows one a thread.
"""

import ctypes
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
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
    played: Future[T] = Future()

    def body() -> None:
        try:
            played.set_result(work())
        except BaseException as error:
            played.set_exception(error)

    target = copy_context().run  # so that prints find their cell
    thread = threading.Thread(target=target, args=(body,), name="simulation", daemon=True)
    collects = gc.isenabled()
    gc.disable()  # when it collects hangs on what was before, and it may close async generators
    try:
        thread.start()
        while not played.done():
            wait([played], _LOOK)
    except BaseException:
        interrupt()
        _end(thread, played)
        raise
    finally:
        if collects:
            gc.enable()
    thread.join()
    return played.result()


def _end(thread: threading.Thread, played: Future[T]) -> None:
    wait([played], _PATIENCE)
    for _ in range(_THROWS):
        if played.done() or thread.ident is None:
            return
        raiser = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raiser(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
        wait([played], _PATIENCE / _THROWS)
