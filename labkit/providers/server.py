"""A script on a real socket: an OpenAI-compatible streaming chat endpoint, on this machine only.

    listening, address = listen(0)
    print(about(script, address))
    run(script, listening, speed=50)    # until a signal comes; see `process` for a child

Rules: the same player and the same bytes as in virtual time; a drop resets the connection; a stall
keeps it open until the client goes, which is noted as "left"; `/events` tells what was noted, as a
simulation's trace has it. `speed` divides the script's waits and nothing else: what a Retry-After
asks for is the client's own real time.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Final

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from labkit.simulation.world import Observer, World

from .fake import Player
from .process import ServerError
from .script import Script
from .wire import Dropped, Head, answer

HOST: Final = "127.0.0.1"
THERE: Final = "there is POST /v1/chat/completions, GET / and GET /events"
Pieces = AsyncGenerator[Head | bytes, None]
MOST_NOTES: Final = 100_000  # events; what comes later is not noted
BEFORE_RESET: Final = 0.05  # seconds: a reset may take with it what the client has not read yet


def application(script: Script, *, speed: float = 1.0) -> ASGIApp:
    """The endpoint, a page of help at `/`, and what was noted at `/events`."""
    start = time.monotonic()
    notes: World = World(
        time=lambda: round((time.monotonic() - start) * speed, 3),  # the script's seconds
        spend=lambda: len(notes.trace.events) < MOST_NOTES,
    )
    player = Player(script, Observer(notes, "provider"), speed=speed)

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        where = f"{request.method} {request.url.path}"
        response: ASGIApp = _refusal(404, THERE)
        if where == "POST /v1/chat/completions":
            response = partial(sent, answer(player.request()), _nothing)
            if not await _asks_for_a_stream(request):
                response = _refusal(400, 'send a JSON object with "stream": true')
        elif where == "GET /events":
            noted = [{"time": e.time, "kind": e.kind, **dict(e.data)} for e in notes.trace.events]
            response = JSONResponse(noted)
        elif where == "GET /":
            response = PlainTextResponse(about(script, str(request.base_url).rstrip("/")))
        await response(scope, receive, send)

    return answered


def about(script: Script, address: str) -> str:
    """What is served at `address`, and a line that asks for it."""
    body = '{"model": "labkit", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
    return (
        f"{script.name}: {script.about}\nserving on {address}/v1\n"
        "one attempt a request, the last one again and again; try:\n"
        f"curl -N {address}/v1/chat/completions -H 'content-type: application/json' -d '{body}'\n"
    )


async def _asks_for_a_stream(request: Request) -> bool:
    try:
        asked = await request.json()
    except (ValueError, RecursionError):
        return False
    return isinstance(asked, dict) and asked.get("stream") is True


def _refusal(status: int, message: str) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status_code=status)


async def sent(
    pieces: Pieces, left: Callable[[], object], scope: Scope, receive: Receive, send: Send
) -> None:
    """Send `pieces` for as long as the client stays; `left()` is called where it went before."""
    async with asyncio.TaskGroup() as group:
        playing = group.create_task(_send(pieces, scope["state"]["transport"], send))
        leaving = group.create_task(_gone(receive))
        leaving.add_done_callback(lambda _: playing.cancel())
        playing.add_done_callback(lambda _: leaving.cancel())
    if playing.cancelled():
        left()


def _nothing() -> None:
    """The player notes by itself who has left."""


async def _send(pieces: Pieces, transport: asyncio.Transport, send: Send) -> None:
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                await send(_message(piece))
        except Dropped:
            await asyncio.sleep(BEFORE_RESET)
            linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # to be a reset
            socket_of = transport.get_extra_info("socket")
            socket_of.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
            return
    await send({"type": "http.response.body", "body": b""})


def _message(piece: Head | bytes) -> dict[str, Any]:
    if isinstance(piece, bytes):
        return {"type": "http.response.body", "body": piece, "more_body": True}
    headers = [(name.encode(), value.encode()) for name, value in piece.headers.items()]
    return {"type": "http.response.start", "status": piece.status, "headers": headers}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Connection(H11Protocol):
    """Tells the application on which connection a request came: a drop needs it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


def listen(port: int) -> tuple[socket.socket, str]:
    """A listening socket with its address; port 0: the system chooses. Raises `ServerError`."""
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        cure = "choose another, or 0 for one that is free"
        raise ServerError(f"port {port} cannot be had: {cure}") from error
    # A small piece goes out at once: asyncio sees to that only where the protocol is named.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    return listening, f"http://{HOST}:{listening.getsockname()[1]}"


def run(script: Script, listening: socket.socket, *, speed: float = 1.0) -> None:
    """Serve until a signal ends the process."""
    serving(script, speed=speed).run(sockets=[listening])


def serving(script: Script, *, speed: float = 1.0) -> uvicorn.Server:
    """The server of a script, for `process`."""
    return hosting(application(script, speed=speed))


def hosting(app: ASGIApp) -> uvicorn.Server:
    """A server for any application, which may use `sent`; a signal ends it."""
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        loop="asyncio",
        lifespan="auto",
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
