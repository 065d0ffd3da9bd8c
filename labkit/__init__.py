"""labkit: learn, by breaking it, how a streaming agent fails and recovers.

    run = labkit.simulate("retry.guarded")
    run.to("retry guard").locals["visible"]

Names are loaded when they are first used, so that `import labkit` is quick and needs nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, Final

from labkit.teaching import PUBLIC

__version__: Final = "0.1.0"

_HOMES: Final = {
    "labkit.scenarios.catalogue": "breakpoints explore find names points simulate".split(),
    "labkit.simulation": "Fault Scenario".split(),
    "labkit.providers.script": "load_script script".split(),
    "labkit.recovery.policy": ["RetryPolicy"],
    "labkit.recovery.errors": ["TRANSIENT"],
    **{f"labkit.teaching.{module}": names for module, names in PUBLIC.items()},
}
_HOME: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"labkit has no {name!r}; it has: {', '.join(__all__)}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


if "IPython" in sys.modules:  # in a notebook, runs and views show themselves in both forms
    import_module("labkit.teaching.views").register()
