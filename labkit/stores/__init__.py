"""Stores on memory, SQLite and PostgreSQL, opened by URL."""

from .opening import StoreError, open_stream_store

__all__ = ["StoreError", "open_stream_store"]
