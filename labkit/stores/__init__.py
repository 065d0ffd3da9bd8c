"""Stores on memory, SQLite and PostgreSQL, opened by URL; SQLAlchemy is loaded then."""

from typing import Any

__all__ = ["StoreDown", "StoreError", "open_key_store", "open_stream_store"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"labkit.stores has no {name!r}")
    from . import opening

    return getattr(opening, name)
