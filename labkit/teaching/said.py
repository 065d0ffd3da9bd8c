"""What a lesson says, and what a learner means by a name.

texts("diagnosis")["silent_wait"]["words"]                       # 'a silent wait'
pick("column", "retried?", {"retried": "Is it tried again?"})    # 'retried'
"""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from labkit.scenarios import catalogue
from labkit.simulation import Run, Scenario, SimulationError, Unknown

from .token import from_token

TEXTS: Final = Path(__file__).parents[2] / "data" / "exercises"
NUMBERED: Final = ("row", "column", "choice")  # of a table of predictions


class Told:
    """Lines to read, which show themselves as plain text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def text(self) -> str:
        """The lines."""
        return self._text

    def __repr__(self) -> str:
        return self.text()


def texts(name: str) -> dict[str, Any]:
    """The content of `data/exercises/<name>.toml`."""
    return tomllib.loads((TEXTS / f"{name}.toml").read_text(encoding="utf-8"))


def pick(what: str, given: Any, known: Iterable[str] | Mapping[str, str]) -> str:
    """The key of `known` that `given` names: a key, its words where it has some, or a part of one.

    Upper case and a question mark do not matter; rows, columns and choices also have numbers.
    Raises `Unknown`, which lists what there is, where nothing fits, or those that fit where more
    than one does.
    """
    words: Mapping[str, str] = known if isinstance(known, Mapping) else {key: key for key in known}
    wanted = _plain(given)
    exact = [key for key in words if wanted in (_plain(key), _plain(words[key]))]
    partly = [key for key in words if wanted in _plain(f"{key} {words[key]}")]
    if type(given) is int:  # 1 is no part of a name
        partly = list(words)[given - 1 : given] if what in NUMBERED and given > 0 else []
    fitting = exact or partly
    if len(fitting) == 1:
        return fitting[0]
    several = [key for key in fitting if wanted]
    listed = [repr(words[key]) for key in several or words]
    raise Unknown(what, given, listed, several=bool(several))


def as_run(given: Run | Scenario | str) -> Run:
    """The run that is given, or one of that scenario or token; raises `Unknown`, `TokenError`."""
    if isinstance(given, Run):
        return given
    if isinstance(given, str) and "~" in given:
        return from_token(given)
    if not isinstance(given, Scenario | str):
        raise SimulationError(f"give it a run or a scenario's name, not {given!r}")
    return catalogue.simulate(given)


def _plain(name: object) -> str:
    return str(name).strip(" ?").casefold()
