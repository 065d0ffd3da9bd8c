"""Learners' copies: each tracked notebook once in `work/`, its outputs cleared.

The stored outputs of `notebooks/` would give the answers away. A copy that is there is never
overwritten; a fresh one sets the old one aside under a dated name. Standard library only.

    >>> cleared({"cells": [{"cell_type": "code", "outputs": [1], "execution_count": 3}]})
    {'cells': [{'cell_type': 'code', 'outputs': [], 'execution_count': None}]}
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
from typing import Any

from labkit.commands import environment

NOTEBOOKS = environment.ROOT / "notebooks"


def work_folder() -> pathlib.Path:
    """Where the copies are: `work/` in the checkout, unless `LABKIT_WORK` names a folder."""
    return pathlib.Path(os.environ.get("LABKIT_WORK") or environment.ROOT / "work").absolute()


class UnknownNotebook(ValueError):
    """No tracked notebook has that name: the message lists those there are."""


def tracked(folder: pathlib.Path = NOTEBOOKS) -> list[pathlib.Path]:
    """The tracked notebooks in the order of the course."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def find(name: str, folder: pathlib.Path = NOTEBOOKS) -> pathlib.Path:
    """The notebook of that name; `02` and `02_retry_boundary.ipynb` mean the same one.

    Raises `UnknownNotebook`.
    """
    stem = pathlib.Path(name).name.removesuffix(".ipynb")
    for path in tracked(folder):
        if stem in (path.stem, path.stem[:2]):
            return path
    names = ", ".join(path.stem for path in tracked(folder)) or "none"
    raise UnknownNotebook(f"there is no notebook {name!r}; there are: {names}")


def cleared(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without outputs and execution counts."""
    return {**notebook, "cells": [_cleared_cell(cell) for cell in notebook["cells"]]}


def make(work: pathlib.Path, source: pathlib.Path = NOTEBOOKS) -> list[pathlib.Path]:
    """Copy each tracked notebook that has no copy yet; the copies made."""
    work.mkdir(parents=True, exist_ok=True)
    missing = [path for path in tracked(source) if not (work / path.name).exists()]
    return [_copy(path, work) for path in missing]


def fresh(name: str, work: pathlib.Path, source: pathlib.Path = NOTEBOOKS) -> pathlib.Path:
    """A new copy; an old one is set aside under a dated name. Raises `UnknownNotebook`."""
    path = find(name, source)
    work.mkdir(parents=True, exist_ok=True)
    old = work / path.name
    if old.exists():
        old.rename(_dated(old, datetime.date.today().isoformat()))
    return _copy(path, work)


def _cleared_cell(cell: dict[str, Any]) -> dict[str, Any]:
    if cell["cell_type"] != "code":
        return cell
    return {**cell, "outputs": [], "execution_count": None}


def _copy(path: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    notebook = cleared(json.loads(path.read_text(encoding="utf-8")))
    target = work / path.name
    with target.open("x", encoding="utf-8") as file:  # "x": never over a copy that is there
        file.write(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
    return target


def _dated(old: pathlib.Path, date: str) -> pathlib.Path:
    number = 1
    while True:
        tail = date if number == 1 else f"{date}-{number}"
        aside = old.with_name(f"{old.stem}.{tail}.ipynb")
        if not aside.exists():
            return aside
        number += 1
