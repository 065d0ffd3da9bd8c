"""How the exercises of timeouts, budgets and idempotency are tried.

    wrong, run = EFFECT_TRIALS["08.fingerprint"](fingerprint, {"one": {}, "other": {}})

What is right in a case is what labkit's own code does in it: a budget, an executor, a key.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from copy import deepcopy
from functools import partial, wraps
from random import Random
from typing import Any, Final
from unittest.mock import patch

from labkit.recovery import idempotency, outcomes
from labkit.recovery.budget import Budget, BudgetLimits
from labkit.recovery.errors import TRANSIENT
from labkit.recovery.idempotency import KeyRecord, Operation, checked
from labkit.recovery.lease import Lease
from labkit.recovery.policy import RetryPolicy
from labkit.recovery.retry import backoff
from labkit.recovery.service import DONE, UNSURE
from labkit.scenarios.catalogue import find
from labkit.scenarios.shop import Shop
from labkit.simulation import Scenario, simulate

from .tried import Tried, same

CAP: Final = 30.0  # seconds of the longest wait
SPREAD: Final = 1.5  # how much higher than labkit's own a peak may be
DRAWS: Final = 50  # of a wait for one attempt
_HASH: Final = hash  # Python's own
ENDS: Final = {outcomes.RECONCILED: "done", outcomes.MANUAL: "stop for a person"}
STEPS: Final = {"request": "try again", "look_up": "ask", "called_off": "ask"}


def _limit(remaining_limit: Any, case: Mapping[str, float]) -> Tried:
    """`case`: the limit of one try, the run's deadline, what is kept of it, and the time now."""
    limits = BudgetLimits(seconds=case["deadline"], hand_back=case["hand_back"])
    clock = iter((0.0, case["now"])).__next__
    tool = Budget(limits, clock=clock).within("tool", tool="charge")
    return same(remaining_limit(**case), min(case["limit"], tool.remaining))


def _may_retry(may_retry: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what is left of each limit, and the waits of those who ask at the same moment."""
    requests, retries, seconds = case["requests"], case["retries"], case["seconds"]

    async def answered(asked: Awaitable[Any]) -> str:
        may = await asked
        return f"{may} at {asyncio.get_running_loop().time():g} s"

    @wraps(may_retry)
    async def client(*_: object) -> list[list[str]]:
        clock = asyncio.get_running_loop().time
        limits = BudgetLimits(requests=requests, retries=retries, seconds=seconds, hand_back=0)
        budget, left = Budget(limits, clock=clock), {"requests": requests, "retries": retries}
        own = [answered(_asked(budget, wait)) for wait in case["waits"]]
        theirs = [answered(may_retry(left, seconds, wait)) for wait in case["waits"]]
        told = await asyncio.gather(*theirs, *own)
        return [told[: len(own)], told[len(own) :]]

    scenario = Scenario(
        name="exercise", claim=repr(case), script=None, make=lambda *_: None, client=client
    )
    run = simulate(scenario)
    wrong = same(*run.result)[0] if run.result else f"It raised {run.error!r}."
    return wrong, run


async def _asked(budget: Budget, wait: float) -> bool:
    may = not budget.retry(wait)
    await asyncio.sleep(wait if may else 0.0)
    return may


def _backoff(learners: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: attempts whose waits are looked at, or clients, and how long their service is down.

    A wait is at least 0 and at most `CAP`, and for the first attempts 1, 2, 4 ... seconds.
    """
    for attempt, seed in ((a, s) for a in case.get("attempts", ()) for s in range(DRAWS)):
        most = min(CAP, 2 ** (attempt - 1))
        if not 0 <= (wait := learners(attempt, Random(seed))) <= most:
            return f"Attempt {attempt}: it waits {wait!r} s; 0 to {most:g} is expected.", None
    policy = RetryPolicy(retry_on=TRANSIENT, max_wait=CAP)
    own = _peak(lambda attempt, random: backoff(attempt, policy=policy, random=random), **case)
    if (peak := _peak(learners, **case)) > SPREAD * own:
        told = f"{peak} of {case['clients']} clients ask within one second when it is back"
        return f"{told}; with labkit's own backoff {own} do.", None
    return "", None


def _peak(
    waits: Callable[[int, Random], float], clients: int = 0, down: float = 0.0, **_: Any
) -> int:
    """The most requests within one second of those that find the service up again."""
    back = list[float]()
    for random in map(Random, range(clients)):
        now = 0.0
        for attempt in range(1, 1_000):  # which a client that never waits does not pass
            now += waits(attempt, random)
            if now >= down:
                break
        back.append(now)
    back.sort()
    return max((bisect_right(back, at + 1) - n for n, at in enumerate(back)), default=0)


def _key(key_for: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: two calls, each with whose it is, what is done, to what, its id and its payload."""

    def own(call: Mapping[str, Any]) -> str:
        return Operation(
            tenant=call["tenant"], name=call["operation"], resource=call["resource"]
        ).sent

    return _alike(lambda call: key_for(**call), own, case)


def _fingerprint(fingerprint: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: two payloads."""
    any_order = partial(Operation, tenant="acme", name="charge", resource="order-7")
    return _alike(fingerprint, lambda payload: checked(any_order(payload=payload)), case)


def _alike(make: Callable[[Any], Any], own: Callable[[Any], str], case: Mapping[str, Any]) -> Tried:
    """Equal texts for the two where labkit makes them equal, and different ones elsewhere.

    Python's hash() of a text is another one in each process, so the first is made once more.
    """
    again = deepcopy(case["one"])
    one, other = make(case["one"]), make(case["other"])
    if not (isinstance(one, str) and isinstance(other, str)):
        return f"It gives {one!r} and {other!r}; texts are expected.", None
    meant = own(case["one"]) == own(case["other"])
    if (one == other) != meant:
        words = "be equal" if meant else "differ"
        return f"It gives {one!r} and {other!r}; they must {words}.", None
    with patch("builtins.hash", lambda value: _HASH((value, "in another process"))):
        later = make(again)
    told = f"It gives {one!r} here and {later!r} in another process, as hash() does."
    return "" if one == later else told, None


def _door(at_the_door: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what is kept of a key, if anything, and the fingerprint and the time of a call."""
    record = None
    if kept := case.get("record"):
        told = {"tenant": "acme", "key": "acme/charge/order-7", "since": 0.0, **kept}
        lease = Lease("worker-1", 1, told.pop("until", 0.0), 10.0)
        record = KeyRecord(**told, lease=lease)
    asked = case["fingerprint"], case["now"]
    return same(at_the_door(record, *asked), idempotency.enter(record, asked[0], now=asked[1]))


def _after_error(after_error: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: what is known after an error; the run is labkit's own, with a service to match."""
    known, atomic = case["known"], case["atomic"]
    cue = "refuse" if case["definite"] else "fail_after" if known == DONE else "fail_before"
    kind = "payment" if atomic else "mail" if known == UNSURE else "ticket"
    make = partial(Shop, kind=kind, look_ups=["down"] * 9 if known == UNSURE else ())
    run = simulate(find("effects.happened").but(claim=repr(case), script=(cue,), make=make))
    steps = [STEPS[event.kind] for event in run.trace if event.kind in STEPS][1:]
    own = [step for step in steps if not known or step != "ask"]
    end = ENDS.get(run.result["c1"], "")
    return same(after_error(**case), [*own, end][0])[0], run


EFFECT_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "07.limit": _limit,
    "07.may_retry": _may_retry,
    "07.backoff": _backoff,
    "08.key": _key,
    "08.fingerprint": _fingerprint,
    "08.door": _door,
    "08.after_error": _after_error,
}
