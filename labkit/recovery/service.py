"""What has effects, as the recovery code sees it: do this, what became of it, call it off.

Services differ in what they promise, and that decides what may be done after a timeout: whether one
key has one effect there, whether they can be asked, whether a request can be called off.

    known = await service.look_up(request)      # Known("done", result), "not done", "in flight"
"""

from typing import Any, Final, NamedTuple, Protocol

DONE: Final = "done"
NOT_DONE: Final = "not done"  # and it will not be
IN_FLIGHT: Final = "in flight"  # it may still be done
UNSURE: Final = "unsure"  # no answer


class Request(NamedTuple):
    """What goes out with each try: always the same key; a lower fence is that of an older claim.

    A key is one within its tenant: callers may choose theirs alike.
    """

    key: str
    payload: Any
    fence: int
    attempt: int
    tenant: str = ""

    def __repr__(self) -> str:
        """Without the key."""
        return f"Request(fence={self.fence}, attempt={self.attempt}, payload={self.payload!r})"


class Known(NamedTuple):
    """What a service says of a request."""

    state: str
    result: str = ""


class Service(Protocol):
    """What has the effect. Each call raises `ProviderError`, whose `definite` is what counts.

    `atomic`: it makes sure itself that one key has one effect. `cancels`: requests can be called
    off. `remembers`: the seconds for which it knows a key, and after which its word counts no more.
    """

    atomic: bool
    cancels: bool
    remembers: float

    async def perform(self, request: Request) -> str:
        """Do it, and tell the result."""
        ...

    async def look_up(self, request: Request) -> Known:
        """What became of it. "Not done" is a promise: no earlier try will be done later."""
        ...

    async def call_off(self, request: Request) -> Known:
        """Call it off, where that is still possible, and tell what became of it."""
        ...
