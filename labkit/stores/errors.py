"""What a store says when its database does not do what was asked, without what is secret."""

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy import URL

_SECRET: Final = re.compile("(?i)pass|pwd|secret|token|key")
_MASK: Final = "***"


class StoreError(Exception):
    """The store cannot be opened: the message says what to change in the URL or on the disk."""


class StoreDown(StoreError):
    """The database is locked, gone or full: see to what the message names, then ask again.

    A write that fails so is never half done. It may have been done where only the answer was lost,
    which the next read tells.
    """


def shown(url: "URL") -> str:
    """The URL without its password, and without what its query has under such a name."""
    hidden = url.update_query_dict({name: _MASK for name in url.query if _SECRET.search(name)})
    return hidden.render_as_string(hide_password=True).replace("%2A%2A%2A", _MASK)


def told(error: Exception) -> str:
    """The first line of what the database itself said: the rest may quote keys and values."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0]
