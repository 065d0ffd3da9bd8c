"""What a store says when its database does not do what was asked."""


class StoreError(Exception):
    """The store cannot be opened: the message says what to change in the URL or on the disk."""


class StoreDown(StoreError):
    """The database is locked, gone or full: see to what the message names, then ask again.

    A write that fails so is never half done. It may have been done where only the answer was lost,
    which the next read tells.
    """


def told(error: Exception) -> str:
    """The first line of what the database itself said: the rest may quote keys and values."""
    return str(getattr(error, "orig", None) or error).partition("\n")[0]
