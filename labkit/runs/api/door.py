"""What every request passes: who may come in, how much may be sent, what no answer may lack.

Rules: all but the page, its files and the sign-in is for known users. A cookie counts only for a
request that the service's own page has made, as the browser says: the addresses of a proxy, which
may stand between them, are compared with nothing. No error gets past the door.

    app = Door(app, Access(users_of("ann:a-long-token-of-ann")))
"""

from collections.abc import Sequence
from typing import Final

from fastapi import HTTPException
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from labkit.recovery.retry import Observe

from .access import Access
from .refusals import refusal

COOKIE: Final = "labkit_runs"
MOST_BYTES: Final = 64 * 1024  # of a request's body
_SAFE: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'self'; base-uri 'none'; "
    "frame-ancestors 'self' http://127.0.0.1:*",  # so that a notebook there shows it
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Door:
    """`app` behind a door. `observe("failed", error=...)` is told of a bug, by its name alone."""

    def __init__(
        self, app: ASGIApp, access: Access, observe: Observe = lambda kind, **told: None
    ) -> None:
        self.app = app
        self._access = access
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":  # the beginning and the end of the service
            return await self.app(scope, receive, send)
        app = self._stopped(Request(scope)) or self.app
        begun: list[object] = []  # the answer, once it is under way
        try:
            await app(scope, _limited(receive, begun), _safe(send, begun))
        except Exception as error:
            self._observe("failed", error=type(error).__name__)

    def _stopped(self, request: Request) -> Response | None:
        """The refusal; or None, and whose request it is stands in its state."""
        asks = (request.method, request.scope["path"])
        if request.method in ("GET", "HEAD") and (asks[1] == "/" or asks[1].startswith("/page/")):
            return None
        if refused := _body(request):
            return refused
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            owner = self._access.by_token(token.strip())
        elif request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return refusal(403)
        else:
            owner = self._access.by_cookie(request.cookies.get(COOKIE, ""))
        if owner is None and asks != ("POST", "/sign-in"):
            return refusal(401, headers={"www-authenticate": "Bearer"})
        request.state.owner = owner
        return None


def _body(request: Request) -> Response | None:
    """The refusal of what is sent by its headers, before any of it is read."""
    length = request.headers.get("content-length", "0")
    if length == "0" and "transfer-encoding" not in request.headers:
        return None
    if length.isdecimal() and int(length) > MOST_BYTES:
        return refusal(413)
    return refusal(415) if request.method in ("POST", "PUT") and not _json(request) else None


def _json(request: Request) -> bool:
    kind, _, _ = request.headers.get("content-type", "").partition(";")
    return bool(kind.strip().lower() == "application/json")


def _limited(receive: Receive, begun: Sequence[object]) -> Receive:
    """The body, refused as soon as there is too much of it; who has an answer already, goes."""
    size = 0

    async def limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size <= MOST_BYTES:
            return message
        if begun:
            return {"type": "http.disconnect"}
        raise HTTPException(413)

    return limited


def _safe(send: Send, begun: list[object]) -> Send:
    """Every answer with the headers that keep a browser from harm, unless it has its own."""

    async def safe(message: Message) -> None:
        if message["type"] == "http.response.start":
            begun.append(message)
            headers = MutableHeaders(scope=message)
            for name, value in _SAFE.items():
                headers.setdefault(name, value)
        await send(message)

    return safe
