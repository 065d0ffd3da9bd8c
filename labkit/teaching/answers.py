"""A learner's answers on disk: one SQLite file, shared by all kernels; nothing in it is ever lost.

Rules: each change is one transaction under SQLite's own lock, so it is there whole or not at all;
an answer stays as it was when it was first graded, beside the latest one; a file that cannot be
read is set aside, never emptied; where nothing can be written, one warning, and memory serves.
Under pytest, and so under nbval, memory alone serves, unless `LABKIT_HOME` names a folder.

    answers().put("interruptions/interruption.stop/retried", "no, the turn ends")
"""

import datetime
import os
import sqlite3
import warnings
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

from .home import answers_home

FILE: Final = "answers.sqlite"
_TABLE: Final = "CREATE TABLE IF NOT EXISTS answers (question PRIMARY KEY, latest, first)"
_PUT: Final = (
    "INSERT INTO answers (question, latest) VALUES (?, ?)"
    " ON CONFLICT (question) DO UPDATE SET latest = excluded.latest"
)
_GRADED: Final = "UPDATE answers SET first = latest WHERE question = ? AND first IS NULL"


@dataclass(frozen=True, slots=True)
class Answer:
    """The `latest` answer, and the `first` one as it was when it was graded, None before that."""

    latest: str
    first: str | None = None


def answers() -> "Answers":
    """The answers of this kernel's learner."""
    tested = "PYTEST_VERSION" in os.environ and not os.environ.get("LABKIT_HOME")
    return _kept_in(None if tested else answers_home())


class Answers:
    """Answers by question id, in `folder`, or in memory alone where that is None."""

    def __init__(self, folder: Path | None) -> None:
        self._file = None if folder is None else folder / FILE

    @cached_property
    def _memory(self) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", check_same_thread=False)  # widgets may use a thread

    def all(self) -> dict[str, Answer]:
        """Every answer as it stands now, other kernels' work included."""
        rows = self._do("SELECT question, latest, first FROM answers ORDER BY question")
        return {question: Answer(latest, first) for question, latest, first in rows}

    def put(self, question: str, value: str) -> None:
        """Give or change an answer; until it is graded the change is no correction."""
        self._do(_PUT, question, value)

    def mark_graded(self, questions: Iterable[str]) -> None:
        """From now on the answer to each of these questions stays beside the latest."""
        for question in questions:
            self._do(_GRADED, question)

    def _do(self, sql: str, *values: str) -> list[Any]:
        if self._file is not None:
            try:
                return _in_file(self._file, sql, values)
            except (OSError, sqlite3.Error) as error:
                _warn(
                    f"your answers cannot be saved ({error}); they last until the kernel ends. "
                    "Make the folder writable, or name another in LABKIT_HOME."
                )
                with suppress(sqlite3.Error), closing(sqlite3.connect(self._file)) as saved:
                    saved.backup(self._memory)  # what can be read still counts
                self._file = None
        self._memory.execute(_TABLE)
        return self._memory.execute(sql, values).fetchall()


_kept_in: Final = lru_cache(maxsize=8)(Answers)  # so that what could not be saved lasts


def _in_file(file: Path, sql: str, values: tuple[str, ...]) -> list[Any]:
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with closing(sqlite3.connect(file)) as base, base:
            base.execute(_TABLE)
            return base.execute(sql, values).fetchall()
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):  # full, read-only or locked
            raise
        now = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S-%f")
        aside = file.rename(file.with_name(f"answers.{now}.sqlite"))
        _warn(f"{file} could not be read and is kept as {aside.name}")
        return _in_file(file, sql, values)


def _warn(message: str) -> None:
    warnings.warn_explicit(message, UserWarning, "labkit", 1)  # without a machine's path
