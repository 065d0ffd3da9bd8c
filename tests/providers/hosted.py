"""A server of ours on a real socket, in a thread of this process: it begins and ends at once.

listening, address = listen(0)
with hosted(hosting(app), listening):
    ...                                          # any client, at the address
"""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from socket import socket

import uvicorn


@contextmanager
def hosted(server: uvicorn.Server, listening: socket) -> Iterator[asyncio.AbstractEventLoop]:
    """Serve for the length of the block; the loop on which it does."""
    begun: Future[asyncio.AbstractEventLoop] = Future()
    ended = asyncio.Event()

    async def until_ended() -> None:  # uvicorn's own looks ten times a second whether it is over
        await server.on_tick(0)
        await ended.wait()

    async def serve() -> None:
        begun.set_result(asyncio.get_running_loop())
        await server.serve(sockets=[listening])

    server.main_loop = until_ended  # type: ignore[method-assign]
    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    loop = begun.result(10)
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        listening.close()
        assert not thread.is_alive(), "the server did not end"
