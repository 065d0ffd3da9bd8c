"""What each route of the service does.

Rules: a run, its events, its report and its memories are their owner's alone: what is another's is
answered like what is not there. A run goes on whoever watches it.

    await show("run-7", Owner("ann", "lab"), here)      # 200, and the run as it is
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from labkit.recovery.event_log import ForeignCursor
from labkit.recovery.run_states import RunExists, UnknownRun
from labkit.recovery.stream.record import Owner

from ..discussion.opening import Discussion
from ..following import LOOK, RunLog, number_of
from ..manager import RunManager
from ..record import AgentRun
from . import bodies
from .access import TENANT, Access
from .answering import word_of
from .door import COOKIE
from .refusals import refusal
from .streams import EventStream, Places

JOB: Final = "discussion"
MOST_EVENTS: Final = 10_000  # in a report


@dataclass(frozen=True, slots=True)
class Here:
    """What the routes stand on."""

    manager: RunManager
    discussion: Discussion
    access: Access
    places: Places
    heartbeat: float

    async def run(self, run_id: str, owner: Owner) -> AgentRun:
        """A discussion of this owner. Raises `UnknownRun`."""
        run = await self.manager.store.get(run_id, owner)
        if run.job != JOB:
            raise UnknownRun(run_id)
        return run


async def _service(request: Request) -> Here:
    here: Here = request.app.state.here
    return here


async def _owner(
    request: Request, _: Annotated[Any, Security(HTTPBearer(auto_error=False))]
) -> Owner:
    owner: Owner = request.state.owner  # the door has seen to it
    return owner


Service = Annotated[Here, Depends(_service)]
Mine = Annotated[Owner, Depends(_owner)]


async def create(new: bodies.NewRun, mine: Mine, here: Service) -> Response:
    """Accept a discussion; the same one again where it is sent again under its id."""
    models, store = here.discussion.models, here.manager.store
    model = new.model or models.default
    models.check(model)
    given = {"question": new.question, "rounds": new.rounds}
    name = own_id(mine, new.id) if new.id else ""
    try:
        run = await here.manager.submit(JOB, given, owner=mine, model=model, run_id=name)
        return _json({"id": run.run_id, "status": run.status}, 201)
    except RunExists:
        run = await store.get(name, mine)
        (first,) = await store.events(name, mine, most=1)
        if (run.given, first.data["model"]) != (given, model):
            raise
        return _json({"id": run.run_id, "status": run.status})


async def list_runs(mine: Mine, here: Service, before: bodies.Before = "") -> Response:
    """My newest runs, the newest first; or those that are older than run `before`."""
    runs = await here.manager.store.runs(mine, job=JOB, before=before or None)
    return _json([bodies.told(run) for run in runs])


async def show(run_id: bodies.Key, mine: Mine, here: Service) -> Response:
    """One of my runs, with what it asks."""
    return _json(bodies.told(await here.run(run_id, mine)))


async def events(
    run_id: bodies.Key,
    mine: Mine,
    here: Service,
    after: str = "",
    last_event_id: Annotated[str, Header()] = "",
) -> Response:
    """The events after a cursor, then those to come; `event: end` where the run has ended."""
    run = await here.run(run_id, mine)
    cursor = last_event_id or after
    if number_of(cursor) > run.seq:
        raise ForeignCursor(cursor)
    log = RunLog(here.manager.store, run_id, mine, look=min(LOOK, here.heartbeat))
    return EventStream(log, cursor, mine, here.places, heartbeat=here.heartbeat)


async def report(run_id: bodies.Key, mine: Mine, here: Service) -> Response:
    """The report, in any state of the run."""
    run = await here.run(run_id, mine)
    found = await here.manager.store.events(run_id, mine, most=MOST_EVENTS)
    text = await here.discussion.report(run, found)
    return Response(text.encode(errors="replace"), media_type="text/markdown")


async def answer(run_id: bodies.Key, said: bodies.Answer, mine: Mine, here: Service) -> Response:
    """Answer what it asks, once."""
    run = await here.run(run_id, mine)
    word = word_of(run, said)
    return _json(bodies.told(await here.manager.store.answer(run_id, mine, word, seq=run.seq)))


async def retry(
    run_id: bodies.Key, mine: Mine, here: Service, how: bodies.Retry | None = None
) -> Response:
    """Go on from where it failed."""
    await here.run(run_id, mine)
    model = how.model if how else None
    if model is not None:
        here.discussion.models.check(model)
    return _json(bodies.told(await here.manager.store.retry(run_id, mine, model=model)))


async def cancel(run_id: bodies.Key, mine: Mine, here: Service) -> Response:
    """End it for good."""
    await here.run(run_id, mine)
    return _json(bodies.told(await here.manager.cancel(run_id, mine)))


async def list_memories(mine: Mine, here: Service) -> Response:
    """What is remembered of me, the newest first."""
    return _json([each._asdict() for each in await here.discussion.memories.of(mine)])


async def correct(key: bodies.Key, said: bodies.Correction, mine: Mine, here: Service) -> Response:
    """Say a memory better."""
    return _json((await here.discussion.memories.correct(mine, key, said.text))._asdict())


async def forget(key: bodies.Key, mine: Mine, here: Service) -> Response:
    """Delete a memory."""
    await here.discussion.memories.delete(mine, key)
    return Response(status_code=204)


async def list_models(mine: Mine, here: Service) -> Response:
    """The models that may be named."""
    models = here.discussion.models
    return _json({"default": models.default, "names": list(models.names)})


async def show_user(mine: Mine) -> Response:
    """Who I am, since a browser may have signed in as another one in another tab."""
    tenant = "" if mine.tenant == TENANT else f"{mine.tenant}/"
    return _json({"user": f"{tenant}{mine.user}"})


async def sign_in(shown: bodies.SignIn, here: Service) -> Response:
    """A cookie for the page, which scripts cannot read and other sites cannot send."""
    token = shown.token.strip()
    owner = here.access.by_token(token)
    if owner is None:
        return refusal(401, message="this token is not known here: look at it, and try again")
    response = await show_user(owner)
    # Without a path it is for this page alone, also where a proxy has put it under one of its own.
    response.set_cookie(
        COOKIE, here.access.cookie(token), path=None, httponly=True, samesite="strict"
    )
    return response


async def sign_out(mine: Mine) -> Response:
    """Take the cookie away."""
    response = Response(status_code=204)
    response.set_cookie(COOKIE, "", max_age=0, path=None, httponly=True, samesite="strict")
    return response


def own_id(owner: Owner, name: str) -> str:
    """The id of a run that its owner has named: nobody else can have it, or find it taken."""
    told = json.dumps([owner.tenant, owner.user, name])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _json(value: Any, status: int = 200) -> Response:
    """As JSON in plain ASCII: half a character, as a model may say it, is one escape in it."""
    return Response(json.dumps(value), status, media_type="application/json")
