"""Faults at the byte level, on the way out of one connection.

    cut(frames(log), Cut("mid_frame", after=3))    # three frames, half a fourth, then a reset

A plain generator over a generator of frames, so it works in virtual time and on a socket alike. A
reset is `Dropped`: whoever sends the bytes makes one of it.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from labkit.providers.wire import Dropped

KINDS: Final = {
    "whole": "nothing is wrong",
    "mid_frame": "half a frame, then a reset",
    "between": "a reset between two frames",
    "clean_end": "the body ends as if all was said",
    "drip": "one byte at a time",
    "twice": "a frame is sent again",
    "swapped": "two frames change places",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """One connection's fault: `after` so many frames have gone out whole; comments do not count."""

    kind: str = "whole"
    after: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no cut {self.kind!r}; there is: {', '.join(KINDS)}")
        if type(self.after) is not int or self.after < 0:
            raise ValueError(f"after is {self.after!r}, and must be frames from 0")


async def cut(frames: AsyncGenerator[bytes, None], fault: Cut) -> AsyncGenerator[bytes, None]:
    """The bytes that go out instead of `frames`. Raises `Dropped` for a reset; closes `frames`."""
    number, held = 0, b""
    async with aclosing(frames):
        async for frame in frames:
            number += not frame.startswith(b":")
            past = number - fault.after  # 1: the frame at which it strikes
            if past < 1 or fault.kind == "whole":
                yield frame
            elif fault.kind == "clean_end":
                return
            elif fault.kind == "drip":
                for at in range(len(frame)):
                    yield frame[at : at + 1]
            elif fault.kind == "twice":
                yield frame * 2 if past == 1 else frame
            elif fault.kind == "swapped":
                held, frame = (frame, b"") if past == 1 else (b"", frame + held)
                if frame:
                    yield frame
            else:
                if fault.kind == "mid_frame":
                    yield frame[: len(frame) // 2]
                raise Dropped
    if held:
        yield held
