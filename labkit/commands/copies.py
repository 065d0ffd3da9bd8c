"""Learners' copies: each tracked notebook once in `work/`, its outputs cleared.

The stored outputs of `notebooks/` would give the answers away. A copy that is there is never
overwritten; a fresh one sets the old one aside under a dated name.

    >>> cleared({"cells": [{"cell_type": "code", "outputs": [1], "execution_count": 3}]})
    {'cells': [{'cell_type': 'code', 'outputs': [], 'execution_count': None}]}
"""

import datetime
import itertools
import json
import os
import pathlib
from typing import Any

from labkit.commands.environment import ROOT, Missing

NOTEBOOKS = ROOT / "notebooks"


def work_folder() -> pathlib.Path:
    """Where the copies are: `work/` in the checkout, unless `LABKIT_WORK` names a folder."""
    return pathlib.Path(os.environ.get("LABKIT_WORK") or ROOT / "work").absolute()


def tracked(folder: pathlib.Path = NOTEBOOKS) -> list[pathlib.Path]:
    """The tracked notebooks in the order of the course."""
    return sorted(folder.glob("[0-9][0-9]*_*.ipynb"))


def find(name: str, folder: pathlib.Path = NOTEBOOKS) -> pathlib.Path:
    """The notebook `02`, `02_retry_boundary` or `02_retry_boundary.ipynb`. Raises `Missing`."""
    stem = pathlib.Path(name).stem
    for path in tracked(folder):
        if stem in (path.stem, path.stem.partition("_")[0]):
            return path
    names = ", ".join(path.stem for path in tracked(folder))
    raise Missing(f"there is no notebook {name!r}; there are: {names}")


def cleared(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without outputs and execution counts."""
    empty: dict[str, Any] = {"outputs": [], "execution_count": None}
    cells = [cell | empty if cell["cell_type"] == "code" else cell for cell in notebook["cells"]]
    return notebook | {"cells": cells}


def make(work: pathlib.Path, source: pathlib.Path = NOTEBOOKS) -> list[pathlib.Path]:
    """Copy each tracked notebook that has no copy yet; the copies made."""
    return [_copy(path, work) for path in tracked(source) if not (work / path.name).exists()]


def fresh(name: str, work: pathlib.Path, source: pathlib.Path = NOTEBOOKS) -> pathlib.Path:
    """A new copy; an old one is set aside under a dated name. Raises `Missing`."""
    path = find(name, source)
    old = work / path.name
    if old.exists():
        day = datetime.date.today().isoformat()
        names = (f"{old.stem}.{day}-{number}.ipynb" for number in itertools.count(1))
        old.rename(next(work / name for name in names if not (work / name).exists()))
    return _copy(path, work)


def _copy(path: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    work.mkdir(parents=True, exist_ok=True)
    notebook = cleared(json.loads(path.read_text(encoding="utf-8")))
    copy = work / path.name
    with copy.open("x", encoding="utf-8") as file:  # "x": never over a copy that is there
        json.dump(notebook, file, ensure_ascii=False, indent=1)
    return copy
