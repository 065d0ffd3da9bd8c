"""Where a learner's answers are kept: outside the notebooks and outside the checkout.

Standard library only; `LABKIT_HOME` names another folder.

    >>> answers_home().is_absolute()
    True
"""

from __future__ import annotations

import os
import pathlib
import sys


def answers_home() -> pathlib.Path:
    """The folder of saved answers, which may not exist yet: `LABKIT_HOME` or the user's data."""
    named = os.environ.get("LABKIT_HOME")
    if named:
        return pathlib.Path(named).expanduser().absolute()
    home = pathlib.Path.home()
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming") / "labkit"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "labkit"
    return pathlib.Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "labkit"
