"""What `worker` and `serve` share: two files that must be apart, and signals that end in order.

must_be_apart(asked.store, asked.ledger)
with signals(ending.set):
    ...                                # the first signal calls that, a second leaves at once
"""

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from labkit.commands.environment import Missing


def must_be_apart(store: str, ledger: str) -> None:
    """Refuse a ledger in the file of the store, whose URL is given. Raises `Missing`."""
    if _file_of(store) == Path(ledger).resolve():
        raise Missing(f"--ledger {ledger} is the file of --store: name another one")


def _file_of(url: str) -> Path | None:
    """The file that a store is in; None where it is none, or its URL is none."""
    with suppress(ArgumentError):
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            return Path(parsed.database).resolve()
    return None


@contextmanager
def signals(end: Callable[[], object]) -> Iterator[None]:
    """SIGINT or SIGTERM calls `end`, a second one leaves at once; after the block all is as it was.

    `end` is called between two lines of the main thread, whatever these are.
    """
    asked = itertools.count(1)

    def ask(number: int, frame: FrameType | None) -> None:
        if next(asked) > 1:
            os._exit(128 + number)
        end()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
