"""Who holds a thing for a while: claim, renew, expire, fence, as plain functions of values.

A lock that is never given back blocks for ever; a lease ends by itself. Its holder may sleep past
that end and wake as if nothing had happened, so each claim carries a fence, a number that rises,
and whatever its owner writes is checked against the newest one. Times are the store's, never those
of a worker's own clock.

    lease = claim(None, "worker-1", now=0.0, length=10.0)         # fence 1, until 10.0
    claim(lease, "worker-2", now=5.0, length=10.0)                # None: it is held
    claim(lease, "worker-2", now=11.0, length=10.0)               # fence 2
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lease:
    """`owner` holds it until `until`, in seconds of the store's clock; `fence` counts the claims.

    `length`: the seconds that each claim and each renewal gives.
    """

    owner: str
    fence: int
    until: float
    length: float


def claim(held: Lease | None, owner: str, *, now: float, length: float) -> Lease | None:
    """The lease of `owner` for `length` seconds from `now`, or None while another holds it.

    The holder's own second claim keeps its fence, since it is no new holder.
    """
    if held is None:
        return Lease(owner, 1, now + length, length)
    if expired(held, now):  # breakpoint: lease check
        return Lease(owner, held.fence + 1, now + length, length)  # breakpoint: fence rises
    if held.owner == owner:
        return replace(held, until=now + length, length=length)
    return None


def renew(held: Lease | None, mine: Lease, *, now: float) -> Lease | None:
    """My lease, its whole length from `now`, or None if it is lost: then stop at once.

    One that has expired and that nobody has taken is still mine.
    """
    return replace(mine, until=now + mine.length) if is_held_by(held, mine) else None


def release(mine: Lease, *, now: float) -> Lease:
    """My lease as one that anybody may take from `now` on."""
    return replace(mine, until=now)


def expired(held: Lease, now: float) -> bool:
    """Whether anybody may take it."""
    return now >= held.until


def is_held_by(held: Lease | None, mine: Lease) -> bool:
    """Whether `mine` is the newest claim: asked before each write of an owner."""
    return held is not None and (held.owner, held.fence) == (mine.owner, mine.fence)


def bounded(held: Lease, *, now: float) -> Lease:
    """The lease, cut to its length from `now`: it can be longer only if the clock was set back."""
    return replace(held, until=min(held.until, now + held.length))
