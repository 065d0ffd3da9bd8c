"""The two channels on a real socket and a real pipe: lines in, answers out, and their end."""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from labkit.providers.process import ServerError
from labkit.recovery.mailbox import Inbound
from labkit.services import channels
from labkit.services.channels import (
    CLOSING,
    FORM,
    LONGEST,
    TOO_LONG,
    TcpChannel,
    TerminalChannel,
    answering,
)
from tests.services.processes import until

pytestmark = pytest.mark.socket

Inbox = asyncio.Queue[Inbound]


class Client:
    """A user with a line on the channel."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, channel: TcpChannel) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", channel.port))

    def write(self, *lines: str) -> None:
        self.writer.write("".join(f"{line}\n" for line in lines).encode())

    async def reads(self) -> str:
        """The next line; "" at the end."""
        with suppress(ConnectionError):
            return (await asyncio.wait_for(self.reader.readline(), 10)).decode()
        return ""


@asynccontextmanager
async def open_channel() -> AsyncIterator[tuple[TcpChannel, Inbox, asyncio.Task[None]]]:
    """A channel that runs, its inbound queue and its task."""
    channel, inbound = TcpChannel(), Inbox()
    running = asyncio.create_task(channel.run(inbound))
    try:
        yield channel, inbound, running
    finally:
        running.cancel()
        await asyncio.wait([running])
        await asyncio.wait_for(channel.stop(), 10)


def within(seconds: float, work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, seconds))


def test_a_line_becomes_a_message_and_its_answer_goes_to_who_wrote_it() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            ann, bob = await Client.to(channel), await Client.to(channel)
            ann.write("ann: Where is it: here?")
            assert await inbound.get() == Inbound("ann", "Where is it: here?", "tcp")
            bob.write("bob: hello")
            message = await inbound.get()
            answer = answering([channel])
            answer(message, "For bob.")
            answer(Inbound("ann", "", "tcp"), "For ann.")
            assert (await bob.reads(), await ann.reads()) == ("bob: For bob.\n", "ann: For ann.\n")

    within(20, work())


def test_each_line_of_an_answer_names_its_session() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            ann = await Client.to(channel)
            ann.write("ann: hello")
            await inbound.get()
            channel.send("ann", "one\nbob: two")
            assert [await ann.reads(), await ann.reads()] == ["ann: one\n", "ann: bob: two\n"]

    within(20, work())


def test_an_answer_goes_to_every_connection_that_wrote_for_the_session_and_is_open() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            first, second, other = [await Client.to(channel) for _ in range(3)]
            for client, name in ((first, "ann"), (second, "ann"), (second, "bob"), (other, "bob")):
                client.write(f"{name}: hello")
                await inbound.get()
            channel.send("ann", "to two")
            channel.send("nobody", "is lost")
            assert (await first.reads(), await second.reads()) == ("ann: to two\n",) * 2
            second.writer.close()
            await until(lambda: len(channel._open) == 2)
            channel.send("ann", "to one")
            channel.send("bob", "to another")
            assert (await first.reads(), await other.reads()) == (
                "ann: to one\n",
                "bob: to another\n",
            )

    within(20, work())


@pytest.mark.parametrize("line", ["hello", ": hello", "ann:", "ann:   ", ""])
def test_a_line_of_another_form_is_answered_with_the_form(line: str) -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            client = await Client.to(channel)
            client.write(line)
            assert await client.reads() == f"{FORM}\n"
            assert inbound.empty()

    within(20, work())


def test_what_is_not_utf8_or_too_long_does_no_harm() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            odd, long, good = [await Client.to(channel) for _ in range(3)]
            odd.writer.write(b"ann: caf\xe9\n")
            assert (await inbound.get()).text == "caf\ufffd"
            long.write("ann: " + "x" * (2 * LONGEST))
            assert [await long.reads(), await long.reads()] == [f"{TOO_LONG}\n", ""]
            good.write("bob: hello")
            assert (await inbound.get()).session == "bob"

    within(20, work())


def test_a_client_who_goes_on_writing_reads_why_it_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "LINGER", 10)

    async def work() -> None:
        async with open_channel() as (channel, _, _):
            client = await Client.to(channel)
            client.writer.write(b"ann: " + b"x" * (200 * LONGEST))  # much more than a socket holds
            await client.writer.drain()
            assert [await client.reads(), await client.reads()] == [f"{TOO_LONG}\n", ""]
            client.writer.close()

    within(20, work())


def test_a_client_who_never_stops_writing_is_cut_off_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channels, "LINGER", 0.05)

    async def work() -> None:
        async with open_channel() as (channel, _, _):
            client = await Client.to(channel)
            with suppress(ConnectionError):
                while True:  # else it ends at the time limit
                    client.writer.write(b"x" * LONGEST)
                    await client.writer.drain()

    within(20, work())


def test_after_the_cancel_nothing_is_read_and_answers_still_go_out() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, running):
            ann = await Client.to(channel)
            ann.write("ann: hello")
            await inbound.get()
            running.cancel()
            await asyncio.wait([running])
            ann.write("ann: too late")
            channel.send("ann", "goodbye")
            assert await ann.reads() == "ann: goodbye\n"
            with pytest.raises(ConnectionError):
                await Client.to(channel)
            await channel.stop()
            assert [await ann.reads(), await ann.reads()] == [f"{CLOSING}\n", ""]
            assert inbound.empty()

    within(20, work())


def test_what_was_sent_is_read_to_its_end_before_the_connection_closes() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, running):
            ann = await Client.to(channel)
            ann.write("ann: hello")
            await inbound.get()
            channel.send("ann", "x" * 900_000)
            running.cancel()
            stopping = asyncio.create_task(channel.stop())
            told = await ann.reader.read()
            await stopping
            assert told.removeprefix(b"ann: ") == b"x" * 900_000 + f"\n{CLOSING}\n".encode()

    within(20, work())


def test_a_client_who_does_not_read_holds_nobody_up_and_loses_the_connection() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, _):
            ann = await Client.to(channel)
            ann.write("ann: hello")
            await inbound.get()
            for _ in range(1_000):
                channel.send("ann", "x" * 100_000)
            await until(lambda: not channel._open)

    within(20, work())


def test_a_stop_that_is_given_up_closes_the_connections_all_the_same() -> None:
    async def work() -> None:
        async with open_channel() as (channel, inbound, running):
            ann = await Client.to(channel)
            ann.writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket's
            ann.write("ann: hello")
            await inbound.get()
            running.cancel()
            (writer,) = channel._open
            while writer.transport.get_write_buffer_size() < 500_000:  # the system's own are full
                channel.send("ann", "x" * 100_000)
                await asyncio.sleep(0.01)
            stopping = asyncio.create_task(channel.stop())
            done, _ = await asyncio.wait([stopping], timeout=0.2)
            assert not done, "it waits for a client who does not read"
            stopping.cancel()
            await asyncio.wait([stopping])
            await until(lambda: writer.transport.get_write_buffer_size() == 0)

    within(20, work())


def test_a_port_that_cannot_be_had_is_named() -> None:
    taken = TcpChannel()
    for port in (taken.port, 70_000):
        with pytest.raises(ServerError, match=f"port {port} cannot be had: "):
            TcpChannel(port)
    asyncio.run(taken.stop())


# --- the terminal


def test_a_terminals_lines_are_one_session_and_answers_are_printed() -> None:
    async def work() -> None:
        source, end = os.pipe()
        printed = io.StringIO()
        channel, inbound = TerminalChannel(source, printed), Inbox()
        running = asyncio.create_task(channel.run(inbound))
        os.write(end, b"Where is\n\n  my caf")
        assert await inbound.get() == Inbound("terminal", "Where is", "terminal")
        os.write(end, "é?\nlast".encode())
        assert (await inbound.get()).text == "my café?"
        os.close(end)
        assert (await inbound.get()).text == "last"
        await running
        answering([channel])(Inbound("terminal", "", "terminal"), "Here.")
        await channel.stop()
        assert printed.getvalue() == "Here.\n"
        os.close(source)

    within(20, work())


def test_a_terminals_line_that_is_too_long_is_told() -> None:
    async def work() -> None:
        source, end = os.pipe()
        printed = io.StringIO()
        running = asyncio.create_task(TerminalChannel(source, printed).run(Inbox()))
        await asyncio.to_thread(os.write, end, b"x" * (2 * LONGEST))
        await asyncio.wait_for(running, 10)
        assert printed.getvalue() == f"{TOO_LONG}\n"
        os.close(end)
        os.close(source)

    within(20, work())


def test_a_terminal_that_waits_for_input_can_be_cancelled() -> None:
    async def work() -> None:
        source, end = os.pipe()
        running = asyncio.create_task(TerminalChannel(source).run(Inbox()))
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()
        os.close(end)

    within(20, work())


def test_the_bound_of_what_waits_for_a_client_is_above_an_answer() -> None:
    assert channels.MOST_UNREAD > 10 * LONGEST
