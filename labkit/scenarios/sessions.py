"""Scenarios of many sessions on one dispatcher. The policy under study is its `Concurrency`."""

import asyncio
from functools import partial
from typing import Any, Final

from labkit.recovery import dispatch, mailbox
from labkit.recovery.cancel import stop, to_the_end
from labkit.recovery.dispatch import Concurrency, Dispatcher
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.simulation import Observer, Scenario
from labkit.simulation.judge import left_over_task

from . import naive_sessions
from .office import Office
from .rows import POLICY, TURNS, rows, scenario
from .session_judges import SESSION_JUDGES

SCRIPT: Final = "short-answer"
HELP: Final = "I answer questions about refunds."


async def serving(
    office: Office,
    concurrency: Concurrency,
    observe: Observer,
    *,
    arrivals: list[list[Any]],
    kind: type[Dispatcher] = Dispatcher,
) -> dict[str, int]:
    """Serve what arrives, until nothing is left to do; how many messages each session holds."""

    async def handle(message: Inbound, mailbox: Mailbox) -> None:
        if message.text == "/help":
            answer(message, HELP)
        else:
            await office.turn(message.text, POLICY, session=message.session, mailbox=mailbox)

    def answer(message: Inbound, text: str) -> None:
        observe.of("page")("status", text=f"{message.session}: {text}")

    dispatcher = kind(
        handle,
        answer=answer,
        unanswered=office.unanswered,
        concurrency=concurrency,
        observe=observe.of("dispatcher"),
    )
    observe.of("dispatcher")("gate", limit=concurrency.limit)
    inbound: asyncio.Queue[Inbound] = asyncio.Queue()
    running = asyncio.create_task(dispatcher.run(inbound), name="dispatcher")
    try:
        await _users(arrivals, inbound, observe.of("user"))
        await dispatcher.idle()
    finally:
        await to_the_end(_end(running, dispatcher))
    return {name: len(session.messages) for name, session in office.store.kept.items()}


async def _end(running: asyncio.Task[None], dispatcher: Dispatcher) -> None:
    await stop(running)
    await dispatcher.close()


async def _users(
    arrivals: list[list[Any]], inbound: asyncio.Queue[Inbound], observe: Observer
) -> None:
    """Send each message at its time; the last of them has been taken when this returns."""
    clock = asyncio.get_running_loop().time
    for time, session, text in arrivals:
        await asyncio.sleep(time - clock())
        observe("sends", session=session, text=text)
        inbound.put_nowait(Inbound(session, text))
    await asyncio.sleep(0.1)


def scenarios() -> list[Scenario]:
    """In the order of the lesson."""
    return [_scenario(f"sessions.{name}", row) for name, row in rows("sessions").items()]


def _scenario(name: str, row: dict[str, Any]) -> Scenario:
    naive = row.get("naive")
    kind = getattr(naive_sessions, naive) if naive else Dispatcher
    source = (dispatch, mailbox, *TURNS)
    return scenario(
        name,
        {"script": SCRIPT, **row},
        make=Office,
        client=partial(serving, arrivals=row["arrivals"], kind=kind),
        policy=Concurrency(room=row.get("room", Concurrency().room)),
        judges=(*SESSION_JUDGES, left_over_task),
        source=(*source, naive_sessions) if naive else source,
    )
