"""How the exercises of leases are tried.

    wrong, run = LEASE_TRIALS["09.renew"](next_renewal, {"last": 0.0, "length": 12.0, "now": 0.1})

What is right in a case is what labkit's own lease, renewal and table of states make of it.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from labkit.recovery import lease
from labkit.recovery.lease import Lease
from labkit.recovery.renewal import LAST_TRY, RUSH, SHARE
from labkit.recovery.run_states import MOVES

from .tried import Tried, same

LENGTH: Final = 10.0  # seconds of a lease


def _claim(may_claim: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: a row, who wants it, and the time."""
    row, me, now = _row(case), case["me"], case["now"]
    if row.status in MOVES["claim"].sources:
        own: int | None = row.fence + 1
    elif row.status in MOVES["expire"].sources:
        held = Lease(row.worker, row.fence, row.until, LENGTH)
        claimed = lease.claim(held, me, now=now, length=LENGTH)
        own = claimed.fence if claimed else None
    else:
        own = None
    return same(may_claim(row, me, now), own)


def _write(may_write: Any, case: Mapping[str, Any]) -> Tried:
    """`case`: a row, the worker and the fence of the claim under which is written, and the time."""
    row, me, fence, now = _row(case), case["me"], case["fence"], case["now"]
    own = False
    if row.status in MOVES["step"].sources:
        held = Lease(row.worker, row.fence, row.until, LENGTH)
        mine = Lease(me, fence, row.until, LENGTH)
        own = lease.is_held_by(held, mine) and not lease.expired(held, now)
    return same(may_write(row, me, fence, now), own)


def _row(case: Mapping[str, Any]) -> Any:
    return SimpleNamespace(**{"worker": None, "until": None, **case["row"]})


def _renew(next_renewal: Any, case: Mapping[str, float]) -> Tried:
    """`case`: when it was last renewed, the length of the lease, and the time now."""
    last, length, now = case["last"], case["length"], case["now"]
    wait = max(last + length / SHARE - now, length / RUSH)
    own = None if now >= last + LAST_TRY * length else round(wait, 6)
    got = next_renewal(**case)
    return same(round(got, 6) if isinstance(got, float) else got, own)


LEASE_TRIALS: Final[Mapping[str, Callable[[Any, Any], Tried]]] = {
    "09.claim": _claim,
    "09.write": _write,
    "09.renew": _renew,
}
