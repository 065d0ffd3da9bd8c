"""The service keeps to its own description, whatever is sent: schemathesis makes the requests.

Its examples are the same each time. The ids in them are of Ann's runs and memories, of Bob's, and
of none; every request is Ann's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.checks import CheckContext
from starlette.types import Receive, Scope, Send

from labkit.runs.api.app import application
from labkit.runs.api.door import Door
from labkit.runs.api.routes import own_id
from labkit.runs.discussion.memory import Memory
from labkit.runs.discussion.models import Models
from tests.runs.api.kit import ANN, APPROVAL, BOB, QUESTION, SECOND, TOKENS, Desk, in_memory

WHOSE = "a secret of bob"
DONE, FAILED, ASKS, TWICE = (own_id(ANN, name) for name in ("done", "failed", "asks", "twice"))
FOREIGN = own_id(BOB, "done")
IDS = {"run_id": [DONE, FAILED, ASKS, TWICE, FOREIGN, "nothing"], "key": ["m-1", "m-2", "nothing"]}


def description() -> dict[str, Any]:
    """As the service gives it, with ids and models that are there."""
    nothing: Any = None
    app: Any = application(nothing, nothing, nothing).app
    told: dict[str, Any] = app.openapi()
    for name in ("NewRun", "Retry"):
        told["components"]["schemas"][name]["properties"]["model"] = {"enum": [*Models.names, None]}
    for path, item in told["paths"].items():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                ids = IDS.get(parameter["name"])
                if path.endswith("/events"):  # where others are followed for as long as they live
                    ids = [DONE, FOREIGN, "nothing"]
                if parameter["in"] == "path":
                    parameter["schema"] = {"type": "string", "enum": ids}
    return told


served: list[Door] = []


async def serve(scope: Scope, receive: Receive, send: Send) -> None:
    """The service that the fixture has made: the description is read before there is any."""
    await served[-1](scope, receive, send)


schema = schemathesis.openapi.from_dict(description())
schema.app = serve


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """A service with what the two users have; in the end Bob's is as it was."""
    with in_memory() as store:
        desk = Desk(store)
        served.append(desk.app)
        desk.finishes(desk.begun(id="done"))
        desk.fails(desk.begun(id="failed"))
        desk.asks(desk.begun(id="asks"), QUESTION)
        desk.asks(desk.begun(id="twice"), APPROVAL, SECOND)
        assert desk.bob.post("/runs", json={"question": WHOSE, "id": "done"}).is_success
        desk.finishes(FOREIGN)
        before = asyncio.run(store.get(FOREIGN, BOB))
        fact = Memory("m-2", WHOSE, FOREIGN, 1.0)
        desk.talk.memories.facts[BOB] = [fact]
        yield desk
        assert asyncio.run(store.runs(BOB)) == [before]
        assert desk.talk.memories.facts[BOB] == [fact]


def tells_nothing_of_bob(context: CheckContext, response: Any, case: Any) -> None:
    """Ann is told nothing of what is Bob's."""
    assert WHOSE not in response.text


@schema.parametrize()
@settings(max_examples=40)
def test_whatever_is_sent_is_answered_as_described_and_tells_nothing_of_anybody_else(
    case: schemathesis.Case, desk: Desk
) -> None:
    case.call_and_validate(
        headers={"Authorization": f"Bearer {TOKENS[ANN]}"},
        additional_checks=[tells_nothing_of_bob],
    )
    assert desk.failed == []
