"""How the exercises of turns and sessions are tried.

    wrong, run = SESSION_TRIALS["05.late"](accepts, {"stored_version": 4, "session_version": 3})

What gives a value is compared with labkit's own code in the same state. What a learner makes of a
cancel is run in virtual time and cancelled at each of its points, and at each two of them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import wraps
from itertools import combinations, product
from typing import Any, Final

from labkit.recovery import session
from labkit.recovery.checkpoint import next_version
from labkit.recovery.dispatch import Concurrency, Dispatcher
from labkit.recovery.errors import ProviderError
from labkit.recovery.mailbox import Inbound, Mailbox
from labkit.recovery.session import Session
from labkit.recovery.stream.record import ToolCall
from labkit.recovery.tools import Arguments, Tool, ToolRegistry, batches
from labkit.simulation import Fault, Observer, Run, Scenario, simulate
from labkit.simulation.faults import PHASES
from labkit.simulation.judge import left_over_task

from .token import CLIENT
from .tried import Tried, same

POINTS: Final = 8  # at which a learner's code is cancelled: more than it needs
KEPT: Final = ["work begins", "keep begins", "keep ends"]


def _marks(marks: Any, case: Mapping[str, Sequence[str]]) -> Tried:
    """`case`: ids of the calls, of the results that came, and of the calls that were running."""
    calls = tuple(ToolCall(call_id, "any") for call_id in case["calls"])
    asked = session.Message(session.ASSISTANT, "", calls=calls)
    turn = session.add_step(session.begin_turn(Session("ann"), "?"), asked)
    for call_id in case["running"]:
        turn = session.begin_call(turn, call_id)
    for call_id in case["results"]:
        turn = session.end_call(turn, call_id, "", session.DONE)
    rows = session.close_turn(turn, "stopped").messages
    return same(marks(**case), [row.status for row in rows if row.role == session.TOOL])


def _keep(keeps_and_leaves: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what it is called, how many cancels strike, and whether work() ends in an error."""
    failure = ProviderError("connection lost", kind="disconnect") if case.get("error") else None
    keeping = _keeping(keeps_and_leaves, failure).but(claim=case["what"])
    cancels = [Fault("cancel", n, phase=phase) for n, phase in product(range(POINTS), PHASES)]
    for faults in combinations(cancels, case.get("cancels", 0)):
        run = simulate(keeping, faults=faults)
        if not run.missed and (wrong := _not_kept(run, failure)):
            return wrong, run
    return "", None


def _keeping(keeps_and_leaves: Any, failure: ProviderError | None) -> Scenario:
    """The learner's function at work; its own lines are those that can be stepped through."""

    @wraps(keeps_and_leaves)
    async def client(provider: None, policy: None, observe: Observer) -> None:
        async def work() -> None:
            observe("work begins")
            await asyncio.sleep(1)
            if failure:
                raise failure

        async def keep() -> None:
            observe("keep begins")
            await asyncio.sleep(1)
            observe("keep ends")

        await keeps_and_leaves(work, keep)

    return _scenario(client).but(judges=(left_over_task,))


def _not_kept(run: Run, failure: ProviderError | None) -> str:
    """What is wrong with one run of it."""
    seen = [e.get("fault", e.kind) for e in run.trace if e.actor == CLIENT or e.kind == "fault"]
    end = _end(run.error, failure)
    meant = _end(asyncio.CancelledError() if run.struck else failure, failure)
    if end == meant and [step for step in seen if step != "cancel"] == KEPT:
        return "".join(f"{finding!r}." for finding in run.findings)
    expected = f"keep begins once and ends, then {meant}"
    return f"Seen: {', '.join(seen)}, then {end}. Expected: {expected}."


def _end(error: BaseException | None, failure: ProviderError | None) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "the cancel leaves"
    if error is None:
        return "it returns"
    return "work()'s own error leaves" if error is failure else f"{error!r} leaves"


def _accepts(accepts: Any, case: Mapping[str, int]) -> Tried:
    """`case`: the version that is stored, and the one that the session was loaded as."""
    loaded, stored = Session("ann", case["session_version"]), Session("ann", case["stored_version"])
    try:
        own = next_version(loaded, stored) > 0
    except session.StaleSession:
        own = False
    return same(accepts(**case), own)


def _batches(learners: Any, case: Mapping[str, Sequence[str]]) -> Tried:
    """`case`: the names of the tools that are called, and of those declared concurrent."""
    calls = [ToolCall(str(number), name) for number, name in enumerate(case["calls"])]
    safe = (Tool(name=name, run=_never, concurrent=True) for name in case["concurrent"])
    own = [[call.name for call in batch] for batch in batches(calls, ToolRegistry(*safe))]
    return same(learners(**case), own)


def _way(way: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: the new message, and the state that its session is in."""
    texts = [*["/help"] * case["line"], case["text"]]
    own, _ = _dispatched(texts, case["room"], busy=case["running"])
    return same(way(**case), own)


def _line_after(line_after: Any, case: Mapping[str, Sequence[str]]) -> Tried:
    """`case`: what is left in the mailbox, and the line; both of texts, the oldest first."""
    _, own = _dispatched([*case["left"], *case["line"]], len(case["left"]), busy=True)
    return same(line_after(**case), own)


def _dispatched(texts: Sequence[str], room: int, *, busy: bool) -> tuple[str, list[str]]:
    """The way that the last of these messages takes, and the order in which they begin.

    Where a turn is running in their session, they begin when it ends.
    """

    async def client(*_: object) -> tuple[str, list[str]]:
        ways, begun, over = list[str](), list[str](), asyncio.Event()

        async def handle(message: Inbound, mailbox: Mailbox) -> None:
            begun.append(message.text)
            await over.wait()

        dispatcher = Dispatcher(
            handle,
            answer=lambda *_: None,
            concurrency=Concurrency(room=room),
            observe=lambda *_, way="", **__: ways.append(way),
        )
        if busy:
            dispatcher.take(Inbound("ann", "first"))
            await asyncio.sleep(0)  # it begins
        for text in texts:
            dispatcher.take(Inbound("ann", text))
        way = [told for told in ways if told][-1]
        over.set()
        await dispatcher.idle()
        return way, begun[busy:]

    way, begun = simulate(_scenario(client)).result
    return way, begun


def _scenario(client: Callable[..., Awaitable[Any]]) -> Scenario:
    return Scenario(name="exercise", claim="", script=None, make=lambda *_: None, client=client)


async def _never(arguments: Arguments, key: str) -> str:
    raise NotImplementedError


SESSION_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "05.marks": _marks,
    "05.keep": _keep,
    "05.late": _accepts,
    "06.batches": _batches,
    "06.way": _way,
    "06.leftovers": _line_after,
}
