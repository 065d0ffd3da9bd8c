"""A place of its own for what a test or a rerun starts: no file of the learner is read or written.

>>> variables("somewhere")["LABKIT_HOME"].endswith("answers")
True
"""

from __future__ import annotations

import os
import pathlib
import sys

FOLDERS = {
    "HOME": "home",
    "USERPROFILE": "home",
    "XDG_CONFIG_HOME": "home/config",
    "XDG_DATA_HOME": "home/data",
    "XDG_CACHE_HOME": "home/cache",
    "IPYTHONDIR": "ipython",
    "JUPYTER_CONFIG_DIR": "jupyter/config",
    "JUPYTER_DATA_DIR": "jupyter/data",
    "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
    "JUPYTERLAB_SETTINGS_DIR": "jupyter/settings",
    "JUPYTERLAB_WORKSPACES_DIR": "jupyter/workspaces",
    "LABKIT_HOME": "answers",
    "LABKIT_WORK": "work",
}
QUIET_KERNEL = '{"IPKernelApp": {"log_level": 40}}'  # no note on transport among the outputs
SETTINGS = pathlib.Path(__file__).with_name("jupyter")  # the news popup off, in JupyterLab's form


def variables(folder: str | pathlib.Path) -> dict[str, str]:
    """This process's variables, with every folder of JupyterLab, IPython and labkit in `folder`."""
    root = pathlib.Path(folder)
    places = {name: root / place for name, place in FOLDERS.items()}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    profile = places["IPYTHONDIR"] / "profile_default"
    profile.mkdir(exist_ok=True)
    (profile / "ipython_kernel_config.json").write_text(QUIET_KERNEL)
    return {
        **os.environ,
        **{name: str(place) for name, place in places.items()},
        **lab_variables(),
        # A font list takes seconds to make: kept with the environment, as it belongs to it.
        "MPLCONFIGDIR": str(pathlib.Path(sys.prefix) / "var" / "matplotlib"),
    }


def lab_variables() -> dict[str, str]:
    """What every JupyterLab of ours is started with: our settings, and kernels of this Python."""
    return {
        "JUPYTER_CONFIG_PATH": str(SETTINGS),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
    }
