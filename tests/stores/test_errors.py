"""What is told of a database's error."""

from __future__ import annotations

from sqlalchemy.exc import IntegrityError

from labkit.stores.errors import told


def test_only_the_first_line_of_what_a_database_said_is_told_since_the_rest_quotes_keys() -> None:
    said = "duplicate key\nDETAIL: Key (key)=(acme/charge/order-7) already exists."
    assert told(Exception(said)) == "duplicate key"
    assert told(IntegrityError("INSERT", {}, Exception(said))) == "duplicate key"
