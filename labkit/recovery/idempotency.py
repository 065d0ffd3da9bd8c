"""One logical operation, one effect: its key, its fingerprint, and what a repeat is answered.

A timeout does not say that nothing happened. So an operation gets a key before its first try, made
from whose it is, what is done, and to which thing; every repeat carries the same one, whatever id
the model gave its call. Beside the key stands a fingerprint of the payload, so that another payload
under the same key is a conflict and no repeat. Logs get a digest, never the key.

    operation = Operation(tenant="acme", name="charge", resource="order-7", payload={"amount": 5})
    operation.sent                         # 'acme/charge/order-7'
    enter(record, checked(operation), now=now)      # EXECUTE, REUSE, JOIN, RECONCILE ...
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote

from .errors import RecoveryError
from .lease import Lease, claim, expired, release, renew

LONGEST: Final = 255  # characters of a key

# states of a record
PENDING: Final = "pending"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"  # and it surely had no effect
UNKNOWN: Final = "unknown"  # it may have had one
STATES: Final = (PENDING, SUCCEEDED, FAILED, UNKNOWN)

# what a call is answered at the door
EXECUTE: Final = "execute"
REUSE: Final = "reuse"
JOIN: Final = "join"
RECONCILE: Final = "reconcile"
CONFLICT: Final = "conflict"
ASK_PERSON: Final = "ask_person"


class BadOperation(RecoveryError, ValueError):
    """This cannot be kept apart from other operations: mend what the message names; nothing ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What somebody means to do once.

    `tenant`: whose it is; `name`: what is done; `resource`: the thing that it is done to, such as
    an order's number; `payload`: the arguments. `key`: the caller's own, which goes out as it is.
    """

    tenant: str
    name: str
    resource: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    key: str = field(default="", repr=False)

    @property
    def sent(self) -> str:
        """The key that goes out with every try, or "" where nothing tells this operation apart."""
        parts = (self.tenant, self.name, self.resource)
        if self.key or not all(parts):
            return self.key
        # quoted, since "a/b" + "c" is not "a" + "b/c"
        return "/".join(quote(str(part), safe="", errors="surrogatepass") for part in parts)

    @property
    def digest(self) -> str:
        """What stands in logs in the key's place."""
        return digest(self.tenant, self.sent)


def digest(tenant: str, key: str) -> str:
    """Twelve digits of a key's hash, to follow one by; who can list all keys can find it."""
    return _hash([tenant, key])[:12]


def checked(operation: Operation) -> str:
    """The fingerprint of what is meant. Raises `BadOperation`."""
    if not isinstance(operation, Operation):
        raise BadOperation(f"no_operation: an Operation(...) is needed, not {operation!r:.60}")
    parts = ("tenant", "name") if operation.key else ("tenant", "name", "resource")
    empty = [part for part in parts if not getattr(operation, part)]
    texts = [part for part in (*parts, "key") if not isinstance(getattr(operation, part), str)]
    if empty or texts:
        named = ", ".join(dict.fromkeys([*empty, *texts]))
        raise BadOperation(f"missing_idempotency_key: {named} must be a text that says what it is")
    longest = max(len(operation.sent), len(operation.tenant))
    if longest > LONGEST:
        told = f"a key and a tenant may have {LONGEST} characters, not {longest}"
        raise BadOperation(f"key_too_long: {told}; put a hash in its long part's place")
    if not (operation.sent + operation.tenant).isprintable():
        raise BadOperation("key_not_printable: take letters and digits, which any store can keep")
    if not isinstance(operation.payload, Mapping):
        raise BadOperation("payload_not_canonical: a payload is an object, names with values")
    try:
        return _hash([operation.name, operation.resource, _canonical(operation.payload)])
    except (TypeError, ValueError, RecursionError) as error:
        told = f"payload_not_canonical: {error}"
        raise BadOperation(f"{told}; use texts, finite numbers, lists and objects") from None


def _canonical(value: Any) -> Any:
    """Equal for equal payloads: 5, 5.0 and 5e0 are one number; the order of names comes later."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return dict(zip(value, map(_canonical, value.values()), strict=True))
    if isinstance(value, list | tuple):
        return list(map(_canonical, value))
    raise TypeError(f"a {type(value).__name__} has no one written form")


def _hash(told: list[Any]) -> str:
    text = json.dumps(told, sort_keys=True, allow_nan=False)  # nan has no written form
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """What is kept of one key; times are the store's.

    `lease`: who executes it, or who did last. `since`: when it was first claimed, of all claims
    that may have had its effect. `result`: what came of it, for every repeat. `expires`: when a
    final state is forgotten. `handed_over`: it waits for a person. `version` counts the writes.
    """

    tenant: str
    key: str = field(repr=False)
    fingerprint: str
    state: str
    lease: Lease
    since: float
    result: str = ""
    expires: float = 0.0
    handed_over: bool = False
    version: int = 1

    @property
    def digest(self) -> str:
        """What stands in logs in the key's place."""
        return digest(self.tenant, self.key)


class Seen(NamedTuple):
    """A record, or None, and the store's time when it was read."""

    record: KeyRecord | None
    now: float


class KeyStore(Protocol):
    """Keeps the records; each call is one transaction, and the clock is the store's own."""

    async def read(self, tenant: str, key: str) -> Seen:
        """The record as it is now."""
        ...

    async def swap(self, old: KeyRecord | None, new: KeyRecord) -> bool:
        """Write `new` if `old` is still what is kept, or if nothing is; whether it was written."""
        ...

    async def waiting(self, tenant: str) -> list[KeyRecord]:
        """Those that are handed over, the oldest first."""
        ...


def enter(record: KeyRecord | None, fingerprint: str, *, now: float) -> str:
    """What a call is answered at the door: a final state first, and execution last.

    A pending key whose executor is gone is not executed again: whether it had its effect is asked
    first. One that failed had none, and may be executed.
    """
    if record is None or (record.state in (SUCCEEDED, FAILED) and now >= record.expires):
        return EXECUTE  # breakpoint: not known
    if record.fingerprint != fingerprint:  # breakpoint: fingerprint check
        return CONFLICT
    if record.state == SUCCEEDED:  # breakpoint: final state
        return REUSE
    if record.handed_over:
        return ASK_PERSON
    if record.state == PENDING and not expired(record.lease, now):  # breakpoint: still running
        return JOIN
    return EXECUTE if record.state == FAILED else RECONCILE


def claimed(
    before: KeyRecord | None, operation: Operation, owner: str, *, now: float, length: float
) -> KeyRecord | None:
    """The record with its lease claimed by `owner`, or None while another executes it."""
    held = before.lease if before else None
    if before is not None and before.state != PENDING:
        held = release(before.lease, now=now)  # nobody works on it, whatever its times say
    lease = claim(held, owner, now=now, length=length)
    if lease is None:
        return None
    doubtful = before is not None and before.state in (PENDING, UNKNOWN)
    return KeyRecord(
        tenant=operation.tenant,
        key=operation.sent,
        fingerprint=checked(operation),
        state=PENDING,
        lease=lease,
        since=before.since if before and doubtful else now,
        version=before.version + 1 if before else 1,
    )


def renewed(record: KeyRecord | None, mine: KeyRecord, *, now: float) -> KeyRecord | None:
    """What is kept with my claim renewed, or as it is once it has ended; None if it is lost."""
    lease = renew(record.lease if record else None, mine.lease, now=now)
    if record is None or lease is None:
        return None
    if record.state != PENDING:
        return record
    return replace(record, lease=lease, version=record.version + 1)


def ended(
    mine: KeyRecord, state: str, result: str, *, now: float, ttl: float, handed_over: bool = False
) -> KeyRecord:
    """My claim given back with what came of it, which is kept for `ttl` seconds."""
    if state not in STATES:
        raise BadOperation(f"no state {state!r}; there is: {', '.join(STATES)}")
    return replace(
        mine,
        state=state,
        result=result,
        expires=now + ttl,
        handed_over=handed_over,
        lease=release(mine.lease, now=now),
        version=mine.version + 1,
    )


def resolved(
    record: KeyRecord, happened: bool, result: str, *, now: float, ttl: float
) -> KeyRecord:
    """What a person found out about a record that was handed over.

    Raises `BadOperation` for any other record: a program may be at work on it.
    """
    if not record.handed_over:
        raise BadOperation(f"{record.digest} waits for no person: its state is {record.state}")
    return ended(record, SUCCEEDED if happened else FAILED, result, now=now, ttl=ttl)
