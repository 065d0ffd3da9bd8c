"""The async generators of one loop: closed when they are dropped, or at the end of the run.

As in the standard loop, one that is dropped half-way gets a task that closes it.
"""

import asyncio
import threading
import weakref
from typing import Any, Final

CLOSING: Final = "closing a generator"
_MANY: Final = 1_000


class Generators:
    """Hears of each async generator by the two hooks that Python has for a loop."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._thread = threading.get_ident()
        self._known: list[weakref.ref[Any]] = []  # a WeakSet would have the order of addresses
        self._closing: list[asyncio.Task[Any]] = []

    def first_used(self, generator: Any) -> None:
        """Hook: the loop's thread iterates over `generator` for the first time."""
        self._known.append(weakref.ref(generator))
        if len(self._known) > _MANY:
            self._known = [ref for ref in self._known if ref() is not None]

    def abandoned(self, generator: Any) -> None:
        """Hook: nobody holds `generator` any more; it may come from any thread, at any time."""
        if threading.get_ident() == self._thread and not self._loop.is_closed():
            self._loop.call_soon(self._close, generator)

    def open(self) -> list[asyncio.Task[Any]]:
        """A task for each generator that is still open, to be driven by the caller."""
        for generator in [found for ref in self._known if (found := ref()) is not None]:
            if generator.ag_frame is not None and not generator.ag_running:
                self._close(generator)
        return self._closing

    def _close(self, generator: Any) -> None:
        # In place: whoever drives the list to its end must see what is added meanwhile.
        self._closing[:] = [task for task in self._closing if not task.done()]
        self._closing.append(asyncio.Task(generator.aclose(), loop=self._loop, name=CLOSING))
