"""What a URL must be, and what an error about it never tells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labkit.stores import StoreError, open_key_store, open_stream_store

each_kind = pytest.mark.parametrize("opened", [open_stream_store, open_key_store])


@each_kind
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "Could not parse"),
        ("answers.db", "Could not parse"),
        ("mysql://localhost/x", "no store on mysql|No module named"),
        ("sqlite://", "no file"),
        ("sqlite:///:memory:", "no file"),
        ("sqlite:////nowhere/at/all/answers.db", "unable to open"),
        ("postgresql+psycopg://ann:hunter2@127.0.0.1:1/x?connect_timeout=2", "127.0.0.1"),
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_with_what_is_possible(
    url: str, told: str, opened: Callable[[str], Any]
) -> None:
    with pytest.raises(StoreError, match=told) as caught:
        opened(url)
    assert "sqlite:///FILE" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None


@each_kind
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    tmp_path: Path, opened: Callable[[str], Any]
) -> None:
    file = tmp_path / "answers.db"
    file.write_text("my notes, not a database " * 100)
    with pytest.raises(StoreError, match="not a database"):
        opened(f"sqlite:///{file}")
    assert file.read_text() == "my notes, not a database " * 100
