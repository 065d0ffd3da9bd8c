"""Every refusal of the service: a status, a code for programs, a sentence that says what to do.

Rules: no refusal repeats what was sent, shows where something failed, or tells what is another's.

    refusal(404, "UnknownRun", "there is no such run of yours: look at GET runs")
    @router.get("/runs/{run_id}", responses=errors(404))      # so that the description names it
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

from labkit.recovery.errors import RecoveryError
from labkit.recovery.event_log import ForeignCursor
from labkit.recovery.run_states import IllegalMove, RunExists, UnknownRun
from labkit.stores.errors import StoreDown

from ..codes import MOST
from ..database import NotJSON, NotKept
from ..discussion.memory import UnknownMemory
from ..discussion.models import DEMO, UnknownModel

_FILES: Final = ("GET", "HEAD")
_TEXT: Final = "it is blank, or has a character that is not taken here"
LATER: Final = {"retry-after": "2"}  # seconds
_KEPT: Final = "it holds what cannot be kept: send other text, or less"


class NotAsked(RecoveryError):
    """The run waits for no such answer: look at its state and at what it asks now."""


class TooManyStreams(RecoveryError):
    """As many streams of events are open as are allowed: close one, or come back later."""


# What is said of each error; "" stands for its own words, where these are meant for users.
_OF_ERRORS: Final[Mapping[type[Exception], tuple[int, str]]] = {
    UnknownRun: (404, "there is no such run of yours: look at GET runs"),
    UnknownMemory: (404, "there is no such memory of yours: look at GET memories"),
    IllegalMove: (409, ""),
    NotAsked: (409, ""),
    RunExists: (409, "a run of this id has other content: look at it, or take another id"),
    ForeignCursor: (409, "the run has no such event: go on from the seq of GET runs/ID"),
    UnknownModel: (422, f"there is no such model: take {', '.join(DEMO)}, or look at GET models"),
    NotJSON: (422, _KEPT),
    NotKept: (422, _KEPT),
    TooManyStreams: (429, ""),
    StoreDown: (503, "the store does not answer at the moment: try again"),
}
# Status -> code and message, where no error of ours has its own.
_OF_HTTP: Final[Mapping[int, tuple[str, str]]] = {
    400: ("BadRequest", "the body is no JSON that can be read: send a JSON object"),
    401: ("Unauthorized", "sign in with a token that is known here, or send it as a bearer token"),
    403: ("Forbidden", "a cookie counts for this service's own page only: send a token"),
    404: ("NotFound", "there is nothing here: runs, memories and models are"),
    405: ("MethodNotAllowed", "it cannot be asked so: the header Allow says how"),
    413: ("TooLarge", "a body has at most 64 KiB: send less"),
    415: ("NoJSON", "send JSON, with `Content-Type: application/json`"),
    422: ("Invalid", "it is not what is asked for here"),
    500: ("Failed", "it failed on our side: try again"),
}


class Error(BaseModel):
    """A code for programs, and one sentence that says what to do."""

    code: str
    message: str


class Refusal(BaseModel):
    """The body of every refusal."""

    error: Error


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Which refusals a route has, for the description of the service."""
    return {each: {"model": Refusal, "description": HTTPStatus(each).phrase} for each in statuses}


def refusal(
    status: int, code: str = "", message: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """The response; by default with the code and the message of its status."""
    usual = _OF_HTTP.get(status, ("Refused", "it was refused"))
    error = {"code": code or usual[0], "message": (message or usual[1])[:MOST]}
    body = json.dumps({"error": error})
    return Response(body, status, headers, "application/json")


async def of_ours(request: Request, error: Exception) -> Response:
    """An error of the rooms below, by its class."""
    status, message = next(_OF_ERRORS[kind] for kind in type(error).__mro__ if kind in _OF_ERRORS)
    headers = LATER if status in (429, 503) else None
    return refusal(status, type(error).__name__, message or str(error), headers)


async def of_http(request: Request, error: Exception) -> Response:
    """What the routes or the body have refused."""
    assert isinstance(error, HTTPException)
    if error.status_code != 405:
        return refusal(error.status_code)
    path = request.scope["path"]
    routes = (each for each in request.app.routes if isinstance(each, Route | Mount))
    there = (each for each in routes if each.path_regex.match(path))
    allowed = {m for each in there for m in getattr(each, "methods", _FILES) or ()}
    return refusal(405, headers={"allow": ", ".join(sorted(allowed))})


async def of_content(request: Request, error: Exception) -> Response:
    """What is malformed: which field, and how, but not what stood there."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return refusal(400)
    if first["type"] == "extra_forbidden":
        return refusal(422, message="there is a field that is not known here: leave it out")
    place = ".".join(str(each) for each in first["loc"][1:] or first["loc"])
    said = _TEXT if first["type"] == "string_pattern_mismatch" else first["msg"]
    return refusal(422, message=f"{place}: {said}")


async def of_a_bug(request: Request, error: Exception) -> Response:
    """Whatever else fails is nobody's business."""
    return refusal(500)


HANDLERS: Final[Mapping[Any, Any]] = {
    **dict.fromkeys(_OF_ERRORS, of_ours),
    HTTPException: of_http,
    RequestValidationError: of_content,
    Exception: of_a_bug,
}
