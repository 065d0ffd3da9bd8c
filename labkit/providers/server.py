"""A script on a real socket: an OpenAI-compatible streaming chat endpoint, on this machine only.

    with listen(0) as listening:
        print(about(script, address_of(listening)))
        run(script, listening, speed=50)    # until a signal comes; see `process` for a child

Rules: the same player and the same bytes as in virtual time; a drop resets the connection; a stall
keeps it open until the client goes, which is noted as "left"; `/events` tells what was noted, as a
simulation's trace has it. `speed` divides the script's waits and nothing else: what a Retry-After
asks for is the client's own real time.
"""

import asyncio
import json
import socket
import struct
import sys
import time
from contextlib import aclosing
from typing import Any, Final, cast

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from labkit.simulation.world import World

from .player import Player
from .steps import Script
from .wire import Dropped, Head, answer

HOST: Final = "127.0.0.1"
MOST_BODY: Final = 1_000_000  # bytes of a request
MOST_NOTES: Final = 100_000  # events
BEFORE_RESET: Final = 0.05  # seconds: a reset may take with it what the client has not read yet


def application(script: Script, *, speed: float = 1.0) -> Starlette:
    """The endpoint, a page of help at `/`, and what was noted at `/events`."""
    notes = _notes(speed)
    player = Player(script, notes.observer("provider"), speed=speed)

    async def complete(request: Request) -> Response:
        wrong = _objection(await _body(request))
        return _refusal(400, wrong) if wrong else _Played(player)

    async def page(request: Request) -> Response:
        return PlainTextResponse(about(script, str(request.base_url).rstrip("/")))

    async def events(request: Request) -> Response:
        noted = notes.trace.events
        return JSONResponse([{"time": e.time, "kind": e.kind, **dict(e.data)} for e in noted])

    async def failed(request: Request, error: Exception) -> Response:
        status = cast(HTTPException, error).status_code
        what = "too long" if status == 413 else f"no {request.method} {request.url.path} here"
        there = "there is POST /v1/chat/completions, GET / and GET /events"
        return _refusal(status, f"{what}; {there}")

    routes = [
        Route("/v1/chat/completions", complete, methods=["POST"]),
        Route("/", page),
        Route("/events", events),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: failed})


def _notes(speed: float) -> World:
    """A trace in real time, counted in the script's seconds; past a bound it begins anew."""
    start = time.monotonic()

    def bound() -> None:
        if len(notes.trace.events) >= MOST_NOTES:
            notes.trace.events.clear()

    notes = World(time=lambda: round((time.monotonic() - start) * speed, 3), spend=bound)
    return notes


def about(script: Script, address: str) -> str:
    """What is served at `address`, and a line that asks for it."""
    body = '{"model": "labkit", "stream": true, "messages": [{"role": "user", "content": "hi"}]}'
    return (
        f"{script.name}, {len(script.attempts)} attempts: {script.about}\n"
        f"serving on {address}/v1, one attempt a request; try:\n"
        f"curl -N {address}/v1/chat/completions -H 'content-type: application/json' -d '{body}'\n"
    )


async def _body(request: Request) -> bytes:
    read = b""
    async for piece in request.stream():
        read += piece
        if len(read) > MOST_BODY:
            raise HTTPException(413)
    return read


def _objection(body: bytes) -> str:
    """What is wrong with a request's body, or nothing."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return "the body must be a JSON object"
    if not isinstance(asked, dict):
        return "the body must be a JSON object"
    if not isinstance(asked.get("model"), str):
        return "'model' must be a text; any will do"
    messages = asked.get("messages")
    if not isinstance(messages, list) or not all(isinstance(told, dict) for told in messages):
        return "'messages' must be a list of objects"
    if not messages:
        return "'messages' is empty: ask something"
    return "" if asked.get("stream") is True else 'this provider only streams: send "stream": true'


def _refusal(status: int, message: str) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return JSONResponse({"error": error}, status_code=status)


class _Played(Response):
    """One attempt, for as long as the client stays."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self._player = player

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        playing = asyncio.create_task(self._play(scope, send))
        leaving = asyncio.create_task(_gone(receive))
        leaving.add_done_callback(lambda _: playing.cancel())
        try:
            await asyncio.wait({playing})
        finally:
            leaving.cancel()  # which ends the play too, where it still goes on
        if not playing.cancelled():
            playing.result()

    async def _play(self, scope: Scope, send: Send) -> None:
        async with aclosing(answer(self._player.request())) as pieces:
            try:
                async for piece in pieces:
                    await send(_message(piece))
            except Dropped:
                await asyncio.sleep(BEFORE_RESET)
                _reset(scope["labkit.transport"])
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


def _reset(transport: asyncio.Transport) -> None:
    linger = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)  # close by a reset
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    transport.abort()


class _Connection(H11Protocol):
    """Gives the application its connection, which ASGI does not: a drop needs it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        app = cast(ASGIApp, self.app)

        async def with_transport(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "labkit.transport": transport}, receive, send)

        self.app = with_transport


def listen(port: int) -> socket.socket:
    """A listening socket on this machine; port 0 lets the system choose. Raises `OSError`."""
    return socket.create_server((HOST, port))


def address_of(listening: socket.socket) -> str:
    """Where it can be reached."""
    return f"http://{HOST}:{listening.getsockname()[1]}"


def run(script: Script, listening: socket.socket, *, speed: float = 1.0) -> None:
    """Serve until a signal ends the process."""
    config = uvicorn.Config(
        application(script, speed=speed),
        http=_Connection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    uvicorn.Server(config).run(sockets=[listening])


def taken(port: int, error: OSError) -> str:
    """One line for a port that cannot be had, with the cure."""
    return f"port {port}: {error.strerror}: choose another, or 0 for one that is free"
