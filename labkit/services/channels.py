"""Two ways in and out of the gateway: lines over TCP on this machine, and lines of a terminal.

On TCP a line names its session, `ann: Where is my refund?`, and so does each line of an answer,
which goes to every open connection that has written for that session. `run` reads until it is
cancelled; what turns still have to say can be sent until `stop`.

    channel = TcpChannel()          # `nc 127.0.0.1 PORT`, where PORT is channel.port
    answer = answering([channel])   # answer(message, text), for a dispatcher
"""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TextIO

from labkit.providers.process import ServerError
from labkit.recovery.mailbox import Inbound

from .gateway import Channel

LONGEST: Final = 65_536  # bytes in a line
MOST_UNREAD: Final = 1_000_000  # bytes that wait for a client who does not read
LINGER: Final = 1.0  # seconds for a client to stop writing, whose line was too long
FORM: Final = "write NAME: TEXT on a line, as in `ann: Where is my refund?`"
TOO_LONG: Final = f"a line of more than {LONGEST} bytes ends the connection: write shorter ones"
CLOSING: Final = "the gateway is closing"


def answering(channels: Iterable[Channel]) -> Callable[[Inbound, str], None]:
    """Sends an answer back the way on which its message came."""
    by_name = {channel.name: channel for channel in channels}

    def answer(message: Inbound, text: str) -> None:
        by_name[message.channel].send(message.session, text)

    return answer


class TcpChannel:
    """Lines over TCP, from this machine only; port 0 is any that is free. Raises `ServerError`."""

    name = "tcp"

    def __init__(self, port: int = 0) -> None:
        try:
            self._listening = socket.create_server(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise ServerError(f"port {port} cannot be had: {error}") from error
        self.port: int = self._listening.getsockname()[1]
        self._open: dict[asyncio.StreamWriter, set[str]] = {}  # sessions that it has written for

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        """Take connections, and what they write, until it is cancelled."""
        reading: set[asyncio.Task[None]] = set()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._open[writer] = set()
            task = asyncio.create_task(self._read(inbound, reader, writer), name="connection")
            reading.add(task)
            task.add_done_callback(reading.discard)

        server = await asyncio.start_server(connected, sock=self._listening, limit=LONGEST)
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            for task in reading:
                task.cancel()

    async def _read(
        self,
        inbound: asyncio.Queue[Inbound],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        async for line in _lines(reader, partial(_write, writer)):
            session, _, text = (part.strip() for part in line.partition(":"))
            if session and text:
                self._open[writer].add(session)
                inbound.put_nowait(Inbound(session, text, self.name))
            else:
                _write(writer, FORM)
        del self._open[writer]
        await _leave(reader, writer)

    def send(self, session: str, text: str) -> None:
        """Each line of `text` names its session, so that none passes for another's."""
        for writer, sessions in self._open.items():
            if session in sessions:
                _write(writer, *[f"{session}: {line}" for line in text.splitlines()])

    async def stop(self) -> None:
        """Say so, and close every connection when its client has read what was sent to it."""
        self._listening.close()
        try:
            for writer in self._open:
                _write(writer, CLOSING)
                writer.close()
            closed = [writer.wait_closed() for writer in self._open]
            await asyncio.gather(*closed, return_exceptions=True)
        finally:
            for writer in self._open:
                if writer.transport.get_write_buffer_size():  # else it is closed
                    writer.transport.abort()


class TerminalChannel:
    """The lines of one user at a terminal, whose session has the name of the channel.

    A thread waits for the input, since that cannot be cancelled; it ends with the process.
    """

    name = "terminal"

    def __init__(self, source: int = 0, to: TextIO = sys.stdout) -> None:
        self._source = source
        self._to = to

    async def run(self, inbound: asyncio.Queue[Inbound]) -> None:
        """Take lines until their end."""
        reader = asyncio.StreamReader(limit=LONGEST)
        feed = partial(_feed, self._source, asyncio.get_running_loop(), reader)
        threading.Thread(target=feed, name="terminal", daemon=True).start()
        async for line in _lines(reader, partial(self.send, self.name)):
            if line.strip():
                inbound.put_nowait(Inbound(self.name, line.strip(), self.name))

    def send(self, session: str, text: str) -> None:
        """Print it."""
        print(text, file=self._to, flush=True)

    async def stop(self) -> None:
        """There is nothing to close."""


async def _lines(reader: asyncio.StreamReader, say: Callable[[str], object]) -> AsyncIterator[str]:
    """The lines of a text; a line that is too long, or a lost connection, is its end."""
    try:
        while line := await reader.readline():
            yield line.decode(errors="replace")
    except ValueError:
        say(TOO_LONG)
    except OSError:
        pass


def _write(writer: asyncio.StreamWriter, *lines: str) -> None:
    """Hand over lines without waiting; a client who does not read them loses the connection."""
    if writer.is_closing():
        return
    writer.write("".join(f"{line}\n" for line in lines).encode())
    if writer.transport.get_write_buffer_size() > MOST_UNREAD:
        writer.transport.abort()


async def _leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close a connection; what its client still writes, unread, would cut off what it was told."""
    try:
        with suppress(OSError, TimeoutError):
            writer.write_eof()
            async with asyncio.timeout(LINGER):
                while await reader.read(LONGEST):
                    pass
    finally:
        writer.close()


def _feed(source: int, loop: asyncio.AbstractEventLoop, reader: asyncio.StreamReader) -> None:
    with suppress(OSError, RuntimeError):  # the input or the loop is closed
        while data := os.read(source, 4096):
            loop.call_soon_threadsafe(reader.feed_data, data)
        loop.call_soon_threadsafe(reader.feed_eof)
