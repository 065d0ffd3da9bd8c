"""Runs one piece of work in a thread of its own, joined, and ends it when the kernel is interrupted.

A thread, since a notebook's own event loop is running already and asyncio allows one a thread.
"""

import ctypes
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Final, TypeVar

T = TypeVar("T")

_PATIENCE: Final = 0.5  # seconds for the work to notice its flag


def in_thread(work: Callable[[], T], interrupt: Callable[[], None]) -> T:
    """Return what `work()` returns, or raise what it raises.

    On `KeyboardInterrupt` it calls `interrupt`, which sets a flag that the work looks at; work that
    is stuck in plain Python code and looks at nothing gets the exception thrown into it. Then the
    `KeyboardInterrupt` leaves.
    """
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=copy_context().run, args=(body,), name="simulation")
    thread.start()
    try:
        thread.join()
    except KeyboardInterrupt:
        interrupt()
        thread.join(_PATIENCE)
        _throw_into(thread)
        raise
    if failure:
        raise failure[0]
    return outcome[0]


def _throw_into(thread: threading.Thread) -> None:
    if thread.is_alive() and thread.ident is not None:
        raiser = ctypes.pythonapi.PyThreadState_SetAsyncExc
        raiser(ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt))
        thread.join(_PATIENCE)
