"""What a provider's failure says, and what it does not say.

The question behind every retry is not "was it an error?" but "may it have had its effect?". So each
`ProviderError` carries `definite`: True means that the request surely did nothing; False means that
nobody knows. Decisions read the status, the kind and this flag. The message is for people: it is
shown and never read, since "404: no connection named 'x'" is not a lost connection.

    error = ProviderError("slow down", status=429, headers={"retry-after": "7"})
    error.kind, error.definite       # ('rate_limit', True)
"""

from collections.abc import Mapping
from typing import Final


class RecoveryError(Exception):
    """Base of this room's errors."""

    def _render_traceback_(self) -> list[str]:
        """One line in a notebook: the message says it all."""
        return [f"{type(self).__name__}: {self}"]


class PolicyError(RecoveryError, ValueError):
    """The policy contradicts itself: change the field that the message names."""


# kind -> whether a request that failed so has surely had no effect
KINDS: Final[Mapping[str, bool]] = {
    "rate_limit": True,  # refused at the door; the next one may pass
    "quota": True,  # refused at the door until somebody pays
    "connect": True,  # never left this machine
    "auth": True,
    "permission": True,
    "bad_request": True,
    "overloaded": False,  # a gateway says so, whatever the server behind it did
    "server": False,
    "conflict": False,  # an earlier attempt of our own may be what is in the way
    "timeout": False,  # the far side may be done by now
    "stall": False,  # the stream opened, then nothing came
    "deadline": False,  # our own time ran out
    "limit": False,  # a limit of our own was reached
    "disconnect": False,  # the stream broke
    "cut_off": False,  # the stream ended cleanly, without a finish reason
    "protocol": False,  # bytes that make no sense
    "unknown": False,
}

# What another try may mend. `retry_on` has no default; most callers want this or a part of it.
TRANSIENT: Final = frozenset(
    {"rate_limit", "connect", "overloaded", "server", "conflict", "timeout"}
    | {"stall", "disconnect", "cut_off"}
)

# Sources: RFC 9110 section 15; RFC 8470 (425); the public error pages of two providers (529).
_STATUS: Final[Mapping[int, str]] = {
    401: "auth",
    402: "quota",
    403: "permission",
    407: "auth",
    408: "timeout",
    409: "conflict",
    425: "rate_limit",  # "too early": not processed, and welcome later
    429: "rate_limit",
    499: "disconnect",  # a proxy saw its client leave: the server behind it may have gone on
    501: "bad_request",
    503: "overloaded",
    504: "timeout",
    505: "bad_request",
    529: "overloaded",
}

# A provider's own word in `code` or `type`, where it says more than the status.
_SAID: Final[Mapping[str, str]] = {
    "quota": "insufficient_quota quota_exceeded billing_error billing_hard_limit_reached "
    "billing_not_active insufficient_balance credit_balance_too_low credit_balance_exhausted "
    "organization_spend_limit_exceeded project_spend_limit_exceeded enforced_spend_limit_reached",
    "rate_limit": "rate_limit_exceeded rate_limit_error",
    "overloaded": "overloaded_error server_is_overloaded",
    "server": "server_error api_error",
    "timeout": "timeout_error",
    "auth": "authentication_error invalid_api_key",
    "permission": "permission_error",
    "bad_request": "not_found_error invalid_request_error context_length_exceeded",
}
_CODES: Final = {code: kind for kind, codes in _SAID.items() for code in codes.split()}


def classify(status: int | None, code: str | None) -> str:
    """The kind of an error that a provider answered with.

    A quota code beats the status, because both kinds of refusal travel as 429 and only one of them
    goes away by waiting. With neither a known status nor a known code the kind is "unknown".
    """
    said = _CODES.get(code or "", "unknown")
    if said == "quota" or status is None:
        return said
    if status in _STATUS:
        return _STATUS[status]
    if 400 <= status < 500:
        return "bad_request"
    if 500 <= status < 600:
        return "server"
    return said


class ProviderError(RecoveryError):
    """A request or a stream failed: read `kind` and `definite`, show the message.

    `status` is the HTTP status if the request was answered with an error, `code` the provider's own
    word, `headers` those of this very answer (names in lower case). A `kind` that is given beats
    the table. A code without a status comes from a stream that was let in, so it is not definite.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        kind: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        if not isinstance(status, int | None) or isinstance(status, bool):
            raise ValueError(f"a status is a whole number or None, not {status!r}")
        if not isinstance(code, str | None):
            raise ValueError(f"a code is a text or None, not {code!r}")
        self.status = status
        self.code = code
        self.kind = classify(status, code) if kind is None else kind
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        if self.kind not in tuple(KINDS):  # a kind may be anything, also what has no hash
            raise ValueError(f"unknown kind {self.kind!r}; there is: {', '.join(KINDS)}")
        refused = kind is not None or (status is not None and status >= 400)
        self.definite = refused and KINDS[self.kind]
