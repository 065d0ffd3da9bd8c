"""Discussions through the run store beside bare LangGraph; and two hundred readers on one server.

Both graphs are the same nodes on the same kind of saver and the same demo model. What labkit adds
is the run's row: a claim, an event for each step under the fence, and renewals.
"""

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Final

import httpx
import psutil
from langgraph.graph.state import CompiledStateGraph

from labkit.recovery.run_states import COMPLETED
from labkit.recovery.stream.record import Owner
from labkit.runs.discussion import opening
from labkit.runs.discussion.graph import graph_of
from labkit.runs.discussion.models import Models
from labkit.runs.discussion.nodes import Nodes
from labkit.runs.discussion.speaking import Speaker
from labkit.runs.manager import RunManager, RunPolicy
from labkit.runs.opening import open_run_store
from tests.stores.postgres import new_schema, serving

from .table import Measure, Row

RUNS: Final = 30
ROUNDS: Final = 3
ANN: Final = Owner("ann", "acme")
QUESTION: Final = {"question": "Which database suits five people?", "rounds": 3}
READERS: Final = 200
EACH: Final = 5  # readers of a user, who may have six
LAG: Final = 1.0  # seconds: a stream looks into the database at least so often


async def ours(url: str, folder: str) -> float:
    """Seconds for the discussions, one after another, through store and manager."""
    with closing(open_run_store(url)) as store:
        how: dict[str, Any] = {"ledger": f"{folder}/effects.db", "worker": "w", "lease": 30.0}
        async with opening.open_discussion(url, store, models=Models(), **how) as discussion:
            jobs, policy = {"d": discussion.job}, RunPolicy(capacity=1)
            manager = RunManager(store, jobs, worker="w", policy=policy)
            runs = [
                await manager.submit("d", QUESTION, owner=ANN, model="fake") for _ in range(RUNS)
            ]
            began = time.perf_counter()
            serving = asyncio.create_task(manager.serve())
            while await store.left():  # noqa: ASYNC110 - as a client asks
                await asyncio.sleep(0.005)
            took = time.perf_counter() - began
            await manager.shutdown()
            await serving
            states = {(await store.get(run.run_id, ANN)).status for run in runs}
            assert states == {COMPLETED}
            return took


async def bare(url: str, folder: str) -> float:
    """Seconds for the same graph, called as it is."""
    async with AsyncExitStack() as stack:
        saver, _ = await opening._opened(stack, url)
        speaker = Speaker(Models()("fake"), random=Random(0), observe=lambda kind, **details: None)
        nodes: Any = Nodes(None, speaker, None, None, None, None)  # type: ignore[arg-type]  # unused
        app: CompiledStateGraph[Any, Any, Any, Any] = graph_of(nodes).compile(checkpointer=saver)
        began = time.perf_counter()
        for number in range(RUNS):
            done = await app.ainvoke(QUESTION, {"configurable": {"thread_id": f"bare-{number}"}})
            assert done["end_reason"] == "consensus"
        return time.perf_counter() - began


def _through(what: str, urls: Iterator[str]) -> Row:
    found: dict[str, list[float]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):  # taken in turns, so that both meet the same machine
            found["ours"].append(asyncio.run(ours(next(urls), folder)))
            found["bare"].append(asyncio.run(bare(next(urls), folder)))
    mine, theirs = (RUNS / min(found[name]) for name in ("ours", "bare"))
    what = f"discussions through the run store, {what}"
    return Row(what=what, value=mine, unit="/s", peer="bare LangGraph", beside=theirs)


def graphs() -> Iterator[Row]:
    """Discussions a second, on both databases."""
    with tempfile.TemporaryDirectory() as folder:
        yield _through("SQLite", (f"sqlite:///{Path(folder, f'{n}.db')}" for n in count()))
    with serving() as url:
        yield _through("PostgreSQL", (new_schema(url) for _ in count()))


@contextmanager
def _service(users: dict[str, str]) -> Iterator[tuple[str, psutil.Process]]:
    """A server of its own process."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"--store=sqlite:///{folder}/runs.db", f"--ledger={folder}/effects.db"]
        line = [sys.executable, "-m", "labkit", "serve", *files, "--pause=0"]
        told = " ".join(f"{user}:{token}" for user, token in users.items())
        env = {**os.environ, "LABKIT_TOKENS": told, "LABKIT_ENVIRONMENT": "current"}
        with subprocess.Popen(line, env=env, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                yield process.stdout.readline().split()[1], psutil.Process(process.pid)
            finally:
                process.kill()


@asynccontextmanager
async def _reading(client: httpx.AsyncClient, run: str, heard: list[float]) -> AsyncIterator[None]:
    """One reader, which notes when it hears that the run was cancelled."""
    opened = asyncio.Event()

    async def read() -> None:
        async with client.stream("GET", f"/runs/{run}/events") as stream:
            async for line in stream.aiter_lines():
                opened.set()
                if line == "event: run_cancelled":
                    heard.append(time.perf_counter())

    reading = asyncio.create_task(read())
    await opened.wait()
    try:
        yield
    finally:
        await reading


async def _lags(address: str, users: dict[str, str], server: psutil.Process) -> tuple[Any, ...]:
    """Lag of one reader alone; lags of all of them; memory of the server before and with them."""
    async with AsyncExitStack() as stack:
        limits = httpx.Limits(max_connections=None)
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=address,
                    headers={"authorization": f"Bearer {token}"},
                    trust_env=False,
                    timeout=60.0,
                    limits=limits,
                )
            )
            for token in users.values()
        ]
        asking = {"question": "Which? [needs clarification]"}
        runs = [(await client.post("/runs", json=asking)).json()["id"] for client in clients]
        alone = (await clients[0].post("/runs", json=asking)).json()["id"]
        await asyncio.sleep(3.0)  # until all of them ask
        one: list[float] = []
        async with _reading(clients[0], alone, one):
            began = time.perf_counter()
            await clients[0].post(f"/runs/{alone}/cancel")
        single = one[0] - began
        before = server.memory_info().rss
        heard: list[list[float]] = [[] for _ in runs]
        lags: list[float] = []
        async with AsyncExitStack() as readers:
            for client, run, own in zip(clients, runs, heard, strict=True):
                for _ in range(EACH):
                    await readers.enter_async_context(_reading(client, run, own))
            full = server.memory_info().rss
            for client, run, own in zip(clients, runs, heard, strict=True):
                began = time.perf_counter()
                await client.post(f"/runs/{run}/cancel")
                while len(own) < EACH:  # noqa: ASYNC110 - of five tasks
                    await asyncio.sleep(0.001)
                lags += [at - began for at in own]
        return single, lags, before, full


def readers() -> Iterator[Row]:
    """How long an event takes to two hundred readers, and what they cost the server."""
    users = {f"user-{number}": secrets.token_urlsafe(24) for number in range(READERS // EACH)}
    with _service(users) as (address, server):
        single, lags, before, full = asyncio.run(_lags(address, users, server))
    assert len(lags) == READERS
    many = f"with {READERS} readers of events"
    yield Row(
        what=f"delivery lag {many}, the median",
        value=1000 * median(lags),
        unit="ms",
        peer="one reader",
        beside=1000 * single,
    )
    yield Row(what=f"the longest lag {many}", value=max(lags), unit="s", most=LAG)
    each = (full - before) / READERS / 1024
    yield Row(what=f"memory of the server {many}, each", value=each, unit="KiB")


MEASURES: Final[tuple[Measure, ...]] = (graphs, readers)
