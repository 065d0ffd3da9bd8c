"""Runs one program at a time limit, and leaves nothing of it behind.

However it ends, by itself, at the limit or by a cancel: all that it has started ends with it and is
gone when `run_program` returns. Its output is read while it runs and takes a bounded room. It has
no input, and sees of our environment what it needs, which is no key.

    ended = await run_program([sys.executable, "-c", "print('hello')"], folder=folder)
    ended.text          # "hello\\n[exit code 0]"

What it has left in the background may go on writing for a short grace; then it is ended, so that
nobody waits for a pipe that it holds open.
"""

import asyncio
import codecs
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from labkit.recovery.cancel import to_the_end
from labkit.recovery.errors import RecoveryError
from labkit.recovery.tools import Arguments, Tool

from .process_tree import end_tree, environment, new_mark

LIMIT: Final = 60.0  # seconds for one program
MOST: Final = 10_000  # characters of output that are kept
GRACE: Final = 0.5  # seconds for output that comes after the program's own end
REAPING: Final = 2.0  # seconds until a program that was killed is reaped


class NotStarted(RecoveryError):
    """The program never ran: the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What came of a program.

    `code`: its exit code, minus the number of a signal that ended it, or None where nothing could
    end it. `output`: what it wrote to both outputs, in that order; of too much the first and the
    last half, with `left_out` characters in between. `limit`: the seconds after which it was ended,
    or None where it ended by itself.
    """

    code: int | None
    output: str
    left_out: int = 0
    limit: float | None = None

    @property
    def text(self) -> str:
        """All of it as the result of a tool."""
        gap = "" if self.output.endswith("\n") or not self.output else "\n"
        if self.limit is not None:
            return f"{self.output}{gap}[ended after {self.limit:g} seconds, its time limit]"
        return f"{self.output}{gap}[exit code {self.code}]"


async def run_program(
    argv: Sequence[str],
    *,
    folder: str | os.PathLike[str],
    limit: float = LIMIT,
    most: int = MOST,
    grace: float = GRACE,
) -> Ended:
    """Run the program `argv[0]` with its arguments in `folder`; see the constants for the units.

    Raises `NotStarted` for what cannot be run. A cancel ends the program with all that it has
    started, and leaves when that is done; a second one meanwhile changes nothing.
    """
    _refuse(argv, folder, limit, most)
    program = _Program(most)
    try:
        await to_the_end(program.start(argv, folder), name="start")
        await asyncio.wait([program.exited], timeout=limit)
        in_time = program.exited.done()
        if in_time:
            await asyncio.wait([program.closed], timeout=grace)
    finally:
        await to_the_end(program.end(grace), name="end")  # breakpoint: program ended
    output, left_out = program.output.read()
    past = None if in_time else limit
    return Ended(code=program.code, output=output, left_out=left_out, limit=past)


def program_tool(
    programs: Mapping[str, Sequence[str]],
    *,
    folder: str | os.PathLike[str],
    limit: float = LIMIT,
    most: int = MOST,
) -> Tool:
    """A tool with which a model runs one of `programs` by its name, and nothing else."""

    def check(arguments: Arguments) -> str:
        if arguments.get("program") in tuple(programs):
            return ""
        return f"program must be one of: {', '.join(programs)}"

    async def run(arguments: Arguments, key: str) -> str:
        argv = programs[arguments["program"]]
        try:
            return (await run_program(argv, folder=folder, limit=limit, most=most)).text
        except NotStarted as error:
            return str(error)

    return Tool(name="run_program", run=run, check=check, limit=limit + 2 * REAPING)


def _refuse(argv: Sequence[str], folder: str | os.PathLike[str], limit: float, most: int) -> None:
    numbers = isinstance(limit, (int, float)) and isinstance(most, int)
    if not numbers or not 0 < limit < float("inf") or most < 2:
        raise ValueError(f"limit is {limit!r} and most {most!r}: seconds above 0, at least 2")
    if isinstance(argv, str) or not argv or not all(isinstance(word, str) for word in argv):
        raise NotStarted(f"{argv!r} is no program: give a list of words, the program first")
    if not isinstance(folder, (str, os.PathLike)) or not Path(folder).is_dir():
        raise NotStarted(f"there is no folder {str(folder)!r}: make it first")


class _Program(asyncio.SubprocessProtocol):
    """One program, from its start to its end; it is told by the loop what happens."""

    def __init__(self, most: int) -> None:
        loop = asyncio.get_running_loop()
        self.output = _Output(most)
        self.code: int | None = None
        self.exited: asyncio.Future[None] = loop.create_future()
        self.closed: asyncio.Future[None] = loop.create_future()
        self._mark = new_mark()
        self._transport: asyncio.SubprocessTransport | None = None

    async def start(self, argv: Sequence[str], folder: str | os.PathLike[str]) -> None:
        """Start it, away from our own terminal and session. Raises `NotStarted`."""
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.STDOUT,
                cwd=folder,
                env=environment(self._mark),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            cure = "name a program that is there and may be run"
            raise NotStarted(f"{argv[0]!r} could not be started: {reason}; {cure}") from error

    async def end(self, grace: float) -> None:
        """End what is left of it, and wait, for a bounded time, until it is reaped."""
        if self._transport is not None:
            end_tree(self._transport.get_pid(), self._mark)
            await asyncio.wait([self.exited], timeout=REAPING)
            await asyncio.wait([self.closed], timeout=grace)  # the rest of what it had written
            self._transport.close()

    # What the loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output.add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)

    def process_exited(self) -> None:  # at once, while others may still hold the pipe
        assert self._transport is not None
        self.code = self._transport.get_returncode()
        self.exited.set_result(None)


class _Output:
    """The first and the last half of a text of `most` characters, whatever its whole length."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._first = most - self._half
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._head = self._tail = ""
        self._count = 0

    def add(self, data: bytes, final: bool = False) -> None:
        text = self._decode(data, final)
        room = self._first - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._half :]
        self._count += len(text)

    def read(self) -> tuple[str, int]:
        """The text, and how many characters were left out of it."""
        self.add(b"", final=True)
        left_out = self._count - len(self._head) - len(self._tail)
        gap = f"\n[{left_out:,} characters left out]\n" if left_out else ""
        return self._head + gap + self._tail, left_out
