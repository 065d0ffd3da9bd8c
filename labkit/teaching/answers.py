"""A learner's answers on disk: one JSON file, shared by all kernels; nothing in it is ever lost.

Rules: a change is made under a lock, on what the file holds at that moment, and put in place whole;
an answer is kept as it was when it was first graded, beside the latest one; a file that cannot be
read is set aside, never emptied; where nothing can be written, one warning, and memory serves.
Under pytest, and so under nbval, memory alone serves, unless `LABKIT_HOME` names a folder.

    answers().put("interruptions/interruption.stop/retried", "no, the turn ends")
"""

import datetime
import json
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from .home import answers_home

FILE: Final = "answers.json"
PATIENCE: Final = 3.0  # seconds to wait for another kernel's write


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: `first` as it stood when it was first `graded`, and the `latest`."""

    first: str
    latest: str
    graded: bool = False


Entries = dict[str, Any]  # as the file has them
Change = Callable[[Entries], Entries]  # what is there -> what takes its place


def answers() -> "Answers":
    """The answers of this kernel's learner."""
    tested = "PYTEST_VERSION" in os.environ and not os.environ.get("LABKIT_HOME")
    return _kept_in(None if tested else answers_home())


@lru_cache(maxsize=8)
def _kept_in(folder: Path | None) -> "Answers":
    return Answers(folder)


class Answers:
    """Answers by question id, in `folder`, or in memory alone where that is None."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._unsaved: Entries = {}
        self._known: Entries = {}
        self._warned = False

    def all(self) -> dict[str, Answer]:
        """Every readable answer, as it stands now in the file, other kernels' work included."""
        if self._folder is not None:
            try:
                self._known = _entries(_read(self._folder / FILE))
            except (OSError, ValueError):
                self._update(lambda _: {})  # sets a broken file aside, under the lock
        found = {key: _answer(raw) for key, raw in (self._known | self._unsaved).items()}
        return {key: answer for key, answer in found.items() if answer is not None}

    def put(self, key: str, value: str) -> None:
        """Give or change an answer; until it is graded the change is no correction."""

        def given(entries: Entries) -> Entries:
            old = _answer(entries.get(key))
            graded = old is not None and old.graded
            first = old.first if old is not None and graded else value
            return {key: asdict(Answer(first, value, graded))}

        self._update(given)

    def mark_graded(self, keys: Iterable[str]) -> None:
        """From now on the first answer to these questions stays beside the latest."""
        known = self.all()
        fresh = [key for key in keys if key in known and not known[key].graded]
        if fresh:
            self._update(lambda found: {key: found[key] | {"graded": True} for key in fresh})

    def _update(self, change: Change) -> None:
        if self._folder is not None:
            try:
                self._save(self._folder, change)
                return
            except (OSError, NotImplementedError) as error:  # no lock on some file systems
                self._warn(
                    f"your answers cannot be saved ({error}); they last until the kernel ends. "
                    "Make the folder writable, or name another in LABKIT_HOME."
                )
        self._unsaved |= change(self._known | self._unsaved)

    def _save(self, folder: Path, change: Change) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        with FileLock(folder / "answers.lock", timeout=PATIENCE):
            try:
                document = _read(path)
            except ValueError:
                aside = _set_aside(path)
                self._warn(f"{path} could not be read and is kept as {aside.name}")
                document = {}
            entries = _entries(document) | self._unsaved
            entries |= change(entries)
            if entries != document.get("answers"):
                _write(path, {**document, "version": 1, "answers": entries})
        self._known, self._unsaved = entries, {}

    def _warn(self, message: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn_explicit(message, UserWarning, "labkit", 1)  # without a machine's path


def _answer(raw: Any) -> Answer | None:
    """What the file says under one key, or None where that makes no sense."""
    match raw:
        case {"first": str(first), "latest": str(latest)}:
            return Answer(first, latest, raw.get("graded") is True)
    return None


def _entries(document: Mapping[str, Any]) -> Entries:
    return dict(document.get("answers", {}))


def _read(path: Path) -> dict[str, Any]:
    """The file's content, {} where there is none; `ValueError` where it is no answers file."""
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(document, dict) or not isinstance(document.get("answers", {}), dict):
        raise ValueError("not a file of answers")
    return document


def _write(path: Path, document: Mapping[str, Any]) -> None:
    """Put the whole file in place at once: whoever reads sees the old one or the new one."""
    new = path.with_suffix(".new")  # one name is enough, since the lock is held
    with new.open("w", encoding="ascii") as file:
        json.dump(document, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _set_aside(path: Path) -> Path:
    today = datetime.date.today().isoformat()
    number = 1
    while (aside := path.with_name(f"answers.{today}-{number}.json")).exists():
        number += 1
    return path.rename(aside)
