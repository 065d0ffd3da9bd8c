"""Whose request it is: users by their tokens, and a browser by the cookie that it got for one.

Rules: a token is compared in constant time, is kept as a digest, and stands in no message. The
cookie is made from the token and is not the token: it outlives a restart, and is worth nothing any
more once the token is taken away.

    access = Access(users_of("ann:a-long-token-of-ann acme/bob:a-long-token-of-bob"))
    access.by_token("a-long-token-of-ann")         # Owner(user='ann', tenant='lab')
    access.by_cookie(access.cookie("a-long-token-of-ann"))
"""

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Final

from labkit.recovery.run_states import RunError
from labkit.recovery.stream.record import Owner

TENANT: Final = "lab"  # of a user for whom none is named
_NAME: Final = r"[A-Za-z0-9_.-]{1,60}"
_ENTRY: Final = re.compile(rf"(?:({_NAME})/)?({_NAME}):([!-~]{{16,200}})")
_HOW: Final = "USER:TOKEN or TENANT/USER:TOKEN, where a token has 16 to 200 characters"


class BadTokens(RunError, ValueError):
    """The users cannot be told apart by these tokens: mend the entry that the message counts."""


def users_of(text: str) -> dict[str, Owner]:
    """Token and user of each entry; entries stand between blanks. Raises `BadTokens`."""
    users: dict[str, Owner] = {}
    for number, entry in enumerate(text.split(), start=1):
        made = _ENTRY.fullmatch(entry)
        if made is None:
            raise BadTokens(f"entry {number} of the tokens is no good: write {_HOW}")
        tenant, user, token = made.groups()
        if token in users:
            raise BadTokens(
                f"entry {number} of the tokens has the token of another: make a new one"
            )
        users[token] = Owner(user=user, tenant=tenant or TENANT)
    if not users:
        raise BadTokens(f"the tokens are empty: write {_HOW}")
    return users


class Access:
    """Knows the users by what they show; None stands for nobody who is known."""

    def __init__(self, users: Mapping[str, Owner]) -> None:
        self._tokens = [(_digest(token), owner) for token, owner in users.items()]
        self._cookies = [(_digest(self.cookie(token)), owner) for token, owner in users.items()]

    def by_token(self, token: str) -> Owner | None:
        """Who has this token."""
        return _found(self._tokens, token)

    def by_cookie(self, cookie: str) -> Owner | None:
        """Who has signed in with this cookie."""
        return _found(self._cookies, cookie)

    def cookie(self, token: str) -> str:
        """What a browser gets for a token."""
        return hmac.new(token.encode(), b"a cookie of labkit", "sha256").hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _found(known: Iterable[tuple[bytes, Owner]], given: str) -> Owner | None:
    """Every one is compared, so that the time says nothing."""
    digest = _digest(given)
    owners = [owner for kept, owner in known if hmac.compare_digest(kept, digest)]
    return owners[0] if owners else None
