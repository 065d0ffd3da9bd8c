"""The service without a socket: two users, a store of its own, and runs that a test moves by hand.

def test_...(desk: Desk) -> None:
    run = desk.begun(QUESTION)
    desk.asks(run, APPROVAL)
    assert desk.ann.post(f"/runs/{run}/input", json={"answer": "yes"}).status_code == 409
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from starlette.testclient import TestClient

from labkit.recovery.run_states import UnknownRun
from labkit.recovery.stream.record import Owner
from labkit.runs.api.access import Access, users_of
from labkit.runs.api.app import application
from labkit.runs.api.streams import Places
from labkit.runs.discussion.memory import Memory, UnknownMemory
from labkit.runs.discussion.models import Models
from labkit.runs.job import Ask, Done, Step, Work
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import virtual_run_store
from labkit.runs.record import AgentRun, Held, RunEvent
from labkit.runs.store import RunStore

ANN, BOB = Owner(user="ann", tenant="lab"), Owner(user="bob", tenant="acme")
TOKENS = {ANN: "the-token-of-ann-1", BOB: "the-token-of-bob-1"}
USERS = f"ann:{TOKENS[ANN]} acme/bob:{TOKENS[BOB]}"
ASKED = {"question": "Which database?"}
QUESTION = {"id": "question-1", "kind": "question", "question": "What is the budget?"}
APPROVAL = {
    "id": "ask-1",
    "kind": "approval",
    "question": "May send_mail run?",
    "tool": "send_mail",
    "arguments": {"to": "team"},
    "digest": "0a1b",
    "until": 9e9,
}
SECOND = {**APPROVAL, "id": "ask-2", "digest": "2c3d"}


class Remembered:
    """Memories in memory."""

    def __init__(self) -> None:
        self.facts = {ANN: [Memory("m-1", "A budget of 5,000", "run-1", 1.0)]}

    async def of(self, owner: Owner, *, most: int = 50) -> list[Memory]:
        return self.facts.get(owner, [])

    async def correct(self, owner: Owner, key: str, text: str) -> Memory:
        old = self._one(owner, key)
        self.facts[owner] = [old._replace(text=text)]
        return self.facts[owner][0]

    async def delete(self, owner: Owner, key: str) -> None:
        old = self._one(owner, key)
        self.facts[owner].remove(old)

    def _one(self, owner: Owner, key: str) -> Memory:
        for each in self.facts.get(owner, []):
            if each.key == key:
                return each
        raise UnknownMemory(key)


class Talk:
    """What the service needs of a discussion; its job says two things at once."""

    def __init__(self) -> None:
        self.models = Models()
        self.memories = Remembered()

    async def job(self, work: Work) -> AsyncGenerator[Step | Ask | Done, None]:
        yield Step("proposer", {"text": "Plan v1"}, {"node": 1})
        yield Step("critic", {"text": "Sound"}, {"node": 2})
        yield Done({"conclusion": "Take plan v1."}, "consensus")

    async def report(self, run: AgentRun, events: Sequence[RunEvent]) -> str:
        return f"# Report\n\n{run.given['question']}\n\n{len(events)} events\n"


class Desk:
    """The service, and whoever talks with it."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.talk = Talk()
        self.failed: list[dict[str, Any]] = []
        self.places = Places()
        self.manager = RunManager(
            store,
            {"discussion": self.talk.job, "order": self.talk.job},
            worker="w",
            policy=RunPolicy(),
        )
        talk: Any = self.talk
        self.app = application(
            self.manager,
            talk,
            Access(users_of(USERS)),
            places=self.places,
            observe=lambda kind, **told: self.failed.append(told),
        )
        self.nobody = TestClient(self.app)
        self.ann, self.bob = self.client(TOKENS[ANN]), self.client(TOKENS[BOB])

    def client(self, token: str) -> TestClient:
        """One that shows this token."""
        return TestClient(self.app, headers={"authorization": f"Bearer {token}"})

    def begun(self, **given: Any) -> str:
        """The id of a new run of Ann's."""
        answered = self.ann.post("/runs", json={**ASKED, **given})
        assert answered.status_code == 201, answered.text
        return str(answered.json()["id"])

    def claimed(self, run: str) -> Held:
        """A worker has it."""
        held = asyncio.run(self.store.claim("worker", length=60.0, run_id=run))
        assert held is not None
        return held

    def asks(self, run: str, *asks: dict[str, Any]) -> None:
        """It waits for a person."""
        held = self.claimed(run)
        known = {"thread": "t", "id": "c", "asks": list(asks)}
        asyncio.run(self.store.ask(held, "?", checkpoint=known))

    def fails(self, run: str) -> None:
        """It has failed."""
        asyncio.run(self.store.fail(self.claimed(run), "QUOTA_EXCEEDED", "no quota left"))

    def finishes(self, run: str, conclusion: str = "Take plan v1.") -> None:
        """It is done."""
        result = {"conclusion": conclusion}
        asyncio.run(self.store.finish(self.claimed(run), result, reason="consensus"))

    def get(self, run: str, owner: Owner = ANN) -> AgentRun | None:
        """As the store has it."""
        try:
            return asyncio.run(self.store.get(run, owner))
        except UnknownRun:
            return None


@contextmanager
def in_memory() -> Iterator[RunStore]:
    """A store that is quickly made: the same statements on a SQLite in memory."""

    async def at_once(work: Callable[[], Any]) -> Any:
        return work()

    with closing(virtual_run_store(time.time, call=at_once)) as store:
        yield store


def code(answered: Any) -> tuple[int, str]:
    """Status and code of a refusal, which has the one form that refusals have."""
    error = answered.json()["error"]
    assert set(error) == {"code", "message"}
    assert 10 < len(error["message"]) <= 300
    return answered.status_code, error["code"]
