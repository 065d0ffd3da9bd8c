"""The service of discussions on a real socket, in a thread, with demo models that a test can hold.

with closing(RunService(folder)) as service:
    service.address                 # under a path, as behind a proxy
    service.release("critic a")     # what "[hold critic a]" in a question has held
    service.stop()
    service.fill("user-1", ["Which stack?"])        # while it is stopped
    service.start()                 # on the same port and database

A question with "[html]" has the proposer say `HOSTILE`.
"""

from __future__ import annotations

import asyncio
import pathlib
import re
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from starlette.types import ASGIApp, Receive, Scope, Send

from labkit.providers.server import hosting, listen
from labkit.recovery.stream.record import Owner
from labkit.runs.api.access import TENANT, Access, users_of
from labkit.runs.api.app import application
from labkit.runs.discussion.models import DemoModel, Models
from labkit.runs.discussion.opening import open_discussion
from labkit.runs.manager import RunManager, RunPolicy, new_worker
from labkit.runs.opening import open_run_store
from tests.providers.hosted import hosted

UNDER = "/user/ann/proxy/8000"
HOSTILE = '<img src="x" onerror="document.title=1"><script>document.title=2</script>&amp;'
TOKENS = [f"the-token-of-user-{number}" for number in range(60)]  # a user for each test
USERS = " ".join(f"user-{number}:{token}" for number, token in enumerate(TOKENS))
POLICY = RunPolicy(lease=5.0, watchdog=0.2, capacity=60)


class HeldModel(DemoModel):
    """A demo model whose first call in a role waits where the question says so."""

    gates: Any

    async def _agenerate(self, messages: list[BaseMessage], *more: Any, **told: Any) -> ChatResult:
        role = str(messages[0].content).split()[3].rstrip(".")
        read = str(messages[-1].content)
        held = re.search(rf"\[hold ({role} \w+)\]", read)
        if held and f"\n[{role}]" not in read:
            await self.gates[held[1]].wait()
        result = await super()._agenerate(messages, *more, **told)
        if role == "proposer" and "[html]" in read:
            result.generations[0].message = AIMessage(
                HOSTILE, response_metadata={"finish_reason": "stop"}
            )
        return result


class RunService:
    """The service with a database in `folder`; it is started, and may be stopped and started."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._url = f"sqlite:///{folder / 'runs.db'}"
        self.port = 0
        self.start()

    def start(self) -> None:
        """Serve, with a worker that is new."""
        self._stack = ExitStack()
        self._gates: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        listening, address = listen(self.port)
        self.port = int(address.rpartition(":")[2])
        self.address = f"{address}{UNDER}/"
        self._app: ASGIApp | None = None
        self._loop = self._stack.enter_context(hosted(hosting(self), listening))

    def stop(self) -> None:
        """End in order: runs go back to the queue."""
        self._stack.close()

    close = stop

    def fill(self, user: str, questions: list[str]) -> None:
        """Keep runs of a user, the oldest first; those that hold nothing are cancelled.

        While the service is stopped, or a worker would take them.
        """
        with ThreadPoolExecutor(1) as beside:  # this thread may have a loop already
            beside.submit(
                asyncio.run, self._fill(Owner(user=user, tenant=TENANT), questions)
            ).result()

    async def _fill(self, owner: Owner, questions: list[str]) -> None:
        with closing(open_run_store(self._url)) as store:
            for question in questions:
                given = {"question": question, "rounds": 3}
                run = await store.submit("discussion", given, owner=owner, model="fake")
                if "[hold" not in question:
                    await store.cancel(run.run_id, owner)

    def release(self, name: str) -> None:
        """Let a model go on that is held, or will be."""
        self._loop.call_soon_threadsafe(lambda: self._gates[name].set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what comes under the path; the beginning and the end are the service's too."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
            return
        assert self._app is not None
        assert scope["path"].startswith(UNDER), f"{scope['path']} is outside"
        await self._app({**scope, "path": scope["path"].removeprefix(UNDER)}, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        worker = new_worker()
        with closing(open_run_store(self._url)) as store:
            async with open_discussion(
                self._url,
                store,
                ledger=str(self.folder / "effects.db"),
                worker=worker,
                lease=POLICY.lease,
                models=self._models(),
            ) as discussion:
                manager = RunManager(
                    store, {"discussion": discussion.job}, worker=worker, policy=POLICY
                )
                self._app = application(manager, discussion, Access(users_of(USERS)))
                await self._app(scope, receive, send)

    def _models(self) -> Models:
        models = Models()
        for name, model in models._models.items():
            assert isinstance(model, DemoModel)
            models._models[name] = HeldModel(
                pause=model.pause, breaks=model.breaks, gates=self._gates
            )
        return models
