"""The answers over HTTP: start, watch, stop and continue them; the page; an OpenAI-shaped stream.

    POST /answers {"question": "..."}    201 {"id": "..."}
    GET  /answers/ID                     what the page may know by now, and a cursor
    GET  /answers/ID/events              events after `Last-Event-ID`, or after ?after=CURSOR
    POST /answers/ID/stop, /continue     as `load` says afterwards
    POST /v1/chat/completions            for any OpenAI-compatible client, with "stream": true
    GET  /                               the page, and a cookie that says whose answers these are

An event's id is its cursor; comments and `event: end` carry none. A stream without that end was
cut: come back with the last id. A cursor that cannot be honoured gets 409, after which a browser's
EventSource does not come back by itself: load the answer and go on from the cursor that it gives.
"""

import json
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from labkit.providers.server import Pieces, sent
from labkit.providers.wire import Head, answer
from labkit.recovery.event_log import HEARTBEAT, CursorError, EventLog, frames
from labkit.recovery.stream.store import UnknownStream

from .answers import Answers, NotNow, TooMany
from .asked import COOKIE, model_request, object_of, owner_of, text_of
from .chat import steps
from .cuts import Cut, cut

PAGE: Final = Path(__file__).parent / "page"
RETRY: Final = 1_000  # milliseconds: when a browser comes back after a cut

THERE: Final = (
    "there is GET /, POST /answers, GET /answers/ID and /answers/ID/events, "
    "POST /answers/ID/stop and /answers/ID/continue, POST /v1/chat/completions"
)
_GO_ON: Final = "; load GET /answers/ID, and go on from the cursor that it gives"
_STREAM: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",  # or a proxy may gather events
}
_SAFE: Final = {
    "content-security-policy": "default-src 'self'; img-src data:; base-uri 'none'; "
    "frame-ancestors 'self' http://127.0.0.1:*",  # so that a notebook there shows it
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}


class Service:
    """The routes. Who left, and what failed, is told to the answers' `observe`, without secrets."""

    def __init__(
        self,
        answers: Answers,
        *,
        cuts: Sequence[Cut] = (),
        heartbeat: float = HEARTBEAT,
        retry: int = RETRY,
    ) -> None:
        model = answers.services(save=lambda run: run, page=lambda kind, **data: None)
        self._answers = answers
        self._ask = model.ask
        self._observe = model.observe
        self._steps = partial(
            steps, policy=model.policy, random=model.random, observe=model.observe
        )
        self._cuts = iter(cuts)
        self._heartbeat = heartbeat
        self._retry = b"retry: %d\n\n" % retry

    async def start(self, request: Request) -> Response:
        """201 with the id of an answer that is being written."""
        owner = owner_of(request)
        question = text_of(await object_of(request), "question")
        return _json(201, {"id": await self._answers.start(owner, question)})

    async def show(self, request: Request) -> Response:
        """200 with what the page may know by now."""
        return _json(200, await self._answers.load(request.path_params["id"], owner_of(request)))

    async def stop(self, request: Request) -> Response:
        """The same after the owner's stop; 409 for what has ended otherwise."""
        await self._answers.stop(request.path_params["id"], owner_of(request))
        return await self.show(request)

    async def go_on(self, request: Request) -> Response:
        """The same after the answer was taken up again; 409 unless it had failed."""
        await self._answers.go_on(request.path_params["id"], owner_of(request))
        return await self.show(request)

    async def events(self, request: Request) -> ASGIApp:
        """The events after a cursor, then those to come; 409 for one that cannot be honoured."""
        log = await self._answers.log(request.path_params["id"], owner_of(request))
        given = request.query_params.get("after", "")
        cursor = request.headers.get("last-event-id") or given
        log.after(cursor)  # refuses it while there is still a status to say so
        return partial(sent, self._events(log, cursor), partial(self._observe, "reader_left"))

    async def chat(self, request: Request) -> ASGIApp:
        """The OpenAI-shaped stream; who leaves it ends it, and that is noted as no stop."""
        owner_of(request)
        asked = model_request(await object_of(request))
        pieces = answer(self._steps(partial(self._ask, asked)))
        return partial(sent, pieces, partial(self._observe, "disconnect"))

    async def page(self, request: Request) -> Response:
        """The page, and at the first time a secret that stands for its reader."""
        response = FileResponse(PAGE / "page.html", headers=_SAFE)
        if not request.cookies.get(COOKIE):
            secret = secrets.token_urlsafe(32)
            response.set_cookie(COOKIE, secret, httponly=True, samesite="strict")
        return response

    async def failed(self, request: Request, error: Exception) -> Response:
        """500 for a bug, whose message is nobody's business."""
        self._observe("failed", error=type(error).__name__)
        return _refusal(500, "it failed on our side; try again")

    async def _events(self, log: EventLog, cursor: str) -> Pieces:
        yield Head(200, _STREAM)
        yield self._retry
        out = cut(frames(log, cursor, heartbeat=self._heartbeat), next(self._cuts, Cut()))
        async with aclosing(out):
            try:
                async for piece in out:
                    yield piece
            except CursorError:
                return  # a reader so slow that its next event is gone: it is told when it is back


def application(answers: Answers, **options: Any) -> Starlette:
    """The service as an application; the options are those of `Service`.

    Serve it with `labkit.providers.server.hosting`, which says on which connection a request came.
    """
    service = Service(answers, **options)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await answers.close()

    return Starlette(
        routes=[
            Route("/", service.page),
            Mount("/page", StaticFiles(directory=PAGE)),
            Route("/answers", service.start, methods=["POST"]),
            Route("/answers/{id}", service.show),
            Route("/answers/{id}/events", service.events),
            Route("/answers/{id}/stop", service.stop, methods=["POST"]),
            Route("/answers/{id}/continue", service.go_on, methods=["POST"]),
            Route("/v1/chat/completions", service.chat, methods=["POST"]),
        ],
        exception_handlers={
            HTTPException: lambda _, error: _refusal(error.status_code, error.detail),
            404: lambda *_: _refusal(404, THERE),
            405: lambda *_: _refusal(405, THERE),
            UnknownStream: lambda _, error: _refusal(404, str(error)),
            NotNow: lambda _, error: _refusal(409, str(error)),
            CursorError: lambda _, error: _refusal(409, f"{error}{_GO_ON}", type(error).__name__),
            ClientDisconnect: lambda *_: _refusal(400, "the client left before its body was there"),
            TooMany: lambda _, error: _refusal(429, str(error)),
            Exception: service.failed,
        },
        lifespan=lifespan,
    )


def _json(status: int, value: Any) -> Response:
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return Response(json.dumps(value), status, headers, "application/json")


def _refusal(status: int, message: str, code: str | None = None) -> Response:
    return _json(status, {"error": {"message": message, "type": "refused", "code": code}})
