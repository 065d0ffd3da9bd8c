"""Discussions over HTTP: start, watch, answer, retry and cancel them; reports, memories, the page.

    POST   /runs {"question": "...", "rounds": 3, "model": "fake"}      201 {"id", "status"}
    GET    /runs, /runs/ID            my newest runs, or those ?before=ID; one, with what it asks
    GET    /runs/ID/events            events after `Last-Event-ID`, or after ?after=NUMBER
    GET    /runs/ID/report            Markdown
    POST   /runs/ID/input, /runs/ID/retry, /runs/ID/cancel              the run as it is then
    GET    /memories, /models; PUT, DELETE /memories/KEY
    GET    /user; POST /sign-in {"token": "..."}, /sign-out             the cookie of the page
    GET    /                          the page

The page stands on relative addresses, so that a proxy may put all of it under a path of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

from labkit.recovery.event_log import HEARTBEAT
from labkit.recovery.retry import Observe

from ..discussion.opening import Discussion
from ..manager import RunManager
from . import routes
from .access import Access
from .bodies import Created, MemoryView, ModelsView, RunView, SignedIn
from .door import Door
from .refusals import HANDLERS, errors
from .streams import Places

PAGE: Final = Path(__file__).parent / "page"

# method, path, what is done, what is answered by status, and the refusals beside the usual ones
_SENT: Final = (400, 413, 415, 422)
_USUAL: Final = (401, 403, 500, 503)
_RUN: Final = "/runs/{run_id}"
_ROUTES: Final[Sequence[tuple[str, str, Any, Mapping[int, Any], tuple[int, ...]]]] = (
    ("POST", "/runs", routes.create, {201: Created, 200: Created}, (409, *_SENT)),
    ("GET", "/runs", routes.list_runs, {200: list[RunView]}, (404, 422)),
    ("GET", _RUN, routes.show, {200: RunView}, (404, 422)),
    ("GET", f"{_RUN}/events", routes.events, {200: "text/event-stream"}, (404, 409, 422, 429)),
    ("GET", f"{_RUN}/report", routes.report, {200: "text/markdown"}, (404, 422)),
    ("POST", f"{_RUN}/input", routes.answer, {200: RunView}, (404, 409, *_SENT)),
    ("POST", f"{_RUN}/retry", routes.retry, {200: RunView}, (404, 409, *_SENT)),
    ("POST", f"{_RUN}/cancel", routes.cancel, {200: RunView}, (404, 409, *_SENT)),
    ("GET", "/memories", routes.list_memories, {200: list[MemoryView]}, ()),
    ("PUT", "/memories/{key}", routes.correct, {200: MemoryView}, (404, *_SENT)),
    ("DELETE", "/memories/{key}", routes.forget, {204: None}, (404, 422)),
    ("GET", "/models", routes.list_models, {200: ModelsView}, ()),
    ("GET", "/user", routes.show_user, {200: SignedIn}, ()),
    ("POST", "/sign-in", routes.sign_in, {200: SignedIn}, _SENT),
    ("POST", "/sign-out", routes.sign_out, {204: None}, _SENT),
)


def application(
    manager: RunManager,
    discussion: Discussion,
    access: Access,
    *,
    places: Places | None = None,
    heartbeat: float = HEARTBEAT,
    observe: Observe = lambda kind, **told: None,
) -> Door:
    """The service as an application, which drives runs for as long as it is served.

    `heartbeat`: seconds of silence after which a stream has a comment. `observe(kind, error=...)`
    is told the name of each error that is a bug: "failed" of a request, "broken" of the runs.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        serving = asyncio.create_task(manager.serve(), name="serve")
        serving.add_done_callback(partial(_told, observe))
        yield
        await manager.shutdown()
        await asyncio.wait([serving])

    app = FastAPI(
        title="labkit runs",
        lifespan=lifespan,
        openapi_url=None,
        redirect_slashes=False,  # to an address that a proxy does not know
        exception_handlers=dict(HANDLERS),
    )
    app.state.here = routes.Here(manager, discussion, access, places or Places(), heartbeat)
    for method, path, do, answers, refused in _ROUTES:
        app.add_api_route(
            path,
            do,
            methods=[method],
            status_code=next(iter(answers)),
            response_class=Response,
            responses={**errors(*refused, *_USUAL), **_described(answers)},
        )
    app.add_route("/", page)
    app.mount("/page", StaticFiles(directory=PAGE))
    return Door(app, access, observe)


def _told(observe: Observe, serving: asyncio.Task[None]) -> None:
    if not serving.cancelled() and (error := serving.exception()):
        observe("broken", error=type(error).__name__)


def _described(answers: Mapping[int, Any]) -> dict[int | str, dict[str, Any]]:
    """For the description: a model of JSON, text of a kind, or nothing."""
    return {
        status: {"content": {kind: {}}} if isinstance(kind, str) else {"model": kind}
        for status, kind in answers.items()
    }


async def page(request: Request) -> Response:
    """The page, which is the same for everybody."""
    return FileResponse(PAGE / "page.html")
