"""A tool server in a process of its own, spoken to in lines of JSON over its pipes.

The task that opens it must close it: a task group reads what the server says, and its cancel scope
belongs to the task that entered it. Any other task gets a `RuntimeError`, and the server lives on.

    async with tool_server(TOOL_PROGRAM, folder=folder) as server:
        await server.call("look_up", {"order": 17})       # "refund sent on Monday"

A request is {"id": 1, "name": "...", "arguments": {...}}, its answer {"id": 1, "result": "..."}.
"""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from anyio.streams.buffered import BufferedByteReceiveStream

from labkit.recovery.errors import RecoveryError
from labkit.recovery.stream.record import strict_json
from labkit.recovery.tools import Arguments, Tool

from .process_tree import end_tree, environment, new_mark

TOOL_PROGRAM: Final = (sys.executable, str(Path(__file__).with_name("tool_program.py")))
PATIENCE: Final = 2.0  # seconds in which a server whose input is closed may end by itself
LONGEST: Final = 1_000_000  # bytes in one answer

_END = (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.ClosedResourceError)
_NONSENSE = (ValueError, LookupError, TypeError)


class ServerGone(RecoveryError):
    """The tool server has ended, or talks nonsense: whether the call took effect is unknown."""


class ToolServer:
    """Calls go out as they come; each answer finds its call by the number."""

    def __init__(self, to: ByteSendStream, out: ByteReceiveStream) -> None:
        self._to = to
        self._out = BufferedByteReceiveStream(out)
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._gone = False

    async def call(self, name: str, arguments: Arguments) -> str:
        """The result of one call. Raises `ServerGone`. A cancel leaves; the server is not told."""
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        request = {"id": number, "name": name, "arguments": dict(arguments)}
        try:
            if self._gone:
                raise _gone()
            await self._to.send(json.dumps(request).encode() + b"\n")
            return str(await answer)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise _gone() from error
        finally:
            del self._waiting[number]

    def tool(self, name: str) -> Tool:
        """The server's tool of that name, as one for a turn."""

        async def run(arguments: Arguments, key: str) -> str:
            return await self.call(name, arguments)

        return Tool(name=name, run=run)

    async def listen(self) -> None:
        """Hand out answers until the server's output ends; then every call fails."""
        try:
            while True:
                line = await self._out.receive_until(b"\n", LONGEST)
                told = strict_json(line.decode())
                answer = self._waiting.get(told["id"])
                if answer and not answer.done():
                    answer.set_result(told["result"])
        except (*_END, *_NONSENSE):
            pass
        finally:  # also where nobody listens any more
            self._gone = True
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(_gone())


@asynccontextmanager
async def tool_server(
    argv: Sequence[str], *, folder: str | os.PathLike[str]
) -> AsyncIterator[ToolServer]:
    """Run a tool server for the length of the block; nothing of it is left. Raises `OSError`."""
    mark = new_mark()
    process = await anyio.open_process(
        argv, stderr=None, cwd=folder, env=environment(mark), start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        server = ToolServer(process.stdin, process.stdout)
        async with anyio.create_task_group() as reading:
            reading.start_soon(server.listen)
            yield server  # breakpoint: transport open
            await process.stdin.aclose()
            with anyio.move_on_after(PATIENCE):
                await process.wait()
            reading.cancel_scope.cancel()
    finally:
        end_tree(process.pid, mark)
        await process.aclose()


def _gone() -> ServerGone:
    return ServerGone("the tool server is gone: whether the call took effect is unknown")
