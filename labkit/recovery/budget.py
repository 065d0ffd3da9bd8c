"""One budget for everything that one run may ask, wait and spend, handed through every layer.

A node that tries three times a tool that tries four times a client that tries three times sends 36
requests for one failure. Rules: all layers draw on one account; a request is counted where it goes
out, a retry where it is decided, before its wait, so that those who wait count too; a wait that
would pass the deadline is not slept.

    budget = Budget(BudgetLimits(requests=6, seconds=30.0), clock=loop.time)
    tool = budget.within("tool", tool="charge")
    tool.request()               # before each request; raises BudgetExhausted
    short = tool.retry(2.0)      # "" and it may be tried again after 2 s, or what has run out
"""

from collections import Counter
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Final

from .errors import PolicyError, ProviderError
from .policy import MOST, is_amount, no_amounts

RUN: Final = "run"
DUST: Final = 1e-9  # three times 0.1 is not more than 0.3


class BudgetExhausted(ProviderError):
    """Nothing was sent, since what the message names is used up: end with the error before it."""

    def __init__(self, what: str) -> None:
        super().__init__(f"budget exhausted: {what}", kind="limit")
        self.definite = True
        self.what = what


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLimits:
    """What one run may use in all.

    `requests`: first tries and retries. `retries`: those that any layer adds. `per_tool`: requests
    of one tool. `seconds`: from the moment when the run was accepted, with queueing, attempts and
    waits, of which the last `hand_back` are kept for giving results back to the model. `cost`: in
    the unit in which requests are charged. Raises `PolicyError` that names each wrong field.
    """

    requests: int = 12
    retries: int = 6
    per_tool: int = 6
    seconds: float = 60.0
    hand_back: float = 1.0
    cost: float = 1.0

    def __post_init__(self) -> None:
        if wrong := no_amounts(self, whole=("requests", "retries", "per_tool")):
            raise PolicyError("; ".join(wrong))
        if self.hand_back >= self.seconds:
            raise PolicyError(f"hand_back is {self.hand_back!r}, and must be below seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a layer has used, with all that is inside it; `waited` in seconds."""

    requests: int = 0
    retries: int = 0
    waited: float = 0.0
    cost: float = 0.0


NOTHING: Final = Spent()


def exhausted(
    spent: Spent,
    limits: BudgetLimits,
    *,
    of_tool: int,
    remaining: float,
    wait: float = 0.0,
    retry: bool = False,
    cost: float = 0.0,
) -> str:
    """Which limit one more request would pass, or "".

    `of_tool`: requests of its tool so far; `remaining`: seconds until the deadline; `wait`: those
    before it goes out; `cost`: what it costs.
    """
    if wait >= remaining:  # breakpoint: deadline check
        return "seconds"
    if spent.requests >= limits.requests:  # breakpoint: request budget
        return "requests"
    if retry and spent.retries >= limits.retries:  # breakpoint: retry budget
        return "retries"
    if of_tool >= limits.per_tool:
        return "per_tool"
    if spent.cost + cost > limits.cost + DUST:
        return "cost"
    return ""


class Budget:
    """The account of a run as one layer sees it; `within` is the view of a layer inside.

    `clock()` gives seconds and is no wall clock, which can be set. `observe("spent", ...)` is told
    of each payment. `deadline` is this layer's, by that clock.
    """

    def __init__(
        self,
        limits: BudgetLimits,
        *,
        clock: Callable[[], float],
        observe: Callable[..., object] = lambda kind, **details: None,
    ) -> None:
        if not isinstance(limits, BudgetLimits):
            raise PolicyError(f"a budget is made from BudgetLimits(...), not {limits!r:.60}")
        self.limits = limits
        self.layer = RUN
        self.tool = ""
        self.deadline = clock() + limits.seconds
        self._clock = clock
        self._observe = observe
        self._spent: dict[str, Spent] = {}
        self._of_tool: Counter[str] = Counter()

    def within(self, layer: str, *, tool: str = "") -> "Budget":
        """The same account for a layer inside this one; a tool's ends `hand_back` earlier."""
        if not isinstance(layer, str) or not layer or "/" in layer:
            raise PolicyError(f"a layer has a name without '/', not {layer!r}")
        inner = copy(self)
        inner.layer = f"{self.layer}/{layer}"
        if tool and not self.tool:
            inner.tool, inner.deadline = tool, self.deadline - self.limits.hand_back
        return inner

    @property
    def remaining(self) -> float:
        """Seconds until this layer's deadline, at least 0."""
        return max(0.0, self.deadline - self._clock())

    @property
    def used(self) -> dict[str, Spent]:
        """What each layer has used, by its path: "run", "run/node", "run/node/tool"."""
        return dict(self._spent)

    def request(self, cost: float = 0.0) -> None:
        """Count a request that goes out now; raises `BudgetExhausted`, and then it may not."""
        if what := self._short(cost=cost):  # breakpoint: door of the budget
            raise BudgetExhausted(what)
        self._add(Spent(requests=1, cost=cost))

    def retry(self, wait: float = 0.0, cost: float = 0.0) -> str:
        """Ask for another try after `wait` seconds: "" and it is counted, or what has run out."""
        what = self._short(cost=cost, wait=wait, retry=True)
        if not what:
            self._add(Spent(retries=1, waited=wait))  # breakpoint: counted before its wait
        return what

    def _short(self, *, cost: float, wait: float = 0.0, retry: bool = False) -> str:
        for name, amount in (("cost", cost), ("wait", wait)):
            if not is_amount(amount):
                raise PolicyError(f"{name} is a number from 0 to {MOST:g}, not {amount!r}")
        return exhausted(
            self._spent.get(RUN, NOTHING),
            self.limits,
            of_tool=self._of_tool[self.tool] if self.tool else 0,
            remaining=self.remaining,
            wait=wait,
            retry=retry,
            cost=cost,
        )

    def _add(self, more: Spent) -> None:
        """Enter it for this layer and for each one around it."""
        path = ""
        for name in self.layer.split("/"):
            path = f"{path}/{name}" if path else name
            self._spent[path] = _sum(self._spent.get(path, NOTHING), more)
        self._of_tool[self.tool] += more.requests
        self._observe("spent", layer=self.layer, what="request" if more.requests else "retry")


def _sum(one: Spent, more: Spent) -> Spent:
    return Spent(
        requests=one.requests + more.requests,
        retries=one.retries + more.retries,
        waited=one.waited + more.waited,
        cost=one.cost + more.cost,
    )
