"""Scenarios of one budget through all layers: nested retries, a retry storm, a deadline.

Each layer keeps the loop of its own that it always had. What differs between the naive scenario and
the careful one is the policy alone: a `BudgetLimits`, or `COUNTS_ONLY`, an account that refuses
nothing. A run's result is what each layer used.

    simulate("budgets.nested").result        # [{'layer': 'run', 'requests': 36, ...}, ...]
    simulate("budgets.nested", policy=BudgetLimits(requests=4))
    peak(simulate("budgets.storm").trace)    # 200
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from labkit.providers.fake import FakeProvider
from labkit.providers.script import Script
from labkit.recovery import budget as budget_module
from labkit.recovery import retry
from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.cancel import stop
from labkit.recovery.deltas import Delta
from labkit.recovery.errors import TRANSIENT, ProviderError
from labkit.recovery.policy import MOST, RetryPolicy
from labkit.recovery.retry import stream_with_retry
from labkit.simulation import Event, Observer, Run, Scenario
from labkit.simulation.judge import left_over_task
from labkit.simulation.outside import loading

from . import sdk
from .budget_judges import BUDGET_JUDGES, busiest
from .effect_judges import effect_repeated
from .rows import rows, scenario

COUNTS_ONLY: Final = BudgetLimits(
    requests=int(MOST), retries=int(MOST), per_tool=int(MOST), seconds=MOST, cost=MOST
)
NODE: Final = 3  # attempts of each layer, the first included
TOOL: Final = 4
CLIENT: Final = 3
WAIT: Final = 1.0  # seconds between the attempts of a node and of a tool
MANY: Final = 200  # clients
DOWN: Final = 5.0  # seconds that the service of the storm is down
CAPACITY: Final = 60  # requests in a second that it can answer
QUEUED: Final = 4.0  # seconds in a queue
PROMISED: Final = 10.0  # seconds within which the user is promised an answer
HANDED_BACK: Final = 0.5  # seconds until the model has read a tool's result and answered
Ask = Callable[[], Awaitable[Any]]


def account(limits: BudgetLimits, observe: Observer) -> Budget:
    """A run's budget, which begins now."""
    return Budget(limits, clock=asyncio.get_running_loop().time, observe=observe.of("budget"))


def report(budget: Budget) -> list[dict[str, Any]]:
    """What each layer has used, with all that is inside it; `waited` in seconds."""
    names = ("layer", "requests", "retries", "waited")
    rows = [(at, s.requests, s.retries, round(s.waited, 3)) for at, s in budget.used.items()]
    return [dict(zip(names, told, strict=True)) for told in sorted(rows)]


async def tried(ask: Ask, attempts: int, layer: Budget, observe: Observer) -> Any:
    """A layer's own loop: ask, and ask again after each failure, while the budget pays for it."""
    observe.of("layer")("begins", name=layer.layer, attempts=attempts)
    attempt = 1
    while True:
        try:
            return await ask()
        except Exception as error:  # as such loops do
            if short := "attempts" if attempt == attempts else layer.retry(WAIT):
                error.add_note(f"gave up in {layer.layer} after attempt {attempt}: {short}")
                raise
        attempt += 1
        await asyncio.sleep(WAIT)


# --- nested


class Model:
    """A model on a script, and two clients that ask it: labkit's own and an unmodified one."""

    def __init__(self, script: Script, observe: Observer) -> None:
        self.script = script
        self.observe = observe
        self.provider = FakeProvider(script, observe)

    def plain(self, budget: Budget) -> Ask:
        """A question by labkit's client, with two retries of its own."""
        policy = RetryPolicy(retry_on=TRANSIENT, attempts=CLIENT, first_wait=0.5, jitter=0.25)
        return partial(_answered, self.provider.stream, policy, budget, self.observe)

    def unmodified(self, budget: Budget) -> Ask:
        """A question by an `openai` client, with the two retries that are its default."""
        with loading():
            client = sdk.make_client(self.script, self.observe, budget=budget)
        return partial(sdk.unmodified, client, None, self.observe)


async def _answered(stream: Any, policy: RetryPolicy, budget: Budget, observe: Observer) -> None:
    chance, now = observe.random, observe.now
    pieces = stream_with_retry(stream, policy=policy, random=chance, now=now, budget=budget)
    async with aclosing(pieces):
        async for _ in pieces:
            pass


async def nested(
    model: Model, limits: BudgetLimits, observe: Observer, *, asks: str, around: Any = tried
) -> list[dict[str, Any]]:
    """A node around a tool around a client, each with its own loop; what each used.

    `asks`: "plain" or "unmodified"; `around`: the node's loop.
    """
    budget = account(limits, observe)
    node = budget.within("node")
    tool = node.within("tool", tool="ask")
    ask = getattr(model, asks)(tool.within("client"))
    try:
        await around(partial(tried, ask, TOOL, tool, observe), NODE, node, observe)
    except Exception as error:
        why = [note for note in getattr(error, "__notes__", ()) if note.startswith("gave up")]
        if not why:
            raise  # it is no failure that a loop has given up on
        observe.of("page")("error", text=str(error), why=tuple(why))
    return report(budget)


# --- a storm, and a deadline


class Outage:
    """A service that is down until `seconds`, and then answers `CAPACITY` requests in a second.

    A `silent` one says nothing and hangs while it is down.
    """

    def __init__(
        self, script: None, observe: Observer, *, seconds: float = DOWN, silent: bool = False
    ) -> None:
        self._observe = observe
        self._seconds = seconds
        self._silent = silent
        self._answered: list[float] = []

    async def stream(self, attempt: int = 1) -> AsyncGenerator[Delta, None]:
        """One request's deltas."""
        self._observe("request", attempt=attempt)
        await asyncio.sleep(0.1)
        now = asyncio.get_running_loop().time()
        down = now < self._seconds
        if down and self._silent:
            await self._hang(attempt)
        full = len(self._answered) >= CAPACITY and now < self._answered[-CAPACITY] + 1
        if down or full:
            self._observe("http_error", status=503)
            raise ProviderError("the service is down, or has too much to do", status=503)
        self._answered.append(now)
        self._observe("finish", reason="stop")
        yield Delta("finish", reason="stop")

    async def _hang(self, attempt: int) -> None:
        """Say nothing until the client has left."""
        try:
            await asyncio.Event().wait()
        finally:
            self._observe("left", attempt=attempt, how="closed")


async def storm(
    service: Outage, limits: BudgetLimits, observe: Observer, *, jitter: float = 0.0
) -> list[dict[str, Any]]:
    """Many clients whose requests all fail at once, and who all try again; what they used."""
    budget = account(limits, observe)
    policy = RetryPolicy(retry_on=TRANSIENT, attempts=5, first_wait=4.0, jitter=jitter)
    work = (_answered(service.stream, policy, budget, observe) for _ in range(MANY))
    tasks = [asyncio.create_task(each, name=f"client {n}") for n, each in enumerate(work)]
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            await stop(task)
    for task in tasks:
        observe.of("page")("error" if task.exception() else "shown", text=task.get_name())
    return report(budget)


async def promised(
    service: Outage, limits: BudgetLimits, observe: Observer
) -> list[dict[str, Any]]:
    """An answer is promised, waits in a queue, and needs a tool whose service says nothing."""
    observe.of("user")("asks", within=PROMISED)
    budget = account(limits, observe)
    tool = budget.within("tool", tool="look_up")
    per_call = RetryPolicy(retry_on=TRANSIENT, attempts=4, jitter=0.0, stall=8.0, total=300.0)
    await asyncio.sleep(min(QUEUED, tool.remaining))
    text = "found"
    try:
        await _answered(service.stream, per_call, tool, observe)
    except ProviderError as error:
        text = f"nothing was found: {error}"
    await asyncio.sleep(HANDED_BACK)
    observe.of("page")("shown", text=text)
    return report(budget)


# --- figures


def peak(events: Sequence[Event]) -> int:
    """The most requests within one second among those that come after a failure."""
    return busiest(events)[0]


def row(run: Run) -> dict[str, Any]:
    """A run in figures: `peak` as above, `answered` and `failed` clients, `seconds` in all."""
    page = [event.kind for event in run.trace if event.actor == "page"]
    return {
        "scenario": run.scenario.name.partition(".")[2],
        "requests": sum(event.kind == "request" for event in run.trace),
        "peak": peak(run.trace),
        "answered": page.count("shown"),
        "failed": page.count("error"),
        "seconds": round(run.time, 1),
    }


# what makes the services, and the client on them
CLIENTS: Final[Mapping[str, tuple[Any, Any]]] = {
    "plain": (Model, partial(nested, asks="plain")),
    "unmodified": (Model, partial(nested, asks="unmodified")),
    "storm": (Outage, storm),
    "promised": (partial(Outage, seconds=MOST, silent=True), promised),
}


def scenarios(clients: Mapping[str, tuple[Any, Any]] = CLIENTS) -> list[Scenario]:
    """Those of these clients, in the order of the lesson."""
    found = {name: told for name, told in rows("budgets").items() if told["client"] in clients}
    return [_scenario(f"budgets.{name}", told, clients) for name, told in found.items()]


def _scenario(name: str, told: dict[str, Any], clients: Mapping[str, tuple[Any, Any]]) -> Scenario:
    make, client = clients[told["client"]]
    how = {key: told[key] for key in ("jitter", "keyed") if key in told}
    return scenario(
        name,
        told,
        make=make,
        client=partial(client, **how),
        policy=BudgetLimits(**told["limits"]) if "limits" in told else COUNTS_ONLY,
        judges=(*BUDGET_JUDGES, effect_repeated, left_over_task),
        source=(budget_module, retry),
        sdk=told["client"] == "unmodified",
    )
